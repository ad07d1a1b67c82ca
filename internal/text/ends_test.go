// SPDX-License-Identifier: Apache-2.0

package text

import (
	"strings"
	"testing"
	"unicode/utf8"
)

// TestEnds_KeepsBoth: a program may say first or last why it ends, so both stay
// readable, in as many bytes as there may be.
func TestEnds_KeepsBoth(t *testing.T) {
	for _, between := range []string{"", "usage ", "größer "} {
		for most := 100; most < 200; most++ {
			long := "first: cause" + strings.Repeat(between, 1000) + "last: cause"
			got := Ends(long, most)
			if len(got) > most || !strings.HasPrefix(got, "first: cause") || !strings.HasSuffix(got, "last: cause") || !utf8.ValidString(got) {
				t.Fatalf("%d bytes: %q", most, got)
			}
			if cut := strings.Contains(got, "bytes left out"); cut != (len(long) > most) {
				t.Fatalf("%q", got)
			}
		}
	}
}
