// SPDX-License-Identifier: Apache-2.0

package slots_test

import (
	"math/rand/v2"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/sharding"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/uuid"

	"github.com/wasmctl/wasmctl/runtime/shard/slots"
)

// Each object is in exactly one slot, the one for which the API server's own selector selects it.
func TestOf_IsWhatTheAPIServerSelects(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 16))
	for range 2000 {
		n := 1 + rng.IntN(slots.Max)
		uid := string(uuid.NewUUID())
		slot := slots.Of(uid, n)
		for _, other := range []int{slot, rng.IntN(n), (slot + 1) % n, (slot + n - 1) % n} {
			r := slots.Range{Field: slots.UID, Slot: other, N: n}
			if r.Has(uid, "") != (other == slot) {
				t.Fatalf("uid %s is in slot %d of %d, and in %d too", uid, slot, n, other)
			}
			if selects(t, r.Selector(), uid) != (other == slot) {
				t.Fatalf("%s selects uid %s of slot %d: %t", r.Selector(), uid, slot, other != slot)
			}
		}
	}
}

// selects evaluates a selector like the API server.
func selects(t *testing.T, selector, uid string) bool {
	t.Helper()
	parts := strings.Split(selector, "'")
	if len(parts) != 5 || !strings.HasPrefix(selector, "shardRange(object.metadata.uid, ") {
		t.Fatalf("selector %q", selector)
	}
	s := sharding.NewSelector(sharding.ShardRangeRequirement{Key: "object.metadata.uid", Start: parts[1], End: parts[3]})
	ok, err := s.Matches(&metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{UID: types.UID(uid)}})
	if err != nil {
		t.Fatal(err)
	}
	return ok
}

func TestOf_SpreadsUIDs(t *testing.T) {
	const n, objects = 64, 64_000
	var counts [n]int
	for range objects {
		counts[slots.Of(string(uuid.NewUUID()), n)]++
	}
	for slot, c := range counts {
		if c < 800 || c > 1200 {
			t.Errorf("slot %d has %d objects of %d", slot, c, objects)
		}
	}
}

func TestSet_TextRoundTrip(t *testing.T) {
	rng := rand.New(rand.NewPCG(2, 16))
	for range 500 {
		var s, back slots.Set
		n := 0
		for i := range slots.Max {
			if rng.IntN(3) == 0 {
				s.Put(i, true)
				n++
			}
		}
		text, err := s.MarshalText()
		if err == nil {
			err = back.UnmarshalText(text)
		}
		if err != nil || back != s || s.Len() != n {
			t.Fatalf("%s: read back as %s, %d slots of %d: %v", text, &back, s.Len(), n, err)
		}
	}
}

func FuzzSet(f *testing.F) {
	for _, text := range []string{"", "0", "0-3,17", "255", "256", "3-1", "a", ",", "1-", "-1", "99999999999999999999"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		var s, back slots.Set
		if s.UnmarshalText([]byte(text)) != nil {
			return
		}
		out, _ := s.MarshalText() // never fails
		if err := back.UnmarshalText(out); err != nil || back != s {
			t.Errorf("%q: %q: %v", text, out, err)
		}
	})
}

func TestOf_AllocatesNothing(t *testing.T) {
	uid := string(uuid.NewUUID())
	sum := 0
	if n := testing.AllocsPerRun(100, func() { sum += slots.Of(uid, 64) }); n != 0 {
		t.Errorf("%v allocations, for slot %d", n, sum/101)
	}
}
