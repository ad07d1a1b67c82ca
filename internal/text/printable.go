package text

import (
	"strconv"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

// Printable returns s with an escape like \u001b in the place of each character
// that a terminal could take for a command, or that hides or reorders others:
// control characters, formatting such as bidi overrides, spaces of no or unusual
// width. Ends of lines and tabs stay. The escapes are those of JSON, so that a JSON
// text keeps its meaning.
func Printable(s string) string {
	if !strings.ContainsFunc(s, unprintable) && utf8.ValidString(s) {
		return s
	}
	return string(AppendPrintable(nil, []byte(s)))
}

// Line is Printable for a text that has one line of ours: it escapes ends of lines
// and tabs too.
func Line(s string) string {
	return Printable(lineBreaks.Replace(s))
}

var lineBreaks = strings.NewReplacer("\n", `\n`, "\r", `\r`, "\t", `\t`)

// AppendPrintable is Printable for bytes.
func AppendPrintable(b, s []byte) []byte {
	for len(s) > 0 {
		r, n := utf8.DecodeRune(s)
		switch {
		case !unprintable(r):
			b = utf8.AppendRune(b, r) // U+FFFD for what is no character
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
	const bit16 = 1 << 16 // so that there are leading zeros
	return append(append(b, `\u`...), strconv.FormatInt(int64(r)|bit16, 16)[1:]...)
}
