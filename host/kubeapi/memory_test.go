// SPDX-License-Identifier: Apache-2.0

package kubeapi

import (
	"fmt"
	"sync"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/wasmctl/wasmctl/abi"
)

func fill(m *memory, key abi.Key, uid string, children int) {
	r := m.take(key, uid, 0)
	for i := range children {
		r.children[childRef{schema.GroupResource{Resource: "configmaps"}, abi.Key{Namespace: "a", Name: fmt.Sprint(i)}}] = applied{uid: uid}
	}
	m.put(key, r)
}

func TestMemory_BelongsToOneObject(t *testing.T) {
	var m memory
	key := abi.Key{Namespace: "a", Name: "x"}
	fill(&m, key, "u1", 3)
	if r := m.take(key, "u1", 0); len(r.children) != 3 {
		t.Errorf("%d children", len(r.children))
	} else {
		m.put(key, r)
	}
	if r := m.take(key, "u2", 0); len(r.children) != 0 {
		t.Error("another object of that name has its children")
	}
	fill(&m, key, "u1", 3)
	m.forget(key)
	if r := m.take(key, "u1", 0); len(r.children) != 0 || m.children != 0 {
		t.Error("not forgotten")
	}
}

// TestMemory_IsBounded, and counts right whatever is put where.
func TestMemory_IsBounded(t *testing.T) {
	var m memory
	var wg sync.WaitGroup
	for g := range 4 {
		wg.Go(func() {
			for i := range 3000 {
				fill(&m, abi.Key{Name: fmt.Sprint(i * (g + 1) % 5000)}, fmt.Sprint("u", i%3), 20)
			}
		})
	}
	wg.Wait()
	n := 0
	for _, r := range m.owners {
		n += r.size()
	}
	if n != m.children || n > maxRemembered || n < maxRemembered/2 {
		t.Errorf("%d remembered, counted %d, bound %d", n, m.children, maxRemembered)
	}
}
