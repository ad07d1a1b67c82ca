// SPDX-License-Identifier: Apache-2.0

// Package host runs reconciler modules on wazero: it loads and checks them, has a bounded
// pool of instances, bounds each call in time and memory, serves the host functions of
// ABI.md, and turns every mistake of a guest into an error of that one call.
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
// # Rooms
//
// This package has the life of a Module: its revisions, their pools of instances, and swaps.
// It stands on rooms whose imports point one way:
//
//	share      budget of memory, time slices of the CPU, limits, watchdog
//	load       bytes -> checked module -> compiled code
//	operation  answers the requests of guests
//	internal/instance  calls a guest within its bounds, in this process
//	isolate    the same in a process of its own
package host

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/host/isolate"
	"github.com/wasmctl/wasmctl/host/load"
	"github.com/wasmctl/wasmctl/host/operation"
	"github.com/wasmctl/wasmctl/host/share"
)

// Module is the handle of a loaded module. All of its methods are safe for concurrent use.
// They describe the revision that was promoted last.
type Module struct {
	name   string
	cfg    Config // with defaults; Name is that of the first revision
	shared *shared
	// current is nil once the module is closed.
	current atomic.Pointer[revision]
	// last is the revision that was promoted last.
	last atomic.Pointer[revision]
	// values are those of the last Configure, or of Config.Settings. The holder of the slot
	// of hooks replaces them.
	values atomic.Pointer[map[string]string]

	mu      sync.Mutex
	number  uint64         // of the newest revision; guarded by mu
	loading []RevisionInfo // whose code is being made; guarded by mu
	open    []*revision    // that are not closed; guarded by mu
	kept    []*kept        // the newest first; guarded by mu
	pinned  uint64         // the revision that Pin named; guarded by mu
}

// shared is what the revisions of one module have in common.
type shared struct {
	use      share.Module
	requests operation.Module
	// slots are those of reconciles, and hookSlots those of map, filter, configure and of a
	// swap. They belong to the module, so that revisions together do not run more than one
	// alone may.
	slots, hookSlots slots
	admissionSlots   slots // of validate, default and convert
	// closing is closed when no more guests may be acquired.
	closing chan struct{}
}

// Acquire returns one guest for one reconcile. It belongs to the revision that is current
// now. The caller must call release when it no longer uses the guest. Acquire waits while as
// many guests as the concurrency allows are in use. The error is ErrClosed after Close, the
// cause of ctx's end, or a *abi.CallError if a new instance was needed and its start code
// failed.
func (m *Module) Acquire(ctx context.Context) (guest abi.Guest, release func(), err error) {
	rev, in, err := m.get(ctx, m.shared.slots, nil)
	if err != nil {
		return nil, nil, fmt.Errorf("module[%s]: acquire: %w", m.name, err)
	}
	l := &lease{rev: rev, in: in, slots: m.shared.slots}
	return l, l.release, nil
}

// retain returns the current revision with a reference on it, or nil once the module is
// closed.
func (m *Module) retain() *revision {
	for {
		rev := m.current.Load()
		if rev == nil || rev.Retain() {
			return rev
		}
	}
}

// Manifest returns the module's description of itself, from its section or from describe; a
// module with neither has an empty one. It must not be changed.
func (m *Module) Manifest() *abi.Manifest { return m.last.Load().spec.Manifest }

// Digest returns "sha256:" and the hash of the module's bytes in hexadecimal.
func (m *Module) Digest() string { return m.last.Load().digest() }

// Revision returns the number of the revision, from 1.
func (m *Module) Revision() uint64 { return m.last.Load().spec.Number }

// Info returns the result of load.Inspect, without problems. It must not be changed.
func (m *Module) Info() *load.Info { return m.last.Load().program.Info }

// Limits returns the limits in force.
func (m *Module) Limits() share.Limits { return m.last.Load().spec.Limits }

// Concurrency returns how many guests can be acquired at once. A swap does not change it.
func (m *Module) Concurrency() int { return cap(m.shared.slots) }

// UnknownKeys returns how many keys of results this host did not know. They were ignored;
// the first are in the log.
func (m *Module) UnknownKeys() uint64 { return m.shared.requests.UnknownKeys.Load() }

// Fuel returns the fuel that the module has used since it was loaded, in the unit of
// docs/metering.md.
func (m *Module) Fuel() uint64 { return m.shared.use.Fuel.Load() }

// Memory returns the linear memory of all instances of the module, idle ones included, in
// bytes. It takes no lock.
func (m *Module) Memory() int64 { return m.shared.use.Memory.Load() }

// NoImage returns the reason why each instance of the live revision runs the start code of
// the module. It is nil if instances start from an image, or were too few to need one.
func (m *Module) NoImage() error { return m.last.Load().maker.NoImage() }

// GuestProcess returns the figures of the process with the instances of the live revision,
// and false if there is none.
func (m *Module) GuestProcess() (isolate.Stats, bool) { return m.last.Load().program.home.Stats() }

// LimitStats returns how often the module has reached each of its limits since it was
// loaded; limits that it never reached are left out. For log_lines and log_bytes it is the
// number of lines that were dropped, for instance_calls and high_water that of instances
// that were replaced. memory_budget is that of the process.
func (m *Module) LimitStats() map[abi.LimitName]uint64 {
	stats := m.shared.use.Hits.All()
	if n := m.cfg.Process.Account.Refused(); n > 0 {
		stats[abi.LimitMemoryBudget] += n
	}
	return stats
}

// Recycled returns how many instances were replaced since the module was loaded, by reason:
// trap, timeout, memory, output, interrupted (by a stop or a swap), instance_calls,
// high_water. Reasons that did not occur are left out.
func (m *Module) Recycled() map[string]uint64 { return m.shared.use.Recycled.All() }

// Drain tells guests, through the host function cancelled, that the host is stopping.
// Nothing is refused or interrupted.
func (m *Module) Drain() { m.shared.requests.Draining.Store(true) }

// Close refuses new guests, waits until every acquired one is released, and returns all
// memory and compiled code. If ctx ends first, it returns ctx's error, and the last release
// does the rest: to interrupt calls is the concern of their callers, through their
// contexts. More calls of Close wait the same way. Candidates that were not promoted must be
// discarded.
func (m *Module) Close(ctx context.Context) error {
	m.Drain()
	m.mu.Lock()
	rev := m.current.Swap(nil)
	if rev != nil {
		rev.enter(RevisionDraining)
	}
	open := m.open
	m.mu.Unlock()
	if rev != nil {
		close(m.shared.closing)
		m.dropKept(func(*kept) bool { return true })
		rev.retire(0)
	}
	var errs []error
	for _, rev := range open {
		if err := m.await(ctx, rev); err != nil {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// await waits until a revision is closed.
func (m *Module) await(ctx context.Context, rev *revision) error {
	if rev.isClosed() { // whatever the state of ctx
		return rev.closeErr
	}
	select {
	case <-rev.closed:
		return rev.closeErr
	case <-ctx.Done():
		return fmt.Errorf("module[%s]: close: instances still in use: %w", m.name, context.Cause(ctx))
	}
}
