// SPDX-License-Identifier: Apache-2.0

package predicate_test

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/runtime/queue/predicate"
	"github.com/wasmctl/wasmctl/runtime/reflector"
)

// judge evaluates a predicate in the simplest way: old and now are decoded metadata.
type judge func(old, now map[string]any) predicate.Verdict

var fieldOf = map[string]string{
	"generation": "generation", "resourceVersion": "resourceVersion", "labels": "labels", "annotations": "annotations",
	"finalizers": "finalizers", "deletion": "deletionTimestamp",
}

// randomTerm makes a term of the grammar and its judge.
func randomTerm(rng *rand.Rand, depth int) (string, judge) {
	if depth == 0 || rng.IntN(3) > 0 {
		names := []string{"generation", "resourceVersion", "labels", "annotations", "finalizers", "deletion", "func"}
		name := names[rng.IntN(len(names))]
		if name == "func" {
			return name, func(_, _ map[string]any) predicate.Verdict { return predicate.Ask }
		}
		return name, func(old, now map[string]any) predicate.Verdict {
			if reflect.DeepEqual(old[fieldOf[name]], now[fieldOf[name]]) {
				return predicate.Hide
			}
			return predicate.Pass
		}
	}
	var texts []string
	var judges []judge
	for range 1 + rng.IntN(3) {
		text, j := randomTerm(rng, depth-1)
		texts, judges = append(texts, text), append(judges, j)
	}
	word := []string{"all", "any"}[rng.IntN(2)]
	return word + "(" + strings.Join(texts, ",") + ")", func(old, now map[string]any) predicate.Verdict {
		count := map[predicate.Verdict]int{}
		for _, j := range judges {
			count[j(old, now)]++
		}
		switch {
		case word == "all" && count[predicate.Hide] > 0:
			return predicate.Hide
		case word == "any" && count[predicate.Pass] > 0:
			return predicate.Pass
		case count[predicate.Ask] > 0:
			return predicate.Ask
		case word == "all":
			return predicate.Pass
		}
		return predicate.Hide
	}
}

// randomState is one of few states, so that equal values are common.
func randomState(rng *rand.Rand) meta {
	pick := func(key string) map[string]any { return map[string]any{key: fmt.Sprint(rng.IntN(2))} }
	m := meta{
		"generation": int64(1 + rng.IntN(2)), "resourceVersion": fmt.Sprint(rng.IntN(3)), "labels": pick("l"), "annotations": pick("a"),
		"finalizers": []any{fmt.Sprint(rng.IntN(2))},
	}
	if rng.IntN(3) == 0 {
		m["deletionTimestamp"] = "2026-01-01T00:00:00Z"
	}
	return m
}

func metadataOf(t *testing.T, o *reflector.Object) map[string]any {
	t.Helper()
	content, err := abi.DecodeObject(o.Msgpack())
	if err != nil {
		t.Fatal(err)
	}
	return content["metadata"].(map[string]any)
}

// Rule 23: for any predicates and any changes, a Filter agrees with comparing the complete fields; and with a TTL, a
// hidden change passes if none has passed within it.
func TestFilter_LikeTheModel(t *testing.T) {
	for seed := range uint64(500) {
		rng := rand.New(rand.NewPCG(seed, 1))
		text, should := randomTerm(rng, 3)
		forever, minute := filter(t, text, "ttl=never"), filter(t, text, "ttl=1m")
		at := time.Unix(0, 0)
		old := pack(t, randomState(rng))
		var passed time.Time // with the TTL
		for step := range 30 {
			at = at.Add(time.Duration(rng.IntN(40)) * time.Second)
			now := pack(t, randomState(rng))
			want := should(metadataOf(t, old), metadataOf(t, now))
			if got := forever.Check(at, changed(old, now)); got != want {
				t.Fatalf("seed %d step %d: %s: %s, want %s", seed, step, text, got, want)
			}
			if want == predicate.Hide && (passed.IsZero() || at.Sub(passed) >= time.Minute) {
				want = should(map[string]any{}, metadataOf(t, pack(t, meta{
					"labels": map[string]any{"l": ""}, "annotations": map[string]any{"a": ""}, "finalizers": []any{"f"}, "deletionTimestamp": "now",
				})))
			}
			if got := minute.Check(at, changed(old, now)); got != want {
				t.Fatalf("seed %d step %d: %s with a TTL: %s, want %s", seed, step, text, got, want)
			}
			if want != predicate.Hide {
				passed = at
			}
			old = now
		}
	}
}
