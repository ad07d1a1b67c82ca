// SPDX-License-Identifier: Apache-2.0

package host

import (
	"context"
	"fmt"
	"runtime"

	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/host/load"
	"github.com/wasmctl/wasmctl/host/operation"
)

// Candidate is a revision that was loaded in addition to the live one. Its only runs are
// those of Acquire, and it must be promoted or discarded. One goroutine uses it, except for
// Acquire, AcquireExtra, Map and Filter, which any goroutine may call at any time.
type Candidate struct {
	module *Module
	rev    *revision
	extra  slots // of AcquireExtra
	ended  bool  // promoted or discarded
}

// Connect connects the API of a candidate, whose bytes have the digest.
type Connect func(digest string, m *abi.Manifest) (operation.API, error)

// apiFor returns the function that connects the API of bytes with a digest. A nil connect
// means Config.API.
func (m *Module) apiFor(digest string, connect Connect) func(*abi.Manifest) (operation.API, error) {
	if connect == nil {
		return m.cfg.API
	}
	return func(man *abi.Manifest) (operation.API, error) { return connect(digest, man) }
}

// swapWorkers bounds the CPUs that compiling takes from guests that run meanwhile: all but
// one, and no more than for the first load. With only one, compiling continues to its end
// even if ctx has ended.
func swapWorkers() int {
	return max(1, min(load.MaxWorkers, runtime.GOMAXPROCS(0)-1, runtime.NumCPU()-1))
}

// Prepare loads other bytes in addition to the live ones, which are not touched, by all
// steps of Load: checks, compiling, an instance with the settings in force. connect is used
// in place of Config.API, unless it is nil, and may refuse the manifest; its error is
// returned unchanged. If the bytes contain the manifest, it is called before anything is
// compiled, so a refusal costs nothing.
//
// The error is ErrSameModule for the bytes that are live, and otherwise as that of Load.
func (m *Module) Prepare(ctx context.Context, wasm []byte, connect Connect) (*Candidate, error) {
	digest := load.DigestOf(wasm)
	if digest == m.Digest() {
		return nil, fmt.Errorf("module[%s]: %s: %w", m.name, digest, ErrSameModule)
	}
	api := m.apiFor(digest, connect)
	if p := m.retainKept(func(k *kept) bool { return k.program.Info.Digest == digest }); p != nil {
		return m.candidate(ctx, m.add(m.nextNumber(), p), api)
	}
	_, bin, err := read(wasm, m.cfg)
	if err != nil {
		return nil, err
	}
	if err := bin.CheckController(); err != nil {
		return nil, load.Invalid(m.cfg.NameFor(nil), err)
	}
	var accept func() error
	if man, _, err := bin.Manifest(); man != nil && err == nil && api != nil {
		accept = func() error {
			connected, err := api(man)
			api = func(*abi.Manifest) (operation.API, error) { return connected, nil } //nolint:unparam // the type's
			return err
		}
	}
	rev, err := m.load(ctx, bin, swapWorkers(), accept)
	if err != nil {
		return nil, err
	}
	return m.candidate(ctx, rev, api)
}

// PrepareKept is Prepare for the code of an earlier revision, which needs no compiling;
// Revisions lists those that are kept. Number 0 is the newest with other bytes than the live
// ones. The new revision has a new number. The error may be ErrNotKept.
func (m *Module) PrepareKept(ctx context.Context, number uint64, connect Connect) (*Candidate, error) {
	live := m.Digest()
	p := m.retainKept(func(k *kept) bool { return k.number == number || number == 0 && k.program.Info.Digest != live })
	if p == nil {
		if number == 0 {
			return nil, fmt.Errorf("module[%s]: there is no earlier %w", m.name, ErrNotKept)
		}
		return nil, fmt.Errorf("module[%s]: revision %d: there is no such %w; kept: %s", m.name, number, ErrNotKept, m.keptText())
	}
	return m.candidate(ctx, m.add(m.nextNumber(), p), m.apiFor(p.Info.Digest, connect))
}

// candidate starts a revision with the settings in force.
func (m *Module) candidate(ctx context.Context, rev *revision, api func(*abi.Manifest) (operation.API, error)) (*Candidate, error) {
	if err := rev.start(ctx, api); err != nil {
		rev.retire(0)
		return nil, err
	}
	return &Candidate{module: m, rev: rev, extra: make(slots, 1)}, nil
}

// Number returns the number of the revision.
func (c *Candidate) Number() uint64 { return c.rev.spec.Number }

// Digest returns the digest of its bytes.
func (c *Candidate) Digest() string { return c.rev.digest() }

