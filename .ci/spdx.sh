#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Lists Go, Rust and shell files without the license header, and exits with 1 if there are any. With --fix, it adds the
# header instead: in a Go file with a blank line, so that it is no part of the package comment. Generated files have none.
set -euo pipefail
cd "$(dirname "$0")/.."

id='SPDX-License-Identifier: Apache-2.0'
lacking() { # files that have neither the header nor the mark of a generator
	git ls-files -co --exclude-standard '*.go' '*.rs' '*.sh' .ci/run |
		while read -r f; do [ ! -f "$f" ] || printf '%s\0' "$f"; done |
		xargs -0 grep -LE "$id\$|^// Code generated .* DO NOT EDIT" || true
}

if [ "${1:-}" != --fix ]; then
	files=$(lacking)
	[ -n "$files" ] || exit 0
	printf '%s: no license header; add it with .ci/spdx.sh --fix\n' $files
	exit 1
fi
tmp=$(mktemp)
trap 'rm -f "$tmp"' EXIT
lacking | while read -r f; do
	case $f in
	*.go) printf '// %s\n\n' "$id" | cat - "$f" >"$tmp" ;;
	*.rs) printf '// %s\n' "$id" | cat - "$f" >"$tmp" ;;
	*) sed "1a # $id" "$f" >"$tmp" ;; # after the line with the interpreter
	esac
	cat "$tmp" >"$f" # keeps the mode
done
