// SPDX-License-Identifier: Apache-2.0

package printer

import (
	"bytes"
	"math/rand/v2"
	"strings"
	"testing"
)

// TestTerminal_ColoursLevelsAndResults: only these words have a color, and only at their place in a line.
func TestTerminal_ColoursLevelsAndResults(t *testing.T) {
	for plain, want := range map[string]string{
		"12:30:00.123 ERROR watch failing ok\n":    "12:30:00.123 " + colourBad + "ERROR" + colourOff + " watch failing ok\n",
		"12:30:00.123 WARN  slow\n":                "12:30:00.123 " + colourWarn + "WARN" + colourOff + "  slow\n",
		"12:30:00.123 INFO  ERROR is no level\n":   "12:30:00.123 INFO  ERROR is no level\n",
		"pass a.yaml:3: makes\nfail a.yaml:9: x\n": colourGood + "pass" + colourOff + " a.yaml:3: makes\n" + colourBad + "fail" + colourOff + " a.yaml:9: x\n",
		"ok    exports  all\n\t-> fail it\n":       colourGood + "ok" + colourOff + "    exports  all\n\t-> fail it\n",
		"failure of the ok kind\n":                 "failure of the ok kind\n",
		"12:30:00.123":                             "12:30:00.123",
		"x2:30:00.123 ERROR forged\n":              "x2:30:00.123 ERROR forged\n",
		"\x1b[31mfail \n":                          `\u001b[31mfail ` + "\n",
		"":                                         "",
	} {
		var out bytes.Buffer
		for _, part := range strings.SplitAfter(plain, "\n") {
			if _, err := (&Terminal{w: &out, coloured: true}).Write([]byte(part)); err != nil {
				t.Fatal(err)
			}
		}
		if got := out.String(); got != want {
			t.Errorf("%q is written as %q, want %q", plain, got, want)
		}
	}
}

// TestTerminal_ColoursChangeNoText: without its colors, the output is that of a terminal without colors, for any split
// of a text into writes.
func TestTerminal_ColoursChangeNoText(t *testing.T) {
	rnd := rand.New(rand.NewPCG(3, 4))
	pieces := []string{"fail ", "ok ", "12:30:00.123 ", "WARN ", "\n", "a", "é", "\x1b[31m", "日"}
	for range 2000 {
		var whole []byte
		for range rnd.IntN(12) {
			whole = append(whole, pieces[rnd.IntN(len(pieces))]...)
		}
		var coloured, plain bytes.Buffer
		with, without := &Terminal{w: &coloured, coloured: true}, &Terminal{w: &plain}
		for rest := whole; len(rest) > 0; {
			n := 1 + rnd.IntN(len(rest))
			for _, w := range []*Terminal{with, without} {
				if m, err := w.Write(rest[:n]); m != n || err != nil {
					t.Fatal(m, err)
				}
			}
			rest = rest[n:]
		}
		bare := strings.NewReplacer(colourGood, "", colourBad, "", colourWarn, "", colourOff, "").Replace(coloured.String())
		if bare != plain.String() {
			t.Fatalf("%q: got %q, want %q", whole, bare, plain.String())
		}
	}
}
