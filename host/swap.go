package host

import (
	"context"
	"fmt"
	"runtime"
	"time"

	"github.com/wasmctl/wasmctl/abi"
)

// Candidate is a revision that was loaded in addition to the live one. It has
// no runs but those of Acquire, and must be promoted or discarded. One goroutine
// uses it, but for Acquire, AcquireExtra, Map and Filter, which any may call at
// any time.
type Candidate struct {
	module *Module
	gen    *revision
	extra  slots // of AcquireExtra
	ended  bool  // promoted or discarded
}

// Connect connects the API of a candidate, whose bytes have the digest.
type Connect func(digest string, m *abi.Manifest) (API, error)

// apiFor returns what connects the API of bytes with a digest. A nil connect is
// Config.API.
func (m *Module) apiFor(digest string, connect Connect) func(*abi.Manifest) (API, error) {
	if connect == nil {
		return m.cfg.API
	}
	return func(man *abi.Manifest) (API, error) { return connect(digest, man) }
}

// swapWorkers bounds the CPUs that compiling takes from guests that run
// meanwhile: all but one, and no more than for the first load. With one alone,
// compiling goes on to its end although ctx has ended.
func swapWorkers() int {
	return max(1, min(compilationWorkers, runtime.GOMAXPROCS(0)-1, runtime.NumCPU()-1))
}

// Prepare loads other bytes beside those that are live, which are not touched,
// by all steps of Load: checks, compiling, an instance with the settings in
// force. connect takes the place of Config.API, and may refuse the manifest; its
// error is returned as it is. It is called before anything is compiled, where the
// bytes have the manifest: what is refused costs nothing. Nil is Config.API.
//
// The error is ErrSameModule for the bytes that are live, and else as Load's.
func (m *Module) Prepare(ctx context.Context, wasm []byte, connect Connect) (*Candidate, error) {
	digest := DigestOf(wasm)
	if digest == m.Digest() {
		return nil, fmt.Errorf("module[%s]: %s: %w", m.name, digest, ErrSameModule)
	}
	api := m.apiFor(digest, connect)
	if code := m.retainKept(func(k *kept) bool { return k.code.info.Digest == digest }); code != nil {
		return m.candidate(ctx, m.add(m.nextNumber(), code), api)
	}
	_, bin, err := prepare(wasm, m.cfg)
	if err == nil {
		err = bin.checkController(m.cfg)
	}
	if err != nil {
		return nil, err
	}
	var accept func() error
	if man, _, err := bin.manifest(); man != nil && err == nil && api != nil {
		accept = func() error {
			connected, err := api(man)
			api = func(*abi.Manifest) (API, error) { return connected, nil } //nolint:unparam // the type's
			return err
		}
	}
	g, err := m.load(ctx, wasm, bin, swapWorkers(), accept)
	if err != nil {
		return nil, err
	}
	return m.candidate(ctx, g, api)
}

// PrepareKept is Prepare for the code of an earlier revision, which needs no
// compiling: see Revisions for what is kept. Number 0 is the newest that has
// other bytes than those that are live. The new revision has a new number. The
// error may be ErrNotKept.
func (m *Module) PrepareKept(ctx context.Context, number uint64, connect Connect) (*Candidate, error) {
	live := m.Digest()
	code := m.retainKept(func(k *kept) bool { return k.number == number || number == 0 && k.code.info.Digest != live })
	if code == nil {
		if number == 0 {
			return nil, fmt.Errorf("module[%s]: an earlier %w", m.name, ErrNotKept)
		}
		return nil, fmt.Errorf("module[%s]: revision %d: %w; kept: %s", m.name, number, ErrNotKept, m.keptText())
	}
	return m.candidate(ctx, m.add(m.nextNumber(), code), m.apiFor(code.info.Digest, connect))
}

// candidate starts a revision with the settings in force.
func (m *Module) candidate(ctx context.Context, g *revision, api func(*abi.Manifest) (API, error)) (*Candidate, error) {
	if err := g.start(ctx, api); err != nil {
		g.retire(0)
		return nil, err
	}
	return &Candidate{module: m, gen: g, extra: make(slots, 1)}, nil
}

// Number returns the number of the revision.
func (c *Candidate) Number() uint64 { return c.gen.number }

// Digest returns the digest of its bytes.
func (c *Candidate) Digest() string { return c.gen.code.info.Digest }

