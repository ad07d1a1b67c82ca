package kubeapi

import (
	"sync"

	"github.com/wasmctl/wasmctl/abi"
)

// maxRemembered bounds how many children a memory knows, some 250 bytes each.
// Beyond it what was remembered of some objects is dropped: their children are
// sent once more.
const maxRemembered = 65_536

// memory knows, for each object, what the API server has answered to its
// declared results, so that a request that cannot change anything is not sent.
// Only facts stand in it ("this request was answered with this
// resourceVersion"), so it may forget at any time.
type memory struct {
	mu       sync.Mutex
	owners   map[abi.Key]*remembered // guarded by mu
	children int                     // in all owners; guarded by mu
}

// remembered is the memory of one object. The run that took it owns it
// exclusively.
type remembered struct {
	uid      string
	children map[childRef]applied
	// deleted has the uids of children whose deletion was accepted, which cannot
	// be undone.
	deleted map[string]bool
	// status is the last apply of the object's status.
	status applied
}

// applied is the last apply of a child or a status, and what it led to.
type applied struct {
	digest               digest
	uid, resourceVersion string
}

func (r *remembered) size() int { return 1 + len(r.children) + len(r.deleted) }

// take takes out what is remembered of an object; nothing of another one that
// had its name.
func (m *memory) take(key abi.Key, uid string) *remembered {
	m.mu.Lock()
	defer m.mu.Unlock()
	r := m.owners[key]
	if r != nil {
		m.remove(key)
	}
	if r == nil || r.uid != uid {
		r = &remembered{uid: uid}
	}
	if r.children == nil {
		r.children = map[childRef]applied{}
	}
	return r
}

// put returns what take took out, updated.
func (m *memory) put(key abi.Key, r *remembered) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.remove(key)
	if m.owners == nil {
		m.owners = map[abi.Key]*remembered{}
	}
	for other := range m.owners { // in no order: any of them will do
		if m.children+r.size() <= maxRemembered {
			break
		}
		m.remove(other)
	}
	m.owners[key] = r
	m.children += r.size()
}

// forget drops what is remembered of an object.
func (m *memory) forget(key abi.Key) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.remove(key)
}

// remove is forget for a caller that holds mu.
func (m *memory) remove(key abi.Key) {
	if r := m.owners[key]; r != nil {
		m.children -= r.size()
		delete(m.owners, key)
	}
}
