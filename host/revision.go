// SPDX-License-Identifier: Apache-2.0

package host

import (
	"cmp"
	"context"
	"log/slog"
	"slices"
	"sync/atomic"
	"time"

	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/host/internal/instance"
	"github.com/wasmctl/wasmctl/host/load"
	"github.com/wasmctl/wasmctl/host/operation"
	"github.com/wasmctl/wasmctl/host/share"
)

// revision is one time that a Module serves a program: the bytes, their manifest, its
// settings, its API. A run belongs to one revision from start to end. The states follow each
// other and never come back:
//
//	loading   until Promote makes it current, or Discard closes it
//	live      until another is promoted, or the module closed
//	draining  until its last run has ended: then it is closed
type revision struct {
	program *program
	cfg     Config // with defaults
	spec    *instance.Spec
	maker   instance.Maker
	shared  *shared
	caps    []string
	// moreAsked are the limits of which the manifest requests more than there is.
	moreAsked []abi.LimitName
	// settings are those of new guests; they are replaced as a whole.
	settings atomic.Pointer[operation.Settings]
	before   *operation.Settings // of the revision that was live when this one was made, or nil

	health health
	pool   pool
	life
}

// life is the life of a revision.
type life struct {
	state RevisionState // guarded by Module.mu
	since time.Time     // when state began; guarded by Module.mu
	// refs is 1 for being a candidate or current, and 1 per acquired guest. At 0 everything
	// is closed, and it never rises again.
	refs atomic.Int64
	// drain interrupts the remaining runs when their time is over; nil before retire.
	drain    *time.Timer
	closed   chan struct{} // closed when everything was returned
	closeErr error         // written before closed is closed
}

// enter begins a state; the caller holds Module.mu.
func (l *life) enter(state RevisionState) { l.state, l.since = state, time.Now() }

// newRevision makes a revision with one reference, which takes over the reference to the
// program. It has no manifest yet.
func (m *Module) newRevision(number uint64, p *program) *revision {
	r := &revision{program: p, cfg: m.cfg, shared: m.shared, life: life{closed: make(chan struct{})}}
	r.enter(RevisionLoading)
	r.refs.Store(1)
	r.cfg.Settings = *m.values.Load()
	if last := m.last.Load(); last != nil {
		r.before = last.settings.Load()
	}
	c := &r.cfg
	r.spec = &instance.Spec{
		Env: &operation.Env{
			Number: number, Secrets: c.Secrets, Metric: c.Observer.Metric, Share: &m.shared.use, Module: &m.shared.requests,
			Memory: share.NewAccount(c.Process.Budget, c.Process.Tenant, share.Instances), Account: c.Process.Account,
		},
		Code: p.Code, Tenant: c.Process.named, Slice: c.Process.slice, CPUs: c.Process.CPUs, Watchdog: c.Process.Watchdog,
		Clock: c.Clock, Observer: c.Observer, All: instance.NewSet(number),
	}
	if c.API != nil {
		r.spec.API = operation.Unconnected{}
	}
	r.maker = p.home.Maker(r.spec)
	c.Process.Budget.Join(c.Process.Tenant, r)
	r.configure(nil)
	return r
}

// configure sets what depends on the manifest, which is nil before it is known. No guest may
// be acquired yet.
func (r *revision) configure(m *abi.Manifest) {
	s := r.spec
	s.Manifest = m
	s.Opaque = m != nil && (slices.Contains(m.Wants, abi.CapOpaque) || slices.Contains(m.Requires, abi.CapOpaque))
	s.Name = r.cfg.NameFor(m)
	s.Program = cmp.Or(r.cfg.Controller, s.Name)
	s.Limits, r.moreAsked = r.cfg.Limits.For(m)
	s.Log = revisionLog(r.cfg, s.Name, s.Number)
	r.settings.Store(r.before.Next(r.cfg.settings(m)))
	r.caps = load.Capabilities(r.cfg.API != nil)
}

func revisionLog(cfg Config, name string, number uint64) *slog.Logger {
	return cfg.Logger.With("controller", name, "revision", number)
}

func (r *revision) digest() string { return r.program.Info.Digest }

// Retain implements share.Pool: it takes a reference, unless the revision is closed.
func (r *revision) Retain() bool {
	for {
		n := r.refs.Load()
		if n == 0 {
			return false
		}
		if r.refs.CompareAndSwap(n, n+1) {
			return true
		}
	}
}

// Release implements share.Pool: it gives a reference back; the last one closes the
// revision.
func (r *revision) Release() {
	if r.refs.Add(-1) == 0 {
		r.close(context.Background())
	}
}

// retire gives back the reference of being current, and the memory of idle instances. Runs
// that are left are interrupted after the limit, unless that is 0; cancelled tells them
// before.
func (r *revision) retire(limit time.Duration) {
	r.pool.mu.Lock()
	r.spec.Draining.Store(true)
	r.pool.mu.Unlock()
	for in := r.pool.popNewest(); in != nil; in = r.pool.popNewest() {
		in.Close(context.Background())
	}
	r.pool.stopExpiry()
	if limit > 0 {
		r.drain = time.AfterFunc(limit, r.spec.All.Interrupt)
	}
	r.Release()
}

// close returns everything. There are no more references.
func (r *revision) close(ctx context.Context) {
	if r.drain != nil {
		r.drain.Stop()
	}
	for in := r.pool.popNewest(); in != nil; in = r.pool.popNewest() {
		in.Close(ctx)
	}
	r.pool.stopExpiry()
	r.maker.Close()
	r.cfg.Process.Budget.Leave(r.cfg.Process.Tenant, r)
	r.closeErr = r.program.release(ctx)
	close(r.closed)
}

// isClosed reports whether everything was returned.
func (r *revision) isClosed() bool {
	select {
	case <-r.closed:
		return true
	default:
		return false
	}
}
