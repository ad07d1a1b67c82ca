// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"errors"
	"fmt"
	"testing"

	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/host/kubeapi/kinds"
	"github.com/wasmctl/wasmctl/internal/failure"
	"github.com/wasmctl/wasmctl/runtime/shard/slots"
)

// TestSplit_KeepsTogetherWhatBelongsTogether, for all manifests and options: an object that
// is gone is found by its namespace, children are with their parent unless the user wants
// otherwise, and one namespace is never split. SplitOf agrees with SplitBy for a namespaced
// kind.
func TestSplit_KeepsTogetherWhatBelongsTogether(t *testing.T) {
	for bits := range 1 << 4 {
		deletes, namespaced, owns, pending := bits&1 > 0, bits&2 > 0, bits&4 > 0, bits&8 > 0
		k := Watched{Kind: kinds.Kind{Namespaced: namespaced}, Watch: abi.Watch{Deletes: deletes}}
		p, m := &Plan{}, &abi.Manifest{For: &abi.Watch{Deletes: deletes}}
		if owns {
			p.Related, m.Owns = []Watched{{Owned: true}}, []abi.Watch{{}}
		}
		if pending {
			p.Pending, m.Watches = []Watched{{}}, []abi.Watch{{Optional: true}}
		}
		for _, want := range []string{"", ByUID, ByNamespace} {
			got, err := k.SplitBy(p, want)
			gone, alone := deletes && got.By != ByNamespace, !deletes && !owns && !pending
			refused := want == ByUID && deletes || want == ByNamespace && !namespaced && !deletes
			switch {
			case refused != errors.Is(err, failure.Usage):
				t.Errorf("%04b, wanted %q: %v", bits, want, err)
			case refused:
			case gone, want != "" && got.By != want, got.Why == "":
				t.Errorf("%04b, wanted %q: %+v", bits, want, got)
			case want == "" && !deletes && (got.By == ByUID) != (alone || !namespaced):
				t.Errorf("%04b: %+v", bits, got)
			case want == "" && namespaced && got != SplitOf(m):
				t.Errorf("%04b: a run says %+v, inspect %+v", bits, got, SplitOf(m))
			case got.Field() != slots.UID && got.Field() != slots.Namespace:
				t.Errorf("%04b: splits by %q", bits, got.Field())
			}
		}
	}
}

// TestSplit_AlikeNamespacesShareASlot checks the warning in docs/scale.md.
func TestSplit_AlikeNamespacesShareASlot(t *testing.T) {
	for i := 1; i <= 20; i++ {
		if name := fmt.Sprintf("team-%02d", i); slots.Of(name, 64) != slots.Of("team-01", 64) {
			t.Errorf("%s is in another slot than team-01: correct docs/scale.md", name)
		}
	}
}
