// SPDX-License-Identifier: Apache-2.0

package instance

import (
	"fmt"
	"sync"
	"time"

	"github.com/wasmctl/wasmctl/abi"
)

// Set has the instances of a revision that are not closed, those in use too. All methods
// are safe for concurrent use.
type Set struct {
	number uint64 // of the revision
	over   chan struct{}

	mu  sync.Mutex
	all map[*Instance]struct{} // guarded by mu
}

// NewSet returns an empty set for a revision.
func NewSet(number uint64) *Set {
	return &Set{number: number, over: make(chan struct{}), all: map[*Instance]struct{}{}}
}

// Len returns the number of instances.
func (s *Set) Len() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.all)
}

// Interrupt ends all calls that run, and refuses new instances from now on.
func (s *Set) Interrupt() {
	s.mu.Lock()
	defer s.mu.Unlock()
	select {
	case <-s.over:
	default:
		close(s.over)
	}
	for in := range s.all {
		in.fire(byReplaced)
	}
}

// Largest returns the memory of the largest instance with a call that can be interrupted, and
// whether there is one.
func (s *Set) Largest() (bytes int64, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	in := s.largest()
	if in == nil {
		return 0, false
	}
	return in.Desk.Charged(), true
}

// Ending returns the memory of the instances that were interrupted and are not closed.
func (s *Set) Ending() (bytes int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for in := range s.all {
		if in.interrupted() {
			bytes += in.Desk.Charged()
		}
	}
	return bytes
}

// InterruptLargest interrupts the largest instance because other tenants need its memory.
func (s *Set) InterruptLargest() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if in := s.largest(); in != nil {
		in.fire(byBudget)
	}
}

// largest returns the largest instance in a call that was not interrupted, or nil; mu is held.
func (s *Set) largest() (largest *Instance) {
	for in := range s.all {
		if in.Overdue() != 0 && !in.interrupted() && (largest == nil || in.Desk.Charged() > largest.Desk.Charged()) {
			largest = in
		}
	}
	return largest
}

// Over is closed by Interrupt.
func (s *Set) Over() <-chan struct{} { return s.over }

// add adds a new instance, unless Interrupt was called.
func (s *Set) add(in *Instance) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	select {
	case <-s.over:
		return ErrReplaced(s.number)
	default:
	}
	s.all[in] = struct{}{}
	return nil
}

func (s *Set) remove(in *Instance) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.all, in)
}

// replacedAfter is the delay after which an object whose run was interrupted by a swap is
// retried, by the new revision.
const replacedAfter = 10 * time.Millisecond

// ErrReplaced returns the error of a run whose revision was replaced, and whose time to
// finish is over.
func ErrReplaced(number uint64) error {
	return &abi.ResultError{
		Class: abi.ErrorTransient, Reason: "ModuleSwapped", After: replacedAfter,
		Message: fmt.Sprintf("interrupted: drain timeout exceeded; revision %d of the module was replaced", number),
	}
}
