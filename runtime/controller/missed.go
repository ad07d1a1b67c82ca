// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"maps"
	"slices"

	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/runtime/queue"
)

// maxMissed limits the number of missed objects of a slot. The others are found when all objects run.
const maxMissed = 10_000

// admits reports whether this replica may run an object: it is in an open slot, or gone. A request for a slot that opens later is not lost.
func (t *slotTable) admits(r *queue.Request) bool {
	slot := t.of(r.Ref)
	if slot < 0 {
		return slot == none
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.slots[slot].open && !r.Low {
		t.missIn(slot, r.Ref, r.Reason)
	}
	return t.slots[slot].open
}

// miss records that an object was to run, and its slot is not open.
func (t *slotTable) miss(key abi.Key, reason abi.Reason) {
	if slot := t.of(key); slot >= 0 {
		t.mu.Lock()
		defer t.mu.Unlock()
		t.missIn(slot, key, reason)
	}
}

// missIn implements miss. The caller must hold mu.
func (t *slotTable) missIn(slot int, key abi.Key, reason abi.Reason) {
	s := &t.slots[slot]
	if _, watched := t.watched[slot]; !watched || len(s.missed) >= maxMissed {
		return
	}
	if s.missed == nil {
		s.missed = map[abi.Key]abi.Reason{}
	}
	s.missed[key] = reason
}

// missed returns the missed objects of a slot that is not open.
func (t *slotTable) missed(slot int) []abi.Key {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.Collect(maps.Keys(t.slots[slot].missed))
}
