// SPDX-License-Identifier: Apache-2.0

package text

import (
	"strconv"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

// Printable replaces characters that a terminal could interpret as a command, or that hide or reorder others, with escapes like \u001b:
// control characters, formatting such as bidi overrides, and spaces of zero or unusual width. Line breaks and tabs are preserved. The
// escapes are those of JSON, so that a JSON text keeps its meaning.
func Printable(s string) string {
	if !strings.ContainsFunc(s, unprintable) && utf8.ValidString(s) {
		return s
	}
	return string(AppendPrintable(nil, []byte(s)))
}

// Line is like Printable, for a text that must stay on one line: it also escapes line breaks and tabs.
func Line(s string) string {
	return Printable(lineBreaks.Replace(s))
}

var lineBreaks = strings.NewReplacer("\n", `\n`, "\r", `\r`, "\t", `\t`)

// AppendPrintable is like Printable, for bytes.
func AppendPrintable(b, s []byte) []byte {
	for len(s) > 0 {
		r, n := utf8.DecodeRune(s)
		switch {
		case !unprintable(r):
			b = utf8.AppendRune(b, r) // U+FFFD for invalid UTF-8
		case r > 0xffff:
			high, low := utf16.EncodeRune(r)
			b = appendEscape(appendEscape(b, high), low)
		default:
			b = appendEscape(b, r)
		}
		s = s[n:]
	}
	return b
}

func unprintable(r rune) bool { return r != '\n' && r != '\t' && !unicode.IsPrint(r) }

func appendEscape(b []byte, r rune) []byte {
	const bit16 = 1 << 16 // provides leading zeros
	return append(append(b, `\u`...), strconv.FormatInt(int64(r)|bit16, 16)[1:]...)
}
