#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Runs tests again and again beside busy loops, to find those that fail on a busy machine.
#
# Each test runs SOAK times, or until its package took SOAK_TIME seconds or the test a tenth of that, but at least
# once. Each run is a process of its own, with all tests of the package that are not done. A test that fell does not
# run again, and the others go on. The log of its run is kept in bin/soak.
#
# Usage: .ci/soak.sh [DIRECTORY[/...]...]; without one, all packages. SOAK_RUN is a pattern of the tests.
set -euo pipefail
cd "$(dirname "$0")/.."

: "${SOAK:=200}" "${SOAK_TIME:=20}" "${SOAK_RUN:=.}" "${SOAK_LOOPS:=3}"
[ $# -gt 0 ] || set -- ./... guest-sdk/go/... examples/...

tmp=$(mktemp -d)
loops=()
mkdir -p bin/soak
trap 'idle; rm -rf "$tmp"' EXIT
trap 'exit 130' INT TERM

busy() { for ((i = 0; i < SOAK_LOOPS; i++)); do (while :; do :; done) & loops+=($!); done; }
idle() { if [ ${#loops[@]} -gt 0 ]; then kill "${loops[@]}" 2>/dev/null; wait "${loops[@]}" 2>/dev/null || true; loops=(); fi; }

# The tests that are not done, from the results of the runs so far: PASS, SKIP or FAIL, name, seconds.
due() {
	awk -v most="$SOAK" -v time="$SOAK_TIME" '
		NF == 3 { runs[$2]++; took[$2] += $3; if ($1 == "FAIL") fell[$2] = 1; next }
		runs[$1] < most && took[$1] < time / 10 && !fell[$1]' "$tmp/results" "$tmp/names"
}

# soak DIRECTORY: prints a line for the package, and adds a line to $tmp/fallen for each test that fell.
soak() {
	local dir=$1 run code since kept log=$tmp/log
	(cd "$dir" && go test -c -o "$tmp/test" .)
	(cd "$dir" && "$tmp/test" -test.list "$SOAK_RUN") >"$log"
	grep -E '^(Test|Fuzz|Example)' "$log" >"$tmp/names" || return 0
	: >"$tmp/results"
	busy
	since=$SECONDS
	for ((run = 1; run <= SOAK && (run == 1 || SECONDS - since < SOAK_TIME); run++)); do
		due >"$tmp/due"
		[ -s "$tmp/due" ] || break
		code=0
		(cd "$dir" && "$tmp/test" -test.v -test.timeout 30m -test.run "^($(paste -sd'|' "$tmp/due"))\$") >"$log" 2>&1 || code=$?
		sed -nE 's/.*--- (PASS|SKIP|FAIL): ([^ /]+) \(([0-9.]+)s\)$/\1 \2 \3/p' "$log" >"$tmp/last"
		# Without the name of a test, the process itself fell, and would again.
		[ $code -eq 0 ] || grep -q '^FAIL' "$tmp/last" || { echo "FAIL (exit-code-$code) 0" >>"$tmp/last" && : >"$tmp/names"; }
		cat "$tmp/last" >>"$tmp/results"
		[ $code -ne 0 ] || continue
		kept=bin/soak/wasmctl$(tr / - <<<"${dir#.}")-$run.log
		cp "$log" "$kept"
		awk -v dir="$dir" -v run=$run -v file="$kept" '$1 == "FAIL" { print dir, $2, run, file }' "$tmp/last" >>"$tmp/fallen"
		grep -vE '^=== |^ *--- (PASS|SKIP)' "$log" | tail -n 40 || true
	done
	idle
	awk -v dir="$dir" -v took=$((SECONDS - since)) '{ runs++; tests[$2] = 1; fell += $1 == "FAIL" }
		END { printf "%-44s %4d tests %6d runs %3d fell %4d s\n", dir, length(tests), runs, fell, took }' "$tmp/results"
}

: >"$tmp/fallen"
for pattern in "$@"; do
	rest=.
	case $pattern in */...) rest=./... ;; esac
	(cd "${pattern%/...}" && go list -f '{{if or .TestGoFiles .XTestGoFiles}}{{.Dir}}{{end}}' "$rest")
done >"$tmp/dirs"
while read -r dir <&3; do soak ".${dir#"$PWD"}"; done 3<"$tmp/dirs"

if [ -s "$tmp/fallen" ]; then
	echo "fell: package, test, run, log"
	cat "$tmp/fallen"
	exit 1
fi
echo "nothing fell in $SECONDS s"
