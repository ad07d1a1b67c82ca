// Package host runs reconciler modules on wazero: it loads and checks them,
// keeps a bounded pool of instances, bounds each call in time and memory,
// serves the host functions of ABI.md, and turns whatever a guest does wrong
// into an error of that one call.
//
//	m, err := host.Load(ctx, wasm, host.Config{Name: "hello"})
//	if err != nil {
//		return err
//	}
//	defer m.Close(context.WithoutCancel(ctx))
//	guest, release, err := m.Acquire(ctx)
//	if err != nil {
//		return err
//	}
//	defer release()
//	res, err := guest.Reconcile(ctx, &abi.Request{ID: "1", Key: abi.Key{Name: "x"}, Object: object})
//
// # Limits
//
// An instance has the linear memory and an entry call the wall-clock time of Limits; map and
// filter have HookTimeout. A Budget bounds the linear memory of all modules that share it. The
// work of a call, the work of a module in a second and the depth of recursion are bounded too,
// and modules share the CPUs in time slices (CPUScheduler).
package host

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/wasmctl/wasmctl/abi"
)

// Module is the handle of a loaded module that everything else holds. All of
// its methods are safe for concurrent use. They describe the revision that
// was promoted last.
type Module struct {
	name   string
	cfg    Config // with defaults; Name is that of the first revision
	shared *shared
	// current is nil once the module is closed.
	current atomic.Pointer[revision]
	// last is the revision that was promoted last.
	last atomic.Pointer[revision]
	// values are those of the last Configure, or of Config.Settings; replaced by
	// the holder of the hook's slot.
	values atomic.Pointer[map[string]string]

	mu      sync.Mutex
	number  uint64         // of the newest revision; guarded by mu
	loading []RevisionInfo // those whose code is being made; guarded by mu
	open    []*revision    // those that are not closed; guarded by mu
	kept    []*kept        // the newest first; guarded by mu
	pinned  uint64         // the revision that Pin named; guarded by mu
}

// Acquire returns one guest for one reconcile, of the revision that is current
// now and stays the guest's; the caller must call release, once the guest is not
// used any longer. It waits while as many guests as the concurrency allows are
// in use. The error is ErrClosed after Close, the cause of ctx's end, or a
// *abi.CallError where a new instance was needed and its start code failed.
func (m *Module) Acquire(ctx context.Context) (guest abi.Guest, release func(), err error) {
	g, in, err := m.get(ctx, m.shared.slots, nil)
	if err != nil {
		return nil, nil, fmt.Errorf("module[%s]: acquire: %w", m.name, err)
	}
	l := &lease{gen: g, in: in, slots: m.shared.slots}
	return l, l.release, nil
}

// retain returns the current revision with a reference on it, or nil once
// the module is closed.
func (m *Module) retain() *revision {
	for {
		g := m.current.Load()
		if g == nil || g.retain() {
			return g
		}
	}
}

// Manifest returns what the module says of itself, from its section or from
// describe; a module with neither has an empty one. It must not be changed.
func (m *Module) Manifest() *abi.Manifest { return m.last.Load().manifest }

// Digest returns "sha256:" and the hash of the module's bytes in hexadecimal.
func (m *Module) Digest() string { return m.last.Load().code.info.Digest }

// Revision returns the number of the revision, from 1.
func (m *Module) Revision() uint64 { return m.last.Load().number }

// Info returns what Inspect would, without problems. It must not be changed.
func (m *Module) Info() *Info { return m.last.Load().code.info }

// Limits returns the limits in force.
func (m *Module) Limits() Limits { return m.last.Load().limits }

// Concurrency returns how many guests can be acquired at once. A swap does not
// change it.
func (m *Module) Concurrency() int { return cap(m.shared.slots) }

// UnknownKeys returns how many keys of results this host did not know. They
// were ignored; the first are in the log.
func (m *Module) UnknownKeys() uint64 { return m.shared.unknownKeys.Load() }

// Fuel returns the fuel that the module has used since it was loaded, by the
// unit of docs/metering.md; 0 where it is not counted.
func (m *Module) Fuel() uint64 { return m.shared.fuel.Load() }

// Drain tells guests, through the host function cancelled, that the host is
// stopping. Nothing is refused or interrupted.
func (m *Module) Drain() { m.shared.draining.Store(true) }

// Close refuses new guests, waits until every acquired one is released, and
// returns all memory and compiled code. Where ctx ends first it returns ctx's
// error, and the last release does the rest: interrupting calls is up to who
// made them, through their contexts. More calls of Close wait the same way.
// Candidates that were not promoted must be discarded.
func (m *Module) Close(ctx context.Context) error {
	m.Drain()
	m.mu.Lock()
	g := m.current.Swap(nil)
	if g != nil {
		g.state, g.since = RevisionDraining, time.Now()
	}
	open := m.open
	m.mu.Unlock()
	if g != nil {
		close(m.shared.closing)
		m.dropKept(func(*kept) bool { return true })
		g.retire(0)
	}
	var errs []error
	for _, g := range open {
		if err := m.await(ctx, g); err != nil {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// await waits until a revision is closed.
func (m *Module) await(ctx context.Context, g *revision) error {
	if g.isClosed() { // whatever ctx says
		return g.closeErr
	}
	select {
	case <-g.closed:
		return g.closeErr
	case <-ctx.Done():
		return fmt.Errorf("module[%s]: close: instances still in use: %w", m.name, context.Cause(ctx))
	}
}
