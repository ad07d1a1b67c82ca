// SPDX-License-Identifier: Apache-2.0

package cases

import (
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/host/load"
	"github.com/wasmctl/wasmctl/testdata/wasm"
)

const costText = `cost: {fuel: 1k, requests: 9} # stays
cases:
  - name: has none
    key: a
    expect: {} # stays

  - name: keeps within its own
    key: b
    cost: {fuel: 5000}

  - cost: # goes
      memory: 64Ki
    name: too much of two
    key: c
    expect:
      action: requeue 5m
`

// A limit that is exceeded is raised, with room; others stay, and missing ones are
// added on request alone.
func TestUpdate_RaisesLimits(t *testing.T) {
	spent := Cost{Fuel: 4567, Requests: 3, Memory: 2 << 20, Result: 40}
	for _, tt := range []struct {
		name  string
		costs bool
		want  string
	}{
		{"those that are exceeded", false, `cost: {fuel: 1k, requests: 9} # stays
cases:
  - name: has none
    key: a
    expect: {} # stays
    cost: {fuel: 5100}

  - name: keeps within its own
    key: b
    cost: {fuel: 5000}

  - cost: {fuel: 5100, memory: 2304Ki}
    name: too much of two
    key: c
    expect:
      action: back-off
`},
		{"all that are missing", true, `cost: {fuel: 1k, requests: 9} # stays
cases:
  - name: has none
    key: a
    expect: {} # stays
    cost: {fuel: 5100, memory: 2304Ki, result: 44}

  - name: keeps within its own
    key: b
    cost: {fuel: 5000, memory: 2304Ki, result: 44}

  - cost: {fuel: 5100, memory: 2304Ki, result: 44}
    name: too much of two
    key: c
    expect:
      action: back-off
`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			f, err := Parse("f.yaml", []byte(costText))
			if err != nil {
				t.Fatal(err)
			}
			verdicts := []Verdict{
				{Case: f.Cases[0], Seen: &Expect{}, Cost: &spent},
				{Case: f.Cases[1], Seen: &Expect{}, Cost: &spent},
				{Case: f.Cases[2], Seen: &Expect{Action: backOff}, Diff: []string{"-"}, Cost: &spent},
			}
			if verdicts[1].Failed() || !verdicts[0].Failed() {
				t.Error("a case fails by its own limit, else by that of its file")
			}
			got, err := Update(f, verdicts, tt.costs)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, string(got)); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

// For any cost, a run fails exactly if a part exceeds its limit, and fits into the proposed limits.
func TestVerdict_FitsIntoItsProposal(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	amount := func() *Amount {
		a := Amount(random.Int64N(1 << random.IntN(40)))
		return []*Amount{nil, &a}[random.IntN(2)]
	}
	for range 2000 {
		c := &Case{Cost: Budget{amount(), amount(), amount(), amount()}, file: &File{Cost: Budget{Fuel: amount()}}}
		v := &Verdict{Case: c, Cost: &Cost{random.Int64N(1 << 40), random.Int64N(50), random.Int64N(1 << 32), random.Int64N(1 << 20)}}
		wants := false
		b := c.Budget()
		for _, p := range []struct {
			spent int64
			limit *Amount
		}{{v.Cost.Fuel, b.Fuel}, {v.Cost.Requests, b.Requests}, {v.Cost.Memory, b.Memory}, {v.Cost.Result, b.Result}} {
			wants = wants || p.limit != nil && p.spent > int64(*p.limit)
		}
		if v.Failed() != wants || (v.CostText(false) != "") != wants {
			t.Fatalf("%+v of %s: fails %t, want %t", *v.Cost, v.CostText(true), v.Failed(), wants)
		}
		text := v.CostText(true)
		if text == "" {
			continue
		}
		f, err := Parse("f.yaml", []byte("cases:\n  - name: a\n    key: b\n    "+text))
		if err != nil {
			t.Fatal(err)
		}
		again := &Verdict{Case: f.Cases[0], Cost: v.Cost}
		if again.Failed() {
			t.Fatalf("%+v does not fit into %s: %v", *v.Cost, text, again.Exceeded())
		}
		for _, i := range v.Items() {
			if i.Next < i.Spent || i.Next > i.Spent*5/4+page+20 {
				t.Fatalf("%s: %d for %d", i.Name, i.Next, i.Spent)
			}
		}
	}
}

// A run costs the same each time.
func TestRun_CostsTheSameEachTime(t *testing.T) {
	module, err := load.WithManifest(wasm.Reports, &abi.Manifest{Name: "x", For: &abi.Watch{Group: "x.dev", Version: "v1", Kind: "X"}})
	if err != nil {
		t.Fatal(err)
	}
	f, err := Parse("f.yaml", []byte("cases:\n  - name: a"+object))
	if err != nil {
		t.Fatal(err)
	}
	suite := &Suite{Wasm: module, Name: "x"}
	var first *Cost
	for range 3 {
		v, err := suite.Run(t.Context(), f.Cases[0])
		if err != nil {
			t.Fatal(err)
		}
		if first == nil {
			first = v.Cost
		}
		if diff := cmp.Diff(first, v.Cost); diff != "" || v.Cost.Fuel == 0 || v.Cost.Memory == 0 {
			t.Errorf("%+v; -first +now:\n%s", v.Cost, diff)
		}
	}
}