// Manifest returns its manifest, which must not be changed.
func (c *Candidate) Manifest() *abi.Manifest { return c.rev.spec.Manifest }

// Info returns the result of load.Inspect, which must not be changed.
func (c *Candidate) Info() *load.Info { return c.rev.program.Info }

// HasHook is Module.HasHook of the candidate.
func (c *Candidate) HasHook(name string) bool { return c.rev.spec.Hook(name) }

// Promote makes the candidate live: every guest that is acquired from now on belongs to it.
// Guests in use belong to the previous revision until they are released; they learn about it
// from the function cancelled, and are interrupted after Keep.Drain. The code of the
// previous revision is kept for Keep.Code.
//
// If the settings have changed since Prepare, the candidate is asked about the new ones. If
// it refuses them, or the module was closed, Promote fails and the candidate remains one.
func (c *Candidate) Promote(ctx context.Context) error {
	m, rev := c.module, c.rev
	if err := m.shared.take(ctx, m.shared.hookSlots); err != nil {
		return fmt.Errorf("module[%s]: promote revision %d: %w", m.name, rev.spec.Number, err)
	}
	defer func() { <-m.shared.hookSlots }()
	if err := rev.reconfigure(ctx, *m.values.Load(), m.last.Load().settings.Load().Gen); err != nil {
		return fmt.Errorf("module[%s]: promote revision %d: %w", m.name, rev.spec.Number, err)
	}
	rev.warm(ctx, m.last.Load().spec.All.Len())
	old, dropped := m.replace(rev)
	if old == nil {
		return fmt.Errorf("module[%s]: promote revision %d: %w", m.name, rev.spec.Number, ErrClosed)
	}
	c.ended = true
	old.retire(m.cfg.Keep.Drain)
	m.giveBack(dropped)
	return nil
}

// replace makes rev current. It returns the previous revision, which is nil once the module
// is closed, and the programs that are no longer kept.
func (m *Module) replace(rev *revision) (old *revision, dropped []*kept) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if old = m.current.Load(); old == nil {
		return nil, nil
	}
	rev.enter(RevisionLive)
	old.enter(RevisionDraining)
	m.last.Store(rev)
	m.current.Store(rev)
	return old, m.keep(old)
}

// Acquire is Module.Acquire of the candidate: a canary runs some objects. It takes one of the
// module's slots, so that both revisions together run no more than one alone may. The error
// is ErrClosed once the candidate was discarded, or promoted and replaced.
func (c *Candidate) Acquire(ctx context.Context) (guest abi.Guest, release func(), err error) {
	return c.acquire(ctx, c.module.shared.slots)
}

// AcquireExtra is Acquire in a slot of the candidate, so that no run of the module waits for
// it. It is for runs that do not count. There is one such slot.
func (c *Candidate) AcquireExtra(ctx context.Context) (guest abi.Guest, release func(), err error) {
	c.rev.spec.Trial.Store(true)
	return c.acquire(ctx, c.extra)
}

func (c *Candidate) acquire(ctx context.Context, free slots) (abi.Guest, func(), error) {
	rev, in, err := c.module.get(ctx, free, c.rev)
	if err != nil {
		return nil, nil, fmt.Errorf("module[%s]: acquire of revision %d: %w", c.module.name, c.rev.spec.Number, err)
	}
	l := &lease{rev: rev, in: in, slots: free}
	return l, l.release, nil
}

// Configure gives the candidate the settings in force, if they have changed. The error is
// that of Module.Configure; the candidate remains one.
func (c *Candidate) Configure(ctx context.Context) error {
	m, rev := c.module, c.rev
	if err := m.shared.take(ctx, m.shared.hookSlots); err != nil {
		return fmt.Errorf("module[%s]: configure revision %d: %w", m.name, rev.spec.Number, err)
	}
	defer func() { <-m.shared.hookSlots }()
	if err := rev.reconfigure(ctx, *m.values.Load(), m.last.Load().settings.Load().Gen-1); err != nil {
		return fmt.Errorf("module[%s]: configure revision %d: %w", m.name, rev.spec.Number, err)
	}
	return nil
}

// Discard closes the candidate. Its runs continue; cancelled tells them, and they are
// interrupted after Keep.Drain. After Promote, and a second time, it does nothing.
func (c *Candidate) Discard() {
	if c.ended {
		return
	}
	c.ended = true
	m := c.module
	m.mu.Lock()
	c.rev.enter(RevisionDraining)
	m.mu.Unlock()
	c.rev.retire(m.cfg.Keep.Drain)
}
