// SPDX-License-Identifier: Apache-2.0

package text

import "testing"

func TestTruncate_KeepsCharactersWhole(t *testing.T) {
	for _, tt := range []struct {
		s                    string
		limit                int
		truncated, shortened string
	}{
		{"", 0, "", ""}, {"abc", 3, "abc", "abc"}, {"abcd", 3, "abc", "abc... (4 bytes)"}, {"aé", 2, "a", "a... (3 bytes)"}, {"世", 0, "", "... (3 bytes)"},
	} {
		if got := Truncate(tt.s, tt.limit); got != tt.truncated {
			t.Errorf("Truncate(%q, %d) is %q, want %q", tt.s, tt.limit, got, tt.truncated)
		}
		if got := Shorten(tt.s, tt.limit); got != tt.shortened {
			t.Errorf("Shorten(%q, %d) is %q, want %q", tt.s, tt.limit, got, tt.shortened)
		}
	}
}
