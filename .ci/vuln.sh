#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Looks for known vulnerabilities in the code that Go modules of this repository call.
# Usage: vuln.sh GOVULNCHECK DIRECTORY... GOVULNDB names another database.
#
# Exits with 1 if it finds one. If the database cannot be reached, it prints a line with SKIPPED and exits with 0, so
# that a machine without internet access can run the other checks. With VULN_REQUIRED=1, it exits with 1 then.
set -euo pipefail
cd "$(dirname "$0")/.."

tool=$1 db=${GOVULNDB:-https://vuln.go.dev}
shift

# The cheapest question that needs the database: are modules that this small module requires affected?
if ! answer=$(cd guest-sdk/go && "$tool" -db "$db" -scan module 2>&1); then
	if [[ $answer == *"fetching vulnerabilities"* ]]; then
		echo "SKIPPED: the vulnerability database $db cannot be reached: dependencies are NOT checked for known vulnerabilities"
		echo "         ${answer##*$'\n'}"
		[ -z "${VULN_REQUIRED:-}" ] || exit 1
		exit 0
	fi
fi

code=0
for dir in "$@"; do
	echo "vuln $dir"
	(cd "$dir" && "$tool" -db "$db" ./...) || code=1
done
exit $code
