// SPDX-License-Identifier: Apache-2.0

package shadow

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/wasmctl/wasmctl/abi"
)

func apply(name string, body any) Write {
	return Write{What: "apply", Kind: "v1/ConfigMap", Key: abi.Key{Namespace: "shop", Name: name}, Body: body}
}

func data(kv ...any) map[string]any {
	m := map[string]any{}
	for i := 0; i < len(kv); i += 2 {
		m[kv[i].(string)] = kv[i+1]
	}
	return map[string]any{"data": m}
}

func TestCompare_NamesEachDifference(t *testing.T) {
	for _, tt := range []struct {
		name        string
		live, other Run
		want        []Difference
	}{
		{"the same", Run{Writes: []Write{apply("a", data("x", "1"))}}, Run{Writes: []Write{apply("a", data("x", "1"))}}, nil},
		{
			"a value, a list, a key on either side",
			Run{Writes: []Write{apply("a", data("x", "1", "l", []any{int64(1), "b"}, "old", true))}},
			Run{Writes: []Write{apply("a", data("x", "2", "l", []any{1.0, "c"}, "new", nil, "more", int64(3)))}},
			[]Difference{
				{Of: OfWrite, Write: "apply v1/ConfigMap shop/a", Path: "data.l[1]", Live: "b", Shadow: "c"},
				{Of: OfWrite, Write: "apply v1/ConfigMap shop/a", Path: "data.more", Shadow: int64(3)},
				{Of: OfWrite, Write: "apply v1/ConfigMap shop/a", Path: "data.old", Live: true},
				{Of: OfWrite, Write: "apply v1/ConfigMap shop/a", Path: "data.x", Live: "1", Shadow: "2"},
			},
		},
		{
			"a list of another length",
			Run{Writes: []Write{apply("a", []any{"b"})}},
			Run{Writes: []Write{apply("a", []any{})}},
			[]Difference{{Of: OfWrite, Write: "apply v1/ConfigMap shop/a", Live: []any{"b"}, Shadow: []any{}}},
		},
		{
			"a write that only one has, one twice",
			Run{Writes: []Write{apply("a", "1"), apply("a", "2"), {What: "delete", Kind: "v1/Pod", Key: abi.Key{Name: "p"}}}},
			Run{Writes: []Write{apply("b", "3"), apply("a", "1")}},
			[]Difference{
				{Of: OfWrite, Write: "apply v1/ConfigMap shop/a", Live: "2"},
				{Of: OfWrite, Write: "delete v1/Pod p", Live: true},
				{Of: OfWrite, Write: "apply v1/ConfigMap shop/b", Shadow: "3"},
			},
		},
		{
			"the order",
			Run{Writes: []Write{apply("a", "1"), apply("b", "1")}},
			Run{Writes: []Write{apply("b", "1"), apply("a", "1")}},
			[]Difference{{
				Of: OfWrite, Path: "order", Live: []any{"apply v1/ConfigMap shop/a", "apply v1/ConfigMap shop/b"},
				Shadow: []any{"apply v1/ConfigMap shop/b", "apply v1/ConfigMap shop/a"},
			}},
		},
		{
			"action and error",
			Run{Action: abi.Action{Requeue: true, After: time.Minute}},
			Run{Error: "trap"},
			[]Difference{{Of: OfError, Shadow: "trap"}, {Of: OfAction, Live: "requeue after 1m0s", Shadow: "await change"}},
		},
		{"a delay with jitter", Run{Action: abi.Action{Requeue: true, After: 100}}, Run{Action: abi.Action{Requeue: true, After: 92}}, nil},
		{
			"another delay",
			Run{Action: abi.Action{Requeue: true, After: 100}},
			Run{Action: abi.Action{Requeue: true, After: 80}},
			[]Difference{{Of: OfAction, Live: "requeue after 100ns", Shadow: "requeue after 80ns"}},
		},
		{
			"times as far apart as the runs", Run{Writes: []Write{apply("a", "2026-01-01T00:00:00Z")}}, Run{Writes: []Write{apply("a", "2026-01-01T00:00:31Z")}}, nil,
		},
		{
			"other times",
			Run{Writes: []Write{apply("a", "2026-01-01T00:00:00Z")}},
			Run{Writes: []Write{apply("a", "2026-01-01T00:00:33Z")}},
			[]Difference{{Of: OfWrite, Write: "apply v1/ConfigMap shop/a", Live: "2026-01-01T00:00:00Z", Shadow: "2026-01-01T00:00:33Z"}},
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if diff := cmp.Diff(tt.want, Compare(&tt.live, &tt.other, 30*time.Second)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// random returns a value without nil, which could not be distinguished from a missing value.
func random(r *rand.Rand, depth int) any {
	switch n := r.IntN(5); {
	case n == 0 && depth > 0:
		m := map[string]any{}
		for range r.IntN(4) {
			m[fmt.Sprint("k", r.IntN(4))] = random(r, depth-1)
		}
		return m
	case n == 1 && depth > 0:
		l := []any{}
		for range r.IntN(3) {
			l = append(l, random(r, depth-1))
		}
		return l
	case n == 2:
		return r.IntN(2) == 0
	case n == 3:
		return int64(r.IntN(3))
	}
	return fmt.Sprint("v", r.IntN(3))
}

// Two runs differ exactly where their writes, as JSON by name, do; and the same differences are found in the opposite
// direction.
func TestCompare_Model(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	text := func(run *Run) string {
		byName := map[string]any{}
		for i := range run.Writes {
			byName[run.Writes[i].String()] = run.Writes[i].Body
		}
		js, err := json.Marshal(byName)
		if err != nil {
			t.Fatal(err)
		}
		return string(js)
	}
	differ := 0
	for range 5000 {
		var live, other Run
		for i := range r.IntN(3) {
			live.Writes = append(live.Writes, apply(fmt.Sprint(i), random(r, 2)))
		}
		for i := range r.IntN(3) {
			other.Writes = append(other.Writes, apply(fmt.Sprint(i), random(r, 2)))
			if r.IntN(3) > 0 && i < len(live.Writes) {
				other.Writes[i] = live.Writes[i]
			}
		}
		there, back := Compare(&live, &other, 0), Compare(&other, &live, 0)
		if same := text(&live) == text(&other); same != (len(there) == 0) {
			t.Fatalf("%s\n%s\nare the same: %v, found %+v", text(&live), text(&other), same, there)
		}
		if len(there) > 0 {
			differ++
		}
		swapped := map[string]bool{}
		for _, d := range back {
			d.Live, d.Shadow = d.Shadow, d.Live
			swapped[fmt.Sprint(d)] = true
		}
		found := map[string]bool{}
		for _, d := range there {
			found[fmt.Sprint(d)] = true
		}
		if !maps.Equal(found, swapped) {
			t.Fatalf("from one side %v, from the other %v", found, swapped)
		}
	}
	if differ < 1000 || differ > 4900 {
		t.Errorf("%d of 5000 pairs differ: the test says little", differ)
	}
}

// However many differences there are, the number of reported ones is bounded.
func TestCompare_IsBounded(t *testing.T) {
	var live Run
	for i := range 10 * maxDifferences {
		live.Writes = append(live.Writes, apply(fmt.Sprint(i), "x"))
	}
	if n := len(Compare(&live, &Run{}, 0)); n != maxDifferences {
		t.Errorf("%d", n)
	}
}

func TestSummary_Counts(t *testing.T) {
	var s Summary
	a, b := abi.Key{Name: "a"}, abi.Key{Name: "b"}
	s.Add(a, nil)
	s.Add(b, []Difference{{Of: OfWrite}, {Of: OfWrite}, {Of: OfError}})
	s.Add(b, []Difference{{Of: OfAction}})
	s.Dropped = 4
	want := "compared 3 runs of 2 objects: 1 the same, 2 differ (in writes 1, in the action 1, in the error 1); 4 were not compared because the controller was busy"
	if s.String() != want {
		t.Errorf("%s\nwant %s", s.String(), want)
	}
}
