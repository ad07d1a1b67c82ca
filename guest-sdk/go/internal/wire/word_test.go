// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"bytes"
	"strings"
	"testing"
)

// TestWords_AreLikeLoopsOverBytes puts each byte at each position of strings of
// each length that the code distinguishes.
func TestWords_AreLikeLoopsOverBytes(t *testing.T) {
	for n := range 28 {
		text := strings.Repeat("a", n)
		if !isPlain(text) || !equal(text, strings.Clone(text)) || equal(text, text+"a") {
			t.Errorf("%d letters are not as they are", n)
		}
		for i := range n {
			for c := range 256 {
				s := text[:i] + string([]byte{byte(c)}) + text[i+1:]
				if got, want := isPlain(s), c >= ' ' && c != '"' && c != '\\'; got != want {
					t.Errorf("isPlain(%q) is %v", s, got)
				}
				if got, want := equal(s, text), s == text; got != want {
					t.Errorf("equal(%q, %q) is %v", s, text, got)
				}
			}
		}
	}
}

// FuzzWords compares with loops over single bytes.
func FuzzWords(f *testing.F) {
	f.Add("a string of more than sixteen bytes", "another")
	f.Fuzz(func(t *testing.T, a, b string) {
		if got, want := equal(a, b), a == b; got != want {
			t.Errorf("equal(%q, %q) is %v", a, b, got)
		}
		if !equal(a, strings.Clone(a)) {
			t.Errorf("%q differs from itself", a)
		}
		if got, want := isPlain(a), !strings.ContainsFunc(a, func(r rune) bool { return r < ' ' || r == '"' || r == '\\' }); got != want {
			t.Errorf("isPlain(%q) is %v", a, got)
		}
		word := make([]byte, 8)
		copy(word, a)
		if got, want := loadUpTo8(a), load8(string(word)); got != want {
			t.Errorf("loadUpTo8(%q) is %x, want %x", a, got, want)
		}
		if quoted := appendQuoted(nil, []byte(a)); isPlain(a) != bytes.Equal(quoted, []byte(`"`+a+`"`)) {
			t.Errorf("%q is quoted as %s", a, quoted)
		}
	})
}
