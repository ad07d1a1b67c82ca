package host

import (
	"cmp"
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/wasmctl/wasmctl/abi"
)

// revision is one time that a Module serves one code: the bytes, their
// manifest, its settings, its API. A run belongs to one revision from start
// to end. Its states follow each other and never come back:
//
//	loading   until Promote makes it current, or Discard closes it
//	live      until another is promoted, or the module closed
//	draining  until its last run has ended: then it is closed
type revision struct {
	number uint64 // from 1
	name   string
	code   *code
	cfg    Config // with defaults
	limits Limits
	// moreAsked are the limits of which the manifest asks for more than there is.
	moreAsked []abi.LimitName
	manifest  *abi.Manifest
	caps      []string
	// settings are those that new guests get; they are replaced as a whole.
	settings atomic.Pointer[settings]
	before   *settings    // those of the revision that was live when this was made, or nil
	api      API          // nil: api_* answer UNSUPPORTED
	log      *slog.Logger // with controller and revision
	shared   *shared

	health health
	images images
	common *common // what its instances start from in the place of images; nil for most modules

	state RevisionState // guarded by Module.mu
	since time.Time     // when state began; guarded by Module.mu

	mu   sync.Mutex
	idle []*instance // guarded by mu; the last one used is the last
	// expiry closes idle instances in time; guarded by mu; nil where none is idle.
	expiry *time.Timer
	rests  bool // nothing has run since expire has seen that; guarded by mu
	// all are the instances that are not closed, those in use too; guarded by mu.
	all map[*instance]struct{}
	// draining says that what is released is not used again; it is set under mu.
	// over says that nothing may run any longer; guarded by mu.
	draining atomic.Bool
	over     bool
	trial    atomic.Bool   // its runs do not count: no metrics
	replaced chan struct{} // closed when over is set

	// refs is 1 for being a candidate or current, and 1 per acquired guest; at 0
	// everything is closed and it never rises again.
	refs atomic.Int64
	// drain interrupts the runs that are left when their time is over; nil before
	// retire.
	drain    *time.Timer
	closed   chan struct{} // closed when everything was returned
	closeErr error         // written before closed is closed
}

// shared is what the revisions of one module have in common.
type shared struct {
	draining    atomic.Bool
	unknownKeys atomic.Uint64
	fuel        atomic.Uint64 // that was spent
	memory      atomic.Int64  // linear memory of all instances, in bytes
	rate        bucket        // of fuel: it is paid for when it has been used
	hits        tally[abi.LimitName]
	logs        logGate
	events      bucket
	series      metricSeries
	recycled    tally[string]
	fresh       bucket // of instances
	warnUnknown sync.Once
	// slots are those of reconciles, hookSlots those of map, filter, configure
	// and of a swap. They are the module's, so that revisions together do not
	// run more than one alone may.
	slots, hookSlots slots
	// closing is closed when no guest may be acquired any longer.
	closing chan struct{}
}

// newRevision makes a revision with one reference, which takes over the
// reference to the code. It has no manifest yet.
func (m *Module) newRevision(number uint64, code *code) *revision {
	g := &revision{
		number: number, code: code, cfg: m.cfg, shared: m.shared,
		all: map[*instance]struct{}{}, replaced: make(chan struct{}), closed: make(chan struct{}),
		state: RevisionLoading, since: time.Now(), common: m.cfg.Codes.joinCommon(code),
	}
	g.refs.Store(1)
	g.cfg.Settings = *m.values.Load()
	if last := m.last.Load(); last != nil {
		g.before = last.settings.Load()
	}
	g.cfg.Budget.join(g)
	g.configure(nil)
	return g
}

// configure sets what depends on the manifest, which is nil before it is
// known. No guest may be acquired yet.
func (g *revision) configure(m *abi.Manifest) {
	g.manifest = m
	g.name = g.cfg.NameFor(m)
	g.limits, g.moreAsked = g.cfg.limitsFor(m)
	g.settings.Store(g.before.next(g.cfg.settings(m)))
	g.caps = capNames(g.cfg.API != nil)
	g.log = revisionLog(g.cfg, g.name, g.number)
}

// program is what the guest is named: os.Args[0].
func (g *revision) program() string { return cmp.Or(g.cfg.Controller, g.name) }

func revisionLog(cfg Config, name string, number uint64) *slog.Logger {
	return cfg.Logger.With("controller", name, "revision", number)
}

// hook reports whether an optional export is there and real.
func (g *revision) hook(name string) bool { return g.manifest.Hook(name, g.code.hooks[name]) }

// retain takes a reference, unless the revision is closed.
func (g *revision) retain() bool {
	for {
		n := g.refs.Load()
		if n == 0 {
			return false
		}
		if g.refs.CompareAndSwap(n, n+1) {
			return true
		}
	}
}

// release gives a reference back; the last one closes the revision.
func (g *revision) release() {
	if g.refs.Add(-1) == 0 {
		g.close(context.Background())
	}
}

// retire gives back the reference of being current, and the memory of idle
// instances. Runs that are left are interrupted after the limit, unless that is
// 0; cancelled tells them before.
func (g *revision) retire(limit time.Duration) {
	g.mu.Lock()
	g.draining.Store(true)
	g.mu.Unlock()
	for in := g.popIdle(); in != nil; in = g.popIdle() {
		in.close(context.Background())
	}
	g.stopExpiry()
	if limit > 0 {
		g.drain = time.AfterFunc(limit, g.interrupt)
	}
	g.release()
}

// interrupt ends every run that is left.
func (g *revision) interrupt() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if !g.over {
		g.over = true
		close(g.replaced)
	}
	for in := range g.all {
		in.interrupt.fire(byReplaced)
	}
}

// close returns everything. Nobody holds a reference any longer.
func (g *revision) close(ctx context.Context) {
	if g.drain != nil {
		g.drain.Stop()
	}
	for in := g.popIdle(); in != nil; in = g.popIdle() {
		in.close(ctx)
	}
	g.stopExpiry()
	g.images.drop()
	g.common.leave()
	g.cfg.Budget.leave(g)
	g.closeErr = g.code.release(ctx)
	close(g.closed)
}

// isClosed reports whether everything was returned.
func (g *revision) isClosed() bool {
	select {
	case <-g.closed:
		return true
	default:
		return false
	}
}
