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

// quarantineState has the objects whose runs trap or reach limits.
type quarantineState struct {
	mu    sync.Mutex
	table *quarantine.Table // guarded by mu
	// known is how many the table has, so that runs take no lock while there is
	// nothing in it.
	known atomic.Int64
}

// change runs f with the table.
func (p *quarantineState) change(f func(*quarantine.Table)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	f(p.table)
	p.known.Store(int64(p.table.Len()))
}

// quarantined reports whether the object is quarantined, and then ends the run.
// A trigger by a user always gets a run.
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

// asked reports whether a user, a program or new settings ask for the run.
func asked(reasons *queue.Reasons) bool {
	asks := func(r abi.Reason) bool { return r.Type == abi.ReasonTriggered || r.Type == abi.ReasonConfigChanged }
	return asks(reasons.First) || slices.ContainsFunc(reasons.More, asks)
}

// revision is that of the module that would run an object.
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

// healthy takes the object out of quarantine: its run was not harmful.
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

// quarantineFailure checks whether a failed run was harmful, and leaves the object alone
// where there were too many of them. Otherwise the earlier decision holds.
func (r *run) quarantineFailure(err error) {
	if r.guest == nil {
		return // it has not run
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

// poisonous reports whether the guest itself ended the run badly: by a trap, at
// a limit, or with a result that makes no sense. A start of the guest that
// fails, memory that the process does not have, and time that went by while the
// API server did not answer are not the object's.
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

// Quarantined returns the objects in quarantine, those that have been there
// longest first, at most limit of them, and how many there are. It may be called
// at any time.
func (a *Applier) Quarantined(limit int) (list []quarantine.State, total int) {
	a.quarantine.mu.Lock()
	defer a.quarantine.mu.Unlock()
	return a.quarantine.table.List(limit), a.quarantine.table.Quarantined()
}

var fingerprintSeed = maphash.MakeSeed()

// fingerprint stands for what an object asks for: its uid, whether it is being
// deleted, and its generation or, where its kind has none, all of it but
// metadata and status. An unreadable object has that of its bytes.
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
		_ = h.WriteByte(0xc1) // is in no msgpack
	}
	return h.Sum64()
}
