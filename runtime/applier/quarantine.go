// SPDX-License-Identifier: Apache-2.0

package applier

import (
	"context"
	"errors"
	"hash/maphash"
	"log/slog"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/internal/packed"
	"github.com/wasmctl/wasmctl/runtime/applier/quarantine"
	"github.com/wasmctl/wasmctl/runtime/queue"
)

// quarantineState holds the objects whose runs trap or exceed limits.
type quarantineState struct {
	mu    sync.Mutex
	table *quarantine.Table // guarded by mu
	// known is the length of the table, so that runs take no lock while it is empty.
	known atomic.Int64
}

// change calls f with the table.
func (p *quarantineState) change(f func(*quarantine.Table)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	f(p.table)
	p.known.Store(int64(p.table.Len()))
}

// quarantined reports whether the object is quarantined, and if so, completes the run. A trigger by a user always gets a run.
func (r *run) quarantined() bool {
	p := &r.a.quarantine
	if p.known.Load() == 0 {
		return false
	}
	var wait time.Duration
	var freed bool
	p.change(func(t *quarantine.Table) {
		if t.Known(r.out.Key) && !asked(&r.out.Reasons) {
			wait, freed = t.Check(r.out.Key, r.subject(r.a.revision(r.out.Key)), r.out.Started)
		}
	})
	if freed {
		r.logHealthy("the object or the module has changed")
	}
	if wait == 0 {
		return false
	}
	r.out.Err, r.out.DecidedBy = ErrQuarantined, DecidedByQuarantine
	r.out.Action = abi.Action{Requeue: true, After: wait}
	return true
}

// asked reports whether a user, a program or new settings requested the run.
func asked(reasons *queue.Reasons) bool {
	asks := func(r abi.Reason) bool { return r.Type == abi.ReasonTriggered || r.Type == abi.ReasonConfigChanged }
	return asks(reasons.First) || slices.ContainsFunc(reasons.More, asks)
}

// revision returns the revision of the module that would run an object.
func (a *Applier) revision(key abi.Key) uint64 {
	if a.cfg.Revision == nil {
		return 0
	}
	return a.cfg.Revision(key)
}

func (r *run) subject(revision uint64) quarantine.Subject {
	if r.a.cfg.Revision == nil {
		revision = 0
	}
	return quarantine.Subject{Object: fingerprint(r.object), Module: revision}
}

// healthy removes the object from quarantine after a run that was not harmful.
func (r *run) healthy(why string) {
	p := &r.a.quarantine
	if p.known.Load() == 0 {
		return
	}
	var freed bool
	p.change(func(t *quarantine.Table) { freed = t.Forget(r.out.Key) })
	if freed && why != "" {
		r.logHealthy(why)
	}
}

// quarantineFailure checks whether a failed run was harmful, and quarantines the object if there were too many of them. Otherwise the
// earlier decision remains.
func (r *run) quarantineFailure(err error) {
	if r.guest == nil {
		return // no guest has run
	}
	kind, ok := poisonous(err)
	if !ok {
		r.healthy("its last run failed differently")
		return
	}
	failure := quarantine.Failure{Kind: kind, Text: err.Error()}
	subject := r.subject(r.out.Revision)
	var wait time.Duration
	var entered bool
	r.a.quarantine.change(func(t *quarantine.Table) {
		wait, entered = t.Failed(r.out.Key, subject, failure, time.Now(), rand.Float64())
	})
	if wait > 0 && r.out.Action.Requeue && r.out.Action.After < wait {
		r.out.Action.After, r.out.DecidedBy = wait, DecidedByQuarantine
	}
	if entered {
		r.a.cfg.Logger.Warn("object quarantined: its runs keep trapping or exceeding limits; retrying later, or when it or the module changes, or with wasmctl trigger",
			"controller", r.a.cfg.Controller, "object", r.out.Key.String(), "reconcile_id", r.out.ID,
			slog.String("kind", string(kind)), slog.Int("attempt", r.out.Attempt), slog.Duration("next", wait), slog.String("error", failure.Text))
	}
}

// poisonous reports whether the guest itself ended the run badly: with a trap, at a limit, or with an invalid result. The following are not
// attributed to the object: a guest that fails to start, a lack of memory in the process, and time spent waiting for the API server.
func poisonous(err error) (abi.FailureKind, bool) {
	call, ok := errors.AsType[*abi.CallError](err)
	if !ok || call.Func != abi.ExportReconcile && call.Func != abi.ExportFinalize {
		return "", false
	}
	if limit, ok := errors.AsType[*abi.LimitError](err); ok && (limit.Limit == abi.LimitMemoryBudget || limit.Waited) {
		return "", false
	}
	return call.Kind, call.Kind != abi.FailureError
}

func (r *run) logHealthy(why string) {
	r.a.cfg.Logger.LogAttrs(context.Background(), slog.LevelInfo, "object no longer quarantined: "+why,
		slog.String("controller", r.a.cfg.Controller), slog.String("object", r.out.Key.String()))
}

// Quarantined returns up to limit objects in quarantine, in the order in which they entered it, and their total number. It may be called at
// any time.
func (a *Applier) Quarantined(limit int) (list []quarantine.State, total int) {
	a.quarantine.mu.Lock()
	defer a.quarantine.mu.Unlock()
	return a.quarantine.table.List(limit), a.quarantine.table.Quarantined()
}

var fingerprintSeed = maphash.MakeSeed()

// fingerprint identifies the desired state of an object: its uid, whether it is being deleted, and its generation or, if its kind has none,
// everything except metadata and status. For an unreadable object, it is a hash of the bytes.
func fingerprint(object []byte) uint64 {
	var h maphash.Hash
	h.SetSeed(fingerprintSeed)
	var uid, generation, deleted, rest []byte
	c := packed.At(object)
	for range c.MapLen() {
		switch key := c.Text(); string(key) {
		case "status":
			c.Skip()
		case "metadata":
			for range c.MapLen() {
				switch string(c.Text()) {
				case "uid":
					uid = c.Value()
				case "generation":
					generation = c.Value()
				case "deletionTimestamp":
					deleted = c.Value()
				default:
					c.Skip()
				}
			}
		default:
			rest = append(append(rest, key...), c.Value()...)
		}
	}
	switch {
	case !c.OK():
		return maphash.Bytes(fingerprintSeed, object)
	case generation != nil:
		rest = generation
	}
	for _, part := range [][]byte{uid, deleted, rest} {
		_, _ = h.Write(part)
		_ = h.WriteByte(0xc1) // a byte that never occurs in msgpack
	}
	return h.Sum64()
}
