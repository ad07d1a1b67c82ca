#!/usr/bin/env bash
# Lists unwanted words (.ci/words.txt) in comments and strings of Go, in Markdown and in help and schema texts, and in Markdown
# lines over 120 columns and sentences over 30 words. Prints file:line: what: text, and exits with 1 if there is any.
# Usage: .ci/words.sh [FILE...]; without files, all that git knows.
set -euo pipefail
cd "$(dirname "$0")/.."
export LC_ALL=C # awk counts columns by itself, whatever it is

words=.ci/words.txt
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT

if [ $# -gt 0 ]; then printf '%s\n' "$@"; else git ls-files -co --exclude-standard; fi |
	grep -Ev '(^|/)testdata/(fuzz|wasm)/|^abi/testdata/|^\.ci/|^LICENSE$' |
	while read -r f; do [ -f "$f" ] && [ ! -L "$f" ] && printf '%s\n' "$f"; done >"$tmp/files" || true

# Text of Go: comments and strings, a line of the file each.
go_text() {
	awk '
	FNR == 1 { raw = 0; block = 0 }
	{
		rest = $0; out = ""
		while (rest != "") {
			if (block) {
				i = index(rest, "*/")
				if (!i) { out = out " " rest; break }
				out = out " " substr(rest, 1, i - 1); rest = substr(rest, i + 2); block = 0; continue
			}
			if (raw) {
				i = index(rest, "`")
				if (!i) { out = out " " rest; break }
				out = out " " substr(rest, 1, i - 1); rest = substr(rest, i + 1); raw = 0; continue
			}
			if (!match(rest, /\/\/|\/\*|"|`|'"'"'(\\.|[^'"'"'\\])[^'"'"']*'"'"'/)) break
			c = substr(rest, RSTART, 1); two = substr(rest, RSTART, 2); p = RSTART; n = RLENGTH
			if (two == "//") { out = out " " substr(rest, p); break }
			if (two == "/*") { block = 1; rest = substr(rest, p + 2); continue }
			if (c == "`") { raw = 1; rest = substr(rest, p + 1); continue }
			if (c == "\047") { rest = substr(rest, p + n); continue }
			rest = substr(rest, p)
			if (!match(rest, /^"(\\.|[^"\\])*"/)) break
			out = out " " substr(rest, 1, RLENGTH); rest = substr(rest, RLENGTH + 1)
		}
		if (out != "") print FILENAME "\t" FNR "\t" out
	}' "$@"
}

# Text of Markdown: without code, be it fenced, indented or in backquotes.
md_text() {
	awk '
	FNR == 1 { fence = 0; before = "" }
	/^[ \t]*(```|~~~)/ { fence = !fence; before = $0; next }
	fence { next }
	/^(    |\t)/ && before == "" { next }
	/^(    |\t)/ && before ~ /^(    |\t)/ { next }
	{ before = $0; line = $0; gsub(/`[^`]*`/, "CODE", line); gsub(/\]\([^)]*\)/, "]", line); print FILENAME "\t" FNR "\t" line }' "$@"
}

grep -E '\.go$' "$tmp/files" >"$tmp/go" || true
grep -E '\.md$' "$tmp/files" >"$tmp/md" || true
grep -E '\.schema\.json$|^docs/dashboards/' "$tmp/files" >"$tmp/other" || true
{
	[ ! -s "$tmp/go" ] || go_text $(cat "$tmp/go")
	[ ! -s "$tmp/md" ] || md_text $(cat "$tmp/md")
	[ ! -s "$tmp/other" ] || awk '{ print FILENAME "\t" FNR "\t" $0 }' $(cat "$tmp/other")
} >"$tmp/text"

# The patterns, each over all of the text.
: >"$tmp/found"
awk -F '\t' '$1 == "ok" { print $2 }' "$words" >"$tmp/ok"
sed -E "$(awk '{ gsub(/\//, "\\/"); printf "s/%s/_/g;", $0 }' "$tmp/ok")" "$tmp/text" >"$tmp/clean"
while IFS=$'\t' read -r pattern instead except; do
	case $pattern in '' | '#'* | ok | columns) continue ;; esac
	grep -iE "	[^	]*$pattern" "$tmp/clean" | grep -Ev "^(${except:-$^})" |
		awk -F '\t' -v say="$instead" -v p="$pattern" '{ text = $3; sub(/^ +/, "", text); printf "%s:%s: say \"%s\": %.140s\n", $1, $2, say, text }' >>"$tmp/found" || true
done <"$words"

# Long lines: tables and lines without a space to break at are left alone.
columns=$(awk -F '\t' '$1 == "columns" { print "^(" $3 ")" }' "$words")
[ ! -s "$tmp/md" ] || awk -v except="${columns:-^$}" '
	FNR == 1 { fence = 0 }
	/^[ \t]*(```|~~~)/ { fence = !fence; next }
	fence || /^(    |\t)/ || /^[ \t]*\|/ || FILENAME ~ except { next }
	{ gsub(/[\200-\277]/, "") } # all but the first byte of each letter
	length($0) > 120 && substr($0, 2, 118) ~ /[^ ] / { printf "%s:%d: %d columns, at most 120\n", FILENAME, FNR, length($0) }' $(cat "$tmp/md") >>"$tmp/found"

# Long sentences: words from one end (.!?) to the next; a cell of a table, an item of a list and a heading end one too.
[ ! -s "$tmp/md" ] || md_text $(cat "$tmp/md") | awk -F '\t' '
	function done() { if (n > 30) printf "%s:%d: sentence of %d words, at most 30: %s ...\n", file, at, n, first; n = 0; first = "" }
	$1 != file { done(); file = $1; last = 0 }
	$2 != last + 1 { done() }
	{
		last = $2; line = $3
		if (line ~ /^[ \t]*$/) { done(); next }
		if (line ~ /^[ \t]*([-*+]|[0-9]+[.)])[ \t]/ || line ~ /^#/ || line ~ /^[ \t]*\|/) { done(); sub(/^[ \t]*([-*+]|[0-9]+[.)]|#+)[ \t]+/, "", line) }
		gsub(/\|/, " | ", line)
		m = split(line, w, /[ \t]+/)
		for (i = 1; i <= m; i++) {
			if (w[i] == "") continue
			if (w[i] == "|") { done(); continue }
			if (w[i] !~ /[A-Za-z0-9]/) continue
			if (!n) at = $2
			if (n < 6) first = first (n ? " " : "") w[i]
			n++
			if (w[i] ~ /[.!?]["\047)*_\]]*$/ && w[i] !~ /^(e\.g\.|i\.e\.|etc\.|vs\.)$/) done()
		}
		if (line ~ /^#/) done()
	}
	END { done() }' >>"$tmp/found"

sort -t: -k1,1 -k2,2n -u "$tmp/found"
if [ -s "$tmp/found" ]; then
	echo "words: $(sort -u "$tmp/found" | wc -l) findings; .ci/words.txt says what is wrong, and where a word is allowed" >&2
	exit 1
fi
