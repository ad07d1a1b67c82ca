#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Lists lines of Markdown that are longer than 120 columns. Tables, code, and lines without a space to break at are left
# alone, and so is host/conformance/CASES.md, which a test writes. Exits with 1 if it finds any.
set -euo pipefail
cd "$(dirname "$0")/.."
export LC_ALL=C # awk counts bytes; continuation bytes are removed below

git ls-files -co --exclude-standard '*.md' | grep -v '^host/conformance/CASES\.md$' | while read -r f; do
	[ -f "$f" ] && [ ! -L "$f" ] && printf '%s\0' "$f"
done | xargs -0 awk '
	FNR == 1 { fence = 0 }
	/^[ \t]*(```|~~~)/ { fence = !fence; next }
	fence || /^(    |\t)/ || /^[ \t]*\|/ { next }
	{ gsub(/[\200-\277]/, "") }
	length($0) > 120 && substr($0, 2, 118) ~ /[^ ] / { printf "%s:%d: %d columns, at most 120\n", FILENAME, FNR, length($0); found = 1 }
	END { exit found }'
