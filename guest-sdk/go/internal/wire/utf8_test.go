// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"strings"
	"testing"
	"unicode/utf8"
)

// TestValidUTF8_IsThatOfTheStandardLibrary puts an invalid byte, and a rune, at
// each position of strings of each length that the code distinguishes.
func TestValidUTF8_IsThatOfTheStandardLibrary(t *testing.T) {
	for n := range 70 {
		ascii := strings.Repeat("a", n)
		if !validUTF8(ascii) {
			t.Errorf("%d letters are refused", n)
		}
		for i := range n {
			for _, part := range []string{"\x80", "\xff", "é", "世"} {
				s := ascii[:i] + part + ascii[i+1:]
				if got, want := validUTF8(s), utf8.ValidString(s); got != want {
					t.Errorf("validUTF8(%q) is %v", s, got)
				}
			}
		}
	}
}

// FuzzValidUTF8 compares with utf8.ValidString.
func FuzzValidUTF8(f *testing.F) {
	f.Add("a string of more than sixteen bytes, é")
	f.Fuzz(func(t *testing.T, s string) {
		if got, want := validUTF8(s), utf8.ValidString(s); got != want {
			t.Errorf("validUTF8(%q) is %v", s, got)
		}
	})
}
