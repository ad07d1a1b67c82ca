// SPDX-License-Identifier: Apache-2.0

package text

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"
)

func TestPrintable_EscapesWhatCommandsATerminal(t *testing.T) {
	for in, want := range map[string]string{
		"plain é 日本\n\tx":            "plain é 日本\n\tx",
		"\x1b[2J\a\b\r\x00\x7f":      `\u001b[2J\u0007\u0008\u000d\u0000\u007f`,
		"\u009b31m":                  `\u009b31m`,                 // C1
		"\x9b31m":                    "\ufffd31m",                 // C1 for an 8-bit terminal
		"\u202egnp.exe\u2066\u200f":  `\u202egnp.exe\u2066\u200f`, // bidi
		"a\u200b\u200d\ufeff\u00adb": `a\u200b\u200d\ufeff\u00adb`,
		"\u2028\u2029\u00a0":         `\u2028\u2029\u00a0`,
		"\U000e0041":                 `\udb40\udc41`, // an invisible tag
	} {
		if got := Printable(in); got != want {
			t.Errorf("%q: got %q, want %q", in, got, want)
		}
	}
	if got := Line("a\r\nb\tc\x1b"); got != `a\r\nb\tc\u001b` {
		t.Errorf("a line: %q", got)
	}
}

// A JSON text keeps its meaning, and escaping it again changes nothing.
func FuzzPrintable(f *testing.F) {
	f.Add("a\x1b\u202e\U000e0041\x9b\\\"")
	f.Fuzz(func(t *testing.T, s string) {
		got := Printable(s)
		if !utf8.ValidString(got) || strings.ContainsFunc(got, func(r rune) bool { return r != '\n' && r != '\t' && !unicode.IsPrint(r) }) {
			t.Errorf("%q: got %q", s, got)
		}
		if again := Printable(got); again != got {
			t.Errorf("%q: %q is escaped again: %q", s, got, again)
		}
		b, err := json.Marshal(s)
		var want, back string
		if err != nil || json.Unmarshal(b, &want) != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal([]byte(Printable(string(b))), &back); err != nil || back != want {
			t.Errorf("%q: as JSON it is %q: %v", s, back, err)
		}
	})
}
