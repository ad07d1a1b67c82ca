// SPDX-License-Identifier: Apache-2.0

package suggest

import "testing"

func TestWord_IsTheNearestWithinASlip(t *testing.T) {
	known := []string{"concurrency", "config", "configFile", "for"}
	for unknown, want := range map[string]string{
		"concurency": "concurrency", "configfile": "configFile", "confg": "config", "fro": "for", "module": "", "": "",
	} {
		if got := Word(unknown, known); got != want {
			t.Errorf("Word(%q) = %q, want %q", unknown, got, want)
		}
	}
	if got := Word("x", nil); got != "" {
		t.Errorf("a word out of none: %q", got)
	}
}

func TestHint_NamesTheNearestWordOrNothing(t *testing.T) {
	known := []string{"owner", "label", "annotation"}
	for unknown, want := range map[string]string{
		"owners": `; did you mean "owner"?`, "OWNER": `; did you mean "owner"?`, "lable": `; did you mean "label"?`,
		"anotatoin": `; did you mean "annotation"?`, "": "", "xyzzy": "", "something-else": "",
	} {
		if got := Hint(unknown, known); got != want {
			t.Errorf("Hint(%q) = %q, want %q", unknown, got, want)
		}
	}
}

// FuzzDistance checks the properties of a distance: symmetric, zero only for equal words, and at most the length of the
// longer word.
func FuzzDistance(f *testing.F) {
	f.Add("kitten", "sitting")
	f.Add("", "a")
	f.Add("ab", "ba")
	f.Fuzz(func(t *testing.T, a, b string) {
		if len(a) > 200 || len(b) > 200 {
			return
		}
		d := Distance(a, b)
		if d != Distance(b, a) || (d == 0) != (a == b) || d > max(len(a), len(b)) {
			t.Fatalf("%q, %q: %d", a, b, d)
		}
	})
}

func TestDistance_CountsSlips(t *testing.T) {
	tests := []struct {
		a, b string
		want int
	}{
		{"", "", 0},
		{"abc", "abc", 0},
		{"", "abc", 3},
		{"abc", "abd", 1},
		{"abc", "acb", 1},
		{"pods", "pod", 1},
		{"kitten", "sitting", 3},
		{"deploymnets", "deployments", 1},
		{"ab", "ba", 1},
	}
	for _, tt := range tests {
		if got, back := Distance(tt.a, tt.b), Distance(tt.b, tt.a); got != tt.want || back != tt.want {
			t.Errorf("Distance(%q, %q) = %d and %d, want %d", tt.a, tt.b, got, back, tt.want)
		}
	}
}
