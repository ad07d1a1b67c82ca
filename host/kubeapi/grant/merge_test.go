// SPDX-License-Identifier: Apache-2.0

package grant

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"

	"github.com/wasmctl/wasmctl/abi"
)

// TestMerge_GrantsTheSame: each controller has the same rules and finalizers as before, also after the documents
// were written and read, and no rule is there twice.
func TestMerge_GrantsTheSame(t *testing.T) {
	for seed := range uint64(300) {
		r := rand.New(rand.NewPCG(seed, 0))
		var docs []Document
		for i := range 1 + r.IntN(5) {
			d := Document{Controllers: []string{fmt.Sprint("c", i)}}
			for range r.IntN(6) {
				c := abi.Capability{Group: "g.io", Resource: fmt.Sprint("r", r.IntN(4)), Verbs: []string{"get"}}
				if r.IntN(2) == 0 {
					c.Namespaces = []string{"a"}
				}
				d.Capabilities = append(d.Capabilities, c)
			}
			for range r.IntN(2) {
				d.Finalizers = append(d.Finalizers, fmt.Sprint("example.com/f", r.IntN(2)))
			}
			docs = append(docs, d)
		}
		var text []byte
		var written []Document
		seen := map[string]bool{}
		for _, d := range Merge(docs) {
			for _, c := range d.Capabilities {
				if key := fmt.Sprintf("%+v", c); seen[key] {
					t.Fatalf("seed %d: %s is there twice", seed, key)
				} else {
					seen[key] = true
				}
			}
			b, err := d.Marshal()
			if err != nil {
				t.Fatal(err)
			}
			text = append(append(text, "---\n"...), b...)
			written = append(written, d)
		}
		got, err := Parse("grant.yaml", bytes.TrimPrefix(text, []byte("---\n")))
		if err != nil {
			t.Fatalf("seed %d: %v\n%s", seed, err, text)
		}
		for _, d := range docs {
			name := d.Controllers[0]
			rules, named := got.Rules(name)
			if !named || !sameSet(rules, d.Capabilities) || !sameSet(got.Finalizers(name), d.Finalizers) {
				t.Fatalf("seed %d: %s has %v (%v), want %v\n%s", seed, name, rules, named, d.Capabilities, text)
			}
		}
		if len(written) == 0 {
			t.Fatalf("seed %d: no document", seed)
		}
	}
}

// sameSet reports whether two lists have the same elements, however often.
func sameSet[T any](a, b []T) bool {
	in := func(list []T, v T) bool {
		return slices.ContainsFunc(list, func(e T) bool { return reflect.DeepEqual(e, v) })
	}
	for _, v := range a {
		if !in(b, v) {
			return false
		}
	}
	for _, v := range b {
		if !in(a, v) {
			return false
		}
	}
	return true
}
