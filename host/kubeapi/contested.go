// SPDX-License-Identifier: Apache-2.0

package kubeapi

import (
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/wasmctl/wasmctl/abi"
)

// Limits of contested: the number of children, and of the objects that wait for one of them. Further
// objects wait for their back-off.
const (
	maxContested = 1000
	maxWaiting   = 10
)

// contested are the objects that were refused a child because another object controls it.
type contested struct {
	mu      sync.Mutex
	waiting map[childRef][]abi.Key // guarded by mu
}

func (c *contested) add(child childRef, owner abi.Key) {
	c.mu.Lock()
	defer c.mu.Unlock()
	waiting, known := c.waiting[child]
	if !known && len(c.waiting) >= maxContested || len(waiting) >= maxWaiting || slices.Contains(waiting, owner) {
		return
	}
	if c.waiting == nil {
		c.waiting = map[childRef][]abi.Key{}
	}
	c.waiting[child] = append(waiting, owner)
}

// Released returns the objects that were refused a child that is gone now, and forgets them. It is
// called for each deletion of a child.
func (a *API) Released(resource schema.GroupResource, child abi.Key) []abi.Key {
	c := &a.contested
	c.mu.Lock()
	defer c.mu.Unlock()
	ref := childRef{resource, child}
	waiting := c.waiting[ref]
	delete(c.waiting, ref)
	return waiting
}
