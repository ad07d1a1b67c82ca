// SPDX-License-Identifier: Apache-2.0

package printer

import (
	"bytes"
	"math/rand/v2"
	"testing"

	"github.com/wasmctl/wasmctl/internal/text"
)

// TestTerminal_AgreesWithPrintable: the output is printable and complete for any split of a text into
// writes.
func TestTerminal_AgreesWithPrintable(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	pieces := []string{"a", "\n", "\t", "é", "日", "\U0001f600", "\x1b[2J", "\u009b", "\u202e", "\U000e0041", "\xff", "\xe6\x97", "\r"}
	for range 2000 {
		var whole []byte
		for range rnd.IntN(12) {
			whole = append(whole, pieces[rnd.IntN(len(pieces))]...)
		}
		var out bytes.Buffer
		w := NewTerminal(&out)
		for rest := append(bytes.Clone(whole), '\n'); len(rest) > 0; {
			n := 1 + rnd.IntN(len(rest))
			if m, err := w.Write(rest[:n]); m != n || err != nil {
				t.Fatal(m, err)
			}
			rest = rest[n:]
		}
		if got, want := out.String(), text.Printable(string(whole)+"\n"); got != want {
			t.Fatalf("%q: got %q, want %q", whole, got, want)
		}
	}
}

// TestScreen_KeepsItsOwnColoursOnly: a line has only the color that this package gives it.
func TestScreen_KeepsItsOwnColoursOnly(t *testing.T) {
	var out bytes.Buffer
	lines := []string{colourBad + "a\x1b[0m\nb" + colourOff, "\x1b[32mgreen"}
	if err := (Screen{w: &out, coloured: true}).Write(lines); err != nil {
		t.Fatal(err)
	}
	if got, want := out.String(), colourBad+`a\u001b[0m\nb`+colourOff+"\n"+`\u001b[32mgreen`+"\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
