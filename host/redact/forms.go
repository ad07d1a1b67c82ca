// SPDX-License-Identifier: Apache-2.0

package redact

import (
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"html"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// maxHex is the maximum length of a value that is also recognized in hexadecimal: keys and tokens
// are printed like that, files are not.
const maxHex = 1 << 10

// plain adds the forms in which a value appears: its lines, plain and escaped, the whole value in
// base64 and hexadecimal, and the strings of a value that is JSON.
func plain(text string, add func(string)) {
	standard := strings.TrimRight(base64.StdEncoding.EncodeToString([]byte(text)), "=")
	add(standard)
	if urlSafe := strings.NewReplacer("+", "-", "/", "_").Replace(standard); urlSafe != standard {
		add(urlSafe)
	}
	if len(text) <= maxHex && len(text) >= MinLength && !harmless[text] {
		lower := hex.EncodeToString([]byte(text))
		add(lower)
		if upper := strings.ToUpper(lower); upper != lower {
			add(upper)
		}
	}
	lines(text, add)
	if trimmed := strings.TrimSpace(text); strings.HasPrefix(trimmed, "{") {
		var value any
		if json.Unmarshal([]byte(trimmed), &value) == nil {
			leaves(value, func(leaf string) { lines(leaf, add) })
		}
	}
}

func lines(text string, add func(string)) {
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if harmless[line] {
			continue
		}
		add(line)
		if !unescaped(line) {
			escapes(line, add)
		}
	}
}

// unescaped reports whether a text is the same in every escaped form.
func unescaped(text string) bool {
	return !strings.ContainsFunc(text, func(c rune) bool {
		return (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (c < '0' || c > '9') && c != '-' && c != '_' && c != '.' && c != '~'
	})
}

// escapes adds the distinct forms of a line in JSON, Go, HTML and URLs.
func escapes(line string, add func(string)) {
	inJSON := quoted(line)
	query := url.QueryEscape(line)
	forms := []string{
		inJSON, quoted(inJSON), strings.ReplaceAll(inJSON, "/", `\/`), asciiJSON(inJSON), escapeHTML(inJSON), escapeHTML(asciiJSON(inJSON)),
		unquote(strconv.Quote(line)), unquote(strconv.QuoteToASCII(line)), html.EscapeString(line),
		query, strings.ReplaceAll(query, "+", "%20"), url.PathEscape(line), strings.TrimPrefix(url.UserPassword("", line).String(), ":"),
	}
	slices.Sort(forms)
	for _, form := range slices.Compact(forms) {
		if form != line {
			add(form)
		}
	}
}

func unquote(s string) string { return s[1 : len(s)-1] }

// quoted returns a text in JSON with the fewest possible escapes, without its quotes.
func quoted(text string) string {
	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(text); err != nil {
		panic("BUG: string: " + err.Error())
	}
	return unquote(strings.TrimSuffix(b.String(), "\n"))
}

// escapeHTML escapes the characters that encoding/json escapes by default.
var escapeHTML = strings.NewReplacer("<", `\u003c`, ">", `\u003e`, "&", `\u0026`).Replace

// asciiJSON escapes all characters outside ASCII, like the default of some libraries.
func asciiJSON(text string) string {
	if !strings.ContainsFunc(text, func(c rune) bool { return c > '~' }) {
		return text
	}
	var b strings.Builder
	for _, c := range text {
		switch {
		case c <= '~':
			b.WriteRune(c)
		case c <= 0xffff:
			b.WriteString(`\u` + strconv.FormatInt(int64(c)+0x10000, 16)[1:])
		default:
			c -= 0x10000
			b.WriteString(`\u` + strconv.FormatInt(int64(0xd800+c>>10), 16) + `\u` + strconv.FormatInt(int64(0xdc00+c&0x3ff), 16))
		}
	}
	return b.String()
}

// harmless are values that hide nothing and are in every log.
var harmless = map[string]bool{"true": true, "false": true, "null": true, "none": true}

func leaves(value any, f func(string)) {
	switch value := value.(type) {
	case string:
		f(value)
	case []any:
		for _, item := range value {
			leaves(item, f)
		}
	case map[string]any:
		for _, part := range value {
			leaves(part, f)
		}
	}
}
