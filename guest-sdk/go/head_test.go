// SPDX-License-Identifier: Apache-2.0

package wasmctl

import (
	"math/rand"
	"testing"

	"github.com/wasmctl/wasmctl/guest-sdk/go/internal/wire"
)

// TestHead_AnswersAsAWalkDoes compares, for random objects, the answers of an
// object with a head and of one without.
func TestHead_AnswersAsAWalkDoes(t *testing.T) {
	rnd := rand.New(rand.NewSource(1)) //nolint:gosec // a test
	values := []any{nil, "", "a", "a name of more than thirty-one bytes", 7, -1, true, Map{}, []any{"name", "b"}}
	pick := func(m Map, keys ...string) Map {
		for _, k := range keys {
			if rnd.Intn(3) > 0 {
				m[k] = values[rnd.Intn(len(values))]
			}
		}
		return m
	}
	for range 2000 {
		m := pick(Map{}, "apiVersion", "kind", "metadata", "spec", "aaa", "name", "uid")
		if rnd.Intn(4) > 0 {
			m["metadata"] = pick(Map{}, "name", "namespace", "uid", "generation", "deletionTimestamp", "labels", "kind", "zzz")
		}
		plain, err := NewObject(m)
		if err != nil {
			t.Fatal(err)
		}
		run := Object{Value: plain.Value, head: &head{name: "the run before"}}
		for range 2 { // the second iteration uses the head
			if got, want := run.ControllerRef(), plain.ControllerRef(); got != want {
				t.Fatalf("%v: reference %+v, want %+v", m, got, want)
			}
			if run.Ref() != plain.Ref() || run.Name() != plain.Name() || run.Namespace() != plain.Namespace() ||
				run.Generation() != plain.Generation() || run.IsDeleting() != plain.IsDeleting() {
				t.Fatalf("%v: %v %d %v, want %v %d %v", m, run.Ref(), run.Generation(), run.IsDeleting(),
					plain.Ref(), plain.Generation(), plain.IsDeleting())
			}
		}
	}
}

// FuzzHead_AnswersAsAWalkDoes does the same for arbitrary bytes: no panic, and
// equal answers if the bytes are a message.
func FuzzHead_AnswersAsAWalkDoes(f *testing.F) {
	f.Add(must(f, Map{"apiVersion": "v1", "kind": "Pod", "metadata": Map{"name": "a", "namespace": "b", "uid": "c"}}))
	f.Fuzz(func(t *testing.T, b []byte) {
		plain := Object{Value: Value{b}}
		run := Object{Value: Value{b}, head: &head{}}
		got, want := run.Ref(), plain.Ref()
		if _, err := wire.Decode(b); err == nil && got != want {
			t.Errorf("reference %+v, want %+v", got, want)
		}
	})
}
