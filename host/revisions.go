// SPDX-License-Identifier: Apache-2.0

package host

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"
)

// RevisionState is the state of a revision.
type RevisionState string

// The states of a revision, in their order.
const (
	RevisionLoading  RevisionState = "loading"  // it is checked, or a canary: none is acquired of it by Module.Acquire
	RevisionLive     RevisionState = "live"     // guests that are acquired are of it
	RevisionDraining RevisionState = "draining" // it has runs left
	RevisionKept     RevisionState = "kept"     // it has ended; its code can be promoted again without compiling
)

// RevisionInfo describes one revision.
type RevisionInfo struct {
	// Number counts revisions, from 1.
	Number uint64
	Digest string
	State  RevisionState
	// Since is when the state began.
	Since time.Time
	// Instances is the number of its instances, idle ones included.
	Instances int
	// Kept reports that PrepareKept can use its code. A revision that drains may already be
	// kept.
	Kept bool
}

// maxKept is how many earlier revisions are kept compiled.
const maxKept = 3

// kept is the program of an earlier revision.
type kept struct {
	number  uint64
	program *program
	since   time.Time
	expire  *time.Timer
}

// Revisions returns the revisions that are not closed or are kept, in the order of their
// numbers.
func (m *Module) Revisions() []RevisionInfo {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.prune()
	out := slices.Clone(m.loading)
	for _, rev := range m.open {
		out = append(out, RevisionInfo{Number: rev.spec.Number, Digest: rev.digest(), State: rev.state, Since: rev.since, Instances: rev.spec.All.Len()})
	}
	for _, k := range m.kept {
		if i := slices.IndexFunc(out, func(info RevisionInfo) bool { return info.Number == k.number }); i >= 0 {
			out[i].Kept = true
			continue
		}
		out = append(out, RevisionInfo{Number: k.number, Digest: k.program.Info.Digest, State: RevisionKept, Since: k.since, Kept: true})
	}
	slices.SortFunc(out, func(a, b RevisionInfo) int { return int(a.Number) - int(b.Number) }) //nolint:gosec // small numbers
	return out
}

// Interrupt ends the remaining runs of a revision before its time to drain is over. It does
// nothing to one that is not draining.
func (m *Module) Interrupt(number uint64) {
	m.mu.Lock()
	i := slices.IndexFunc(m.open, func(rev *revision) bool { return rev.spec.Number == number && rev.state == RevisionDraining })
	var rev *revision
	if i >= 0 {
		rev = m.open[i]
	}
	m.mu.Unlock()
	if rev != nil {
		rev.spec.All.Interrupt()
	}
}

// Drop closes the code of a revision that is kept, so that it is not promoted again.
func (m *Module) Drop(number uint64) {
	m.dropKept(func(k *kept) bool { return k.number == number })
}

// Pin exempts one revision from the bound on the number of kept ones: the one to which a
// rollback leads. It is kept no longer than others.
func (m *Module) Pin(number uint64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.pinned = number
}

// nextNumber returns the number of a new revision.
func (m *Module) nextNumber() uint64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.number++
	return m.number
}

// begin records that the code of a new revision is being made, and returns its number. add
// or end follows.
func (m *Module) begin(digest string) uint64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.number++
	m.loading = append(m.loading, RevisionInfo{Number: m.number, Digest: digest, State: RevisionLoading, Since: time.Now()})
	return m.number
}

// end undoes begin, because there will be no code.
func (m *Module) end(number uint64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.notLoading(number)
}

// notLoading removes a revision from those whose code is being made; mu is held.
func (m *Module) notLoading(number uint64) {
	m.loading = slices.DeleteFunc(m.loading, func(info RevisionInfo) bool { return info.Number == number })
}

// add makes a revision of a program, whose reference it takes over.
func (m *Module) add(number uint64, p *program) *revision {
	rev := m.newRevision(number, p)
	m.mu.Lock()
	defer m.mu.Unlock()
	m.prune()
	m.notLoading(number)
	m.open = append(m.open, rev)
	return rev
}

// prune removes the revisions that are closed; mu is held.
func (m *Module) prune() {
	m.open = slices.DeleteFunc(slices.Clone(m.open), (*revision).isClosed)
}

// keep keeps the program of a revision that was live, and removes the oldest if there are too
// many; mu is held. It returns those to give back.
func (m *Module) keep(rev *revision) []*kept {
	if m.cfg.Keep.Code < 0 {
		return nil
	}
	k := &kept{number: rev.spec.Number, program: rev.program, since: time.Now()}
	k.program.retain()
	k.expire = time.AfterFunc(m.cfg.Keep.Code, func() { m.dropKept(func(other *kept) bool { return other == k }) })
	m.kept = append([]*kept{k}, m.kept...)
	last := m.kept[min(maxKept, len(m.kept))-1]
	return m.takeKept(func(old *kept) bool {
		return old != k && old.program == rev.program || old.number < last.number && old.number != m.pinned // one program is kept once
	})
}

// retainKept returns the newest program that fits, with a reference, or nil.
func (m *Module) retainKept(fits func(*kept) bool) *program {
	m.mu.Lock()
	defer m.mu.Unlock()
	if i := slices.IndexFunc(m.kept, fits); i >= 0 {
		m.kept[i].program.retain()
		return m.kept[i].program
	}
	return nil
}

// dropKept gives back the kept programs that fit.
func (m *Module) dropKept(fits func(*kept) bool) {
	m.mu.Lock()
	dropped := m.takeKept(fits)
	m.mu.Unlock()
	m.giveBack(dropped)
}

// takeKept removes those that fit from the list; mu is held.
func (m *Module) takeKept(fits func(*kept) bool) (taken []*kept) {
	m.kept = slices.DeleteFunc(m.kept, func(k *kept) bool {
		if fits(k) {
			taken = append(taken, k)
			return true
		}
		return false
	})
	return taken
}

// giveBack gives back programs that were removed from the list; mu is not held.
func (m *Module) giveBack(dropped []*kept) {
	for _, k := range dropped {
		k.expire.Stop()
		if err := k.program.release(context.Background()); err != nil {
			m.cfg.Logger.Warn("cannot release the code of a revision", "controller", m.name, "revision", k.number, "error", err)
		}
	}
}

// keptText lists the revisions that are kept.
func (m *Module) keptText() string {
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.kept) == 0 {
		return "none"
	}
	var words []string
	for _, k := range m.kept {
		words = append(words, fmt.Sprint(k.number))
	}
	return strings.Join(words, ", ")
}
