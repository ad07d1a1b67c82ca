// SPDX-License-Identifier: Apache-2.0

package kubeapi

import (
	"sync"

	"github.com/wasmctl/wasmctl/abi"
)

// maxRemembered is the maximum number of children in a memory, which take about 250 bytes each.
// Beyond it, the facts about some objects are forgotten, and their children are sent once more.
const maxRemembered = 65_536

// memory stores the API server's answers to the declared results of each object, so that a request
// that cannot change anything is not sent. It has only facts ("this request resulted in this
// resourceVersion"), so it may forget at any time.
type memory struct {
	mu       sync.Mutex
	owners   map[abi.Key]*remembered // guarded by mu
	children int                     // in all owners; guarded by mu
	renewals uint64                  // counts calls of renew; guarded by mu
	renewed  map[abi.Key]bool        // objects whose requests are to be sent; guarded by mu
	all      bool                    // as are those of each object without a memory; guarded by mu
}

// remembered is the memory about one object. The run that took it has exclusive access.
type remembered struct {
	uid      string
	epoch    uint64 // see Cache.Epoch
	renewals uint64 // see memory
	send     bool   // all requests, even if the cache proves that they change nothing
	children map[childRef]applied
	// deleted has the UIDs of children whose deletion was accepted, which cannot be undone.
	deleted map[string]bool
	// status is the last apply of the object's status.
	status applied
}

// applied is the last apply of a child or a status, and its result.
type applied struct {
	digest               digest
	uid, resourceVersion string
}

func (r *remembered) size() int { return 1 + len(r.children) + len(r.deleted) }

// take removes and returns the memory about an object. It returns nothing about an earlier object
// of the same name, or of another epoch.
func (m *memory) take(key abi.Key, uid string, epoch uint64) *remembered {
	m.mu.Lock()
	defer m.mu.Unlock()
	r := m.owners[key]
	if r != nil {
		m.remove(key)
	}
	if r == nil || r.uid != uid || r.epoch != epoch {
		r = &remembered{uid: uid, epoch: epoch, send: m.all}
	}
	r.send = r.send || m.renewed[key]
	r.renewals = m.renewals
	if r.children == nil {
		r.children = map[childRef]applied{}
	}
	return r
}

// put returns the updated memory.
func (m *memory) put(key abi.Key, r *remembered) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.remove(key)
	if r.renewals != m.renewals {
		return
	}
	delete(m.renewed, key)
	if m.owners == nil {
		m.owners = map[abi.Key]*remembered{}
	}
	for other := range m.owners { // any of them will do
		if m.children+r.size() <= maxRemembered {
			break
		}
		m.remove(other)
	}
	m.owners[key] = r
	m.children += r.size()
}

// forget discards the memory about an object.
func (m *memory) forget(key abi.Key) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.remove(key)
	delete(m.renewed, key)
}

// renew discards the memory about the given objects, or about all if there are none, and of the runs in
// progress. Their next runs send all requests.
func (m *memory) renew(objects []abi.Key) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.renewals++
	for _, key := range objects {
		m.remove(key)
		if m.renewed == nil {
			m.renewed = map[abi.Key]bool{}
		}
		m.renewed[key] = true
	}
	if len(objects) == 0 {
		m.owners, m.children, m.renewed, m.all = nil, 0, nil, true
	}
}

// remove is forget for a caller that holds mu.
func (m *memory) remove(key abi.Key) {
	if r := m.owners[key]; r != nil {
		m.children -= r.size()
		delete(m.owners, key)
	}
}
