// SPDX-License-Identifier: Apache-2.0

package share

import (
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/wasmctl/wasmctl/abi"
)

func TestLimits_HaveARowForEachName(t *testing.T) {
	var names []abi.LimitName
	for i, row := range limitRows {
		names = append(names, row.name)
		var l Limits
		if !l.Set(row.name, int64(i)+1) || *row.field(&l) != int64(i)+1 || l.Get(row.name) != int64(i)+1 {
			t.Errorf("%s: Set and Get do not agree", row.name)
		}
	}
	if diff := cmp.Diff(abi.LimitNames, names); diff != "" {
		t.Error(diff)
	}
	for _, name := range abi.FixedLimits {
		var l Limits
		if l.Set(name, 1) || l != (Limits{}) {
			t.Errorf("%s: is fixed and was set", name)
		}
	}
	var l Limits
	if l.Set("speed", 1) || l.Get("speed") != 0 {
		t.Error("there is a limit of any name")
	}
}

// Whatever a manifest says, a module gets no more than its config or else the
// default gives, and no more than it asks for itself.
func TestLimitsFor_TheSmallerWins(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	pick := func(most int64) int64 {
		return []int64{0, 1 + r.Int64N(100), most/2 + 1, most}[r.IntN(4)]
	}
	for range 2000 {
		row := limitRows[r.IntN(len(limitRows))]
		if row.name == abi.LimitTimeout || row.name == abi.LimitMemory {
			continue // in other units, and rounded: below
		}
		var l Limits
		configured, asked := pick(row.name.Most()), pick(row.name.Most())
		l.Set(row.name, configured)
		var man abi.Manifest
		man.Limits = manifestLimit(t, row.name, asked)
		want := configured
		if want == 0 {
			want = row.standard
		}
		if asked > 0 && (want == 0 || asked < want) {
			want = asked
		}
		in, _ := l.For(&man)
		if got := in.Get(row.name); got != want {
			t.Fatalf("%s: configured %d, asked for %d, default %d: got %d, want %d", row.name, configured, asked, row.standard, got, want)
		}
	}
}

// manifestLimit is Limits of a manifest with one limit.
func manifestLimit(t *testing.T, name abi.LimitName, value int64) *abi.Limits {
	t.Helper()
	b, err := abi.AppendValue(nil, map[string]any{"limits": map[string]any{string(name): value}})
	if err != nil {
		t.Fatal(err)
	}
	m, unknown, err := abi.DecodeManifest(b)
	if err != nil || len(unknown) > 0 {
		t.Fatal(unknown, err)
	}
	return m.Limits
}