// Manifest returns what it says of itself. It must not be changed.
func (c *Candidate) Manifest() *abi.Manifest { return c.gen.manifest }

// Info returns what Inspect would. It must not be changed.
func (c *Candidate) Info() *Info { return c.gen.code.info }

// HasHook is Module.HasHook of the candidate.
func (c *Candidate) HasHook(name string) bool { return c.gen.hook(name) }

// Promote makes the candidate live: every guest that is acquired from now on is
// one of it. Those in use belong to the revision before until they are
// released; they learn it from the function cancelled, and are interrupted after
// Config.DrainTimeout. The code of the revision before is kept for
// Config.KeepFor.
//
// Where the settings have changed since Prepare, the candidate is asked about
// the new ones; if it refuses them, or the module was closed, the error says so
// and the candidate remains one.
func (c *Candidate) Promote(ctx context.Context) error {
	m, g := c.module, c.gen
	if err := m.shared.take(ctx, m.shared.hookSlots); err != nil {
		return fmt.Errorf("module[%s]: promote revision %d: %w", m.name, g.number, err)
	}
	defer func() { <-m.shared.hookSlots }()
	if err := g.reconfigure(ctx, *m.values.Load(), m.last.Load().settings.Load().gen); err != nil {
		return fmt.Errorf("module[%s]: promote revision %d: %w", m.name, g.number, err)
	}
	g.warm(ctx, m.last.Load().instances())
	old, dropped := m.replace(g)
	if old == nil {
		return fmt.Errorf("module[%s]: promote revision %d: %w", m.name, g.number, ErrClosed)
	}
	c.ended = true
	old.retire(m.cfg.DrainTimeout)
	m.giveBack(dropped)
	return nil
}

// replace makes g current. It returns the revision before, which is nil once
// the module is closed, and what is not kept any longer.
func (m *Module) replace(g *revision) (old *revision, dropped []*kept) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if old = m.current.Load(); old == nil {
		return nil, nil
	}
	now := time.Now()
	g.state, g.since = RevisionLive, now
	old.state, old.since = RevisionDraining, now
	m.last.Store(g)
	m.current.Store(g)
	return old, m.keep(old)
}

// Acquire is Module.Acquire of the candidate: a canary runs some objects. It
// takes one of the module's slots, so that both revisions together run no more
// than one alone may. The error is ErrClosed once the candidate was discarded, or
// was promoted and replaced.
func (c *Candidate) Acquire(ctx context.Context) (guest abi.Guest, release func(), err error) {
	return c.acquire(ctx, c.module.shared.slots)
}

// AcquireExtra is Acquire in a slot of the candidate's own, so that no run of the
// module waits for it: for runs that do not count. There is one such slot.
func (c *Candidate) AcquireExtra(ctx context.Context) (guest abi.Guest, release func(), err error) {
	c.gen.trial.Store(true)
	return c.acquire(ctx, c.extra)
}

func (c *Candidate) acquire(ctx context.Context, free slots) (abi.Guest, func(), error) {
	g, in, err := c.module.get(ctx, free, c.gen)
	if err != nil {
		return nil, nil, fmt.Errorf("module[%s]: acquire of revision %d: %w", c.module.name, c.gen.number, err)
	}
	l := &lease{gen: g, in: in, slots: free}
	return l, l.release, nil
}

// Configure gives the candidate the settings in force, where they have changed.
// The error is that of Module.Configure; the candidate remains one.
func (c *Candidate) Configure(ctx context.Context) error {
	m, g := c.module, c.gen
	if err := m.shared.take(ctx, m.shared.hookSlots); err != nil {
		return fmt.Errorf("module[%s]: configure revision %d: %w", m.name, g.number, err)
	}
	defer func() { <-m.shared.hookSlots }()
	if err := g.reconfigure(ctx, *m.values.Load(), m.last.Load().settings.Load().gen-1); err != nil {
		return fmt.Errorf("module[%s]: configure revision %d: %w", m.name, g.number, err)
	}
	return nil
}

// Discard closes the candidate. Runs of Acquire that it has go on; cancelled
// tells them, and they are interrupted after Config.DrainTimeout. After Promote,
// and a second time, it does nothing.
func (c *Candidate) Discard() {
	if c.ended {
		return
	}
	c.ended = true
	m := c.module
	m.mu.Lock()
	c.gen.state, c.gen.since = RevisionDraining, time.Now()
	m.mu.Unlock()
	c.gen.retire(m.cfg.DrainTimeout)
}
