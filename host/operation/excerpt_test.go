// SPDX-License-Identifier: Apache-2.0

package operation

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"testing"
)

// The excerpt is the start and the end, whatever the sizes of the writes.
func TestExcerpt_KeepsBothEnds(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	for range 200 {
		var e Excerpt
		var all []byte
		for range rnd.IntN(12) {
			p := bytes.Repeat([]byte{byte('a' + rnd.IntN(26))}, rnd.IntN(2*maxTail))
			all = append(all, p...)
			e.Add(p)
		}
		want := string(all)
		if cut := len(all) - maxHead - maxTail; cut > 0 {
			want = fmt.Sprintf("%s\n[%d bytes left out]\n%s", all[:maxHead], cut, all[len(all)-maxTail:])
		}
		if got := e.String(); got != want {
			t.Fatalf("of %d bytes: got %d, want %d", len(all), len(got), len(want))
		}
	}
}
