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

// RevisionInfo is what is known of one revision.
type RevisionInfo struct {
	// Number counts revisions, from 1.
	Number uint64
	Digest string
	State  RevisionState
	// Since is when the state began.
	Since time.Time
	// Instances is how many instances it has, idle ones too.
	Instances int
	// Kept says that PrepareKept can have it. A revision that drains may be kept
	// already.
	Kept bool
}

// maxKept is how many earlier revisions are kept compiled.
const maxKept = 3

// kept is the code of an earlier revision.
type kept struct {
	number uint64
	code   *code
	since  time.Time
	expire *time.Timer
}

// Revisions returns the revisions that still have something, in the order
// of their numbers.
func (m *Module) Revisions() []RevisionInfo {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.prune()
	out := slices.Clone(m.loading)
	for _, g := range m.open {
		out = append(out, RevisionInfo{Number: g.number, Digest: g.code.info.Digest, State: g.state, Since: g.since, Instances: g.instances()})
	}
	for _, k := range m.kept {
		if i := slices.IndexFunc(out, func(g RevisionInfo) bool { return g.Number == k.number }); i >= 0 {
			out[i].Kept = true
			continue
		}
		out = append(out, RevisionInfo{Number: k.number, Digest: k.code.info.Digest, State: RevisionKept, Since: k.since, Kept: true})
	}
	slices.SortFunc(out, func(a, b RevisionInfo) int { return int(a.Number) - int(b.Number) }) //nolint:gosec // small numbers
	return out
}

// Interrupt ends the runs that a revision has left, before its time to drain
// is over. It does nothing to one that is not draining.
func (m *Module) Interrupt(number uint64) {
	m.mu.Lock()
	i := slices.IndexFunc(m.open, func(g *revision) bool { return g.number == number && g.state == RevisionDraining })
	var g *revision
	if i >= 0 {
		g = m.open[i]
	}
	m.mu.Unlock()
	if g != nil {
		g.interrupt()
	}
}

// Drop gives back the code of a revision that is kept, so that it is not
// promoted again.
func (m *Module) Drop(number uint64) {
	m.dropKept(func(k *kept) bool { return k.number == number })
}

// Pin exempts one revision from the bound on how many are kept: the one to go
// back to. It has no longer time than others.
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

// begin notes that the code of a new revision is being made, and returns its
// number. add or end follows.
func (m *Module) begin(digest string) uint64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.number++
	m.loading = append(m.loading, RevisionInfo{Number: m.number, Digest: digest, State: RevisionLoading, Since: time.Now()})
	return m.number
}

// end forgets what begin has noted: there will be no code.
func (m *Module) end(number uint64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.notLoading(number)
}

// notLoading takes a revision out of those whose code is being made; mu is
// held.
func (m *Module) notLoading(number uint64) {
	m.loading = slices.DeleteFunc(m.loading, func(g RevisionInfo) bool { return g.Number == number })
}

// add makes a revision of code, whose reference it takes over.
func (m *Module) add(number uint64, code *code) *revision {
	g := m.newRevision(number, code)
	m.mu.Lock()
	defer m.mu.Unlock()
	m.prune()
	m.notLoading(number)
	m.open = append(m.open, g)
	return g
}

// prune forgets the revisions that are closed; mu is held.
func (m *Module) prune() {
	m.open = slices.DeleteFunc(slices.Clone(m.open), (*revision).isClosed)
}

// keep keeps the code of a revision that was live, and lets the oldest go
// where there are too many; mu is held. It returns what to give back.
func (m *Module) keep(g *revision) []*kept {
	if m.cfg.KeepFor < 0 {
		return nil
	}
	k := &kept{number: g.number, code: g.code, since: time.Now()}
	k.code.retain()
	k.expire = time.AfterFunc(m.cfg.KeepFor, func() { m.dropKept(func(other *kept) bool { return other == k }) })
	m.kept = append([]*kept{k}, m.kept...)
	last := m.kept[min(maxKept, len(m.kept))-1]
	return m.takeKept(func(old *kept) bool {
		return old != k && old.code == g.code || old.number < last.number && old.number != m.pinned // one code is kept once
	})
}

// retainKept returns the newest code that fits, with a reference, or nil.
func (m *Module) retainKept(fits func(*kept) bool) *code {
	m.mu.Lock()
	defer m.mu.Unlock()
	if i := slices.IndexFunc(m.kept, fits); i >= 0 {
		m.kept[i].code.retain()
		return m.kept[i].code
	}
	return nil
}

// dropKept gives back what is kept and fits.
func (m *Module) dropKept(fits func(*kept) bool) {
	m.mu.Lock()
	dropped := m.takeKept(fits)
	m.mu.Unlock()
	m.giveBack(dropped)
}

// takeKept takes what fits out of the list; mu is held.
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

// giveBack gives back the code of what was taken out of the list; mu is not
// held.
func (m *Module) giveBack(dropped []*kept) {
	for _, k := range dropped {
		k.expire.Stop()
		if err := k.code.release(context.Background()); err != nil {
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
