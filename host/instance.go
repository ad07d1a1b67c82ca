package host

import (
	"context"
	"errors"
	"math"
	"sync/atomic"
	"time"

	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/host/internal/layout"
	"github.com/wasmctl/wasmctl/host/internal/vm"
	"github.com/wasmctl/wasmctl/host/internal/wasi"
)

// instance is one instance of a revision. One goroutine uses it at a time,
// the one that runs the guest; only interrupt belongs to others as well.
type instance struct {
	gen       *revision
	module    vm.Module
	memory    vm.Memory
	linear    linearMemory
	interrupt interrupt
	timer     *time.Timer // interrupts the call when its time is over
	caller    *caller     // whose end interrupts the call; nil for none

	// Functions are looked up once (a look-up costs microseconds), and called
	// with one stack (which costs no allocation). Those of optional exports are
	// looked up by entry, when they are first called.
	buffer, reconcile vm.Function
	optional          map[string]vm.Function
	stack             [2]uint64
	scratch           []byte // the head of a request

	// settings are those that the guest was configured with last.
	settings *settings
	// idleSince is when it became idle, in nanoseconds of Unix time; guarded by
	// the revision's mu while it is idle.
	idleSince int64
	imaged    bool // it was made of an image; written once, before it is used

	host        hostWork
	overdue     atomic.Int64 // when Config.Watchdog reports the call; 0 where none runs
	descriptors wasi.Descriptors
	fuelBudget  fuelBudget
	// given is what start code was given, while an image is made of it; else nil.
	given *layout.Given
	// spent is the fuel that the last call used, sources what it asked for that
	// differs each time.
	spent   int64
	sources abi.Source

	// entered counts the entry calls.
	entered int64

	// remote is the instance where it is in a guest process; all that is the
	// guest's is there. upstream is, in that process, the host.
	remote   *remote
	upstream *upstream

	run    run
	output output
	// refusals are answers of operations beyond a limit, to be given again.
	refusals map[abi.LimitName]abi.Response
	closed   bool
}

// run is the state of one entry call.
type run struct {
	// parent is the caller's context: what operations and log lines are given.
	parent context.Context //nolint:containedctx // it lives as long as the call
	// startedAt and limit say when the call ends; deadline is the same.
	startedAt time.Time
	limit     time.Duration
	deadline  time.Time
	// access says what the guest may use now; it is more than accessNone only
	// while an entry runs.
	access access
	// id and key name the run in log lines.
	id  string
	key abi.Key
	// held is the answer that take copies from, where holding. counted is what the
	// account counts of it.
	held    []byte
	holding bool
	counted int64
	// calls counts operations, events those of them that record one.
	calls, events int64
	// sources are those that it has asked.
	sources abi.Source
	// waited is how long the guest waited for operations, for its turn and for the
	// module's fuel rate. That it sleeps is its own affair.
	waited time.Duration

	computing
}

// access is what a guest may use in an entry call: each includes those before.
type access int

const (
	accessNone   = access(iota) // start code, buffer, describe: log, clocks and random
	accessConfig                // configure: config_get too
	accessCache                 // map, filter: cache_get and cache_list too
	accessAll                   // reconcile, finalize, error_policy
)

// instanceKey is the context key under which host functions find their
// instance.
type instanceKey struct{}

// newInstance makes an instance that is ready for any entry.
func (g *revision) newInstance(ctx context.Context, s *settings) (_ *instance, err error) {
	if s == g.settings.Load() { // that others are refused says nothing
		defer func() { g.health.note(ctx, err) }()
	}
	common := g.common.image(ctx, g)
	if common == nil {
		if in, err := g.images.start(ctx, g, s); in != nil || err != nil {
			return in, err
		}
	}
	in, err := g.begin(ctx, common)
	if err != nil {
		return nil, err
	}
	if err := in.configure(ctx, s); err != nil {
		in.close(ctx)
		return nil, err
	}
	return in, nil
}

// instantiate instantiates the module and runs its start code within the limits
// of a call.
func (g *revision) instantiate(ctx context.Context) (*instance, error) {
	return g.run(ctx, &instance{gen: g})
}

// run makes a new instance into one whose start code has run.
func (g *revision) run(ctx context.Context, in *instance) (*instance, error) {
	in.linear.start = g.code.base
	if err := in.prepare(ctx); err != nil {
		in.close(ctx)
		return nil, err
	}
	if err := in.guarded(ctx, entry{name: abi.ExportInitialize, limit: g.limits.Timeout}, in.load); err != nil {
		in.close(ctx)
		return nil, err
	}
	return in, nil
}

// prepare takes what an instance needs before any of its code runs. After an
// error it must be closed.
func (in *instance) prepare(ctx context.Context) error {
	g := in.gen
	in.interrupt = interrupt{in: in, done: make(chan struct{})}
	in.fuelBudget.maxStack, in.fuelBudget.sliceSizer = min(g.code.maxStack, g.limits.Stack), newSliceSizer(g.cfg.slice)
	in.timer = time.AfterFunc(math.MaxInt64, func() { in.interrupt.fire(byDeadline) })
	in.output.in = in
	var err error
	if g.code.remote != nil {
		err = in.connect(ctx)
	} else {
		err = in.linear.reserve(in)
	}
	if err != nil {
		return err
	}
	g.cfg.Watchdog.add(in)
	return g.register(in)
}

// load instantiates the module, which runs its start code.
func (in *instance) load() (err error) {
	if in.remote != nil {
		return in.remote.start()
	}
	code := in.gen.code
	in.module, err = code.instantiate(in, moduleConfig)
	if err == nil && in.module.IsClosed() { // proc_exit(0) is no error to wazero
		err = errors.New("exited with code 0")
	}
	if err == nil {
		in.complete()
	}
	return err
}

// instantiate makes an instance of wazero.
func (c *code) instantiate(in *instance, config vm.Config) (vm.Module, error) {
	return c.runtime.InstantiateModule(vm.WithAllocator(&in.interrupt, &in.linear), c.compiled, config)
}

// complete notes what calls need.
func (in *instance) complete() {
	in.fuelBudget.bind(in.module)
	in.memory = in.module.Memory()
	in.buffer = in.module.ExportedFunction(abi.ExportBuffer)
	in.reconcile = in.module.ExportedFunction(abi.ExportReconcile)
}

// size is that of the instance's linear memory, in bytes.
func (in *instance) size() int64 {
	if in.remote != nil {
		return in.remote.size
	}
	return int64(in.memory.Size())
}

// function returns an entry of the guest; it must be exported.
func (in *instance) function(name string) vm.Function {
	if name == abi.ExportReconcile {
		return in.reconcile
	}
	fn := in.optional[name]
	if fn == nil {
		fn = in.module.ExportedFunction(name)
		if in.optional == nil {
			in.optional = map[string]vm.Function{}
		}
		in.optional[name] = fn
	}
	return fn
}

// moduleConfig gives a guest nothing: what it may use are its imports.
var moduleConfig = vm.NewConfig(abi.ExportInitialize)

// close returns what the instance holds. It must not be used afterwards; more
// calls do nothing.
func (in *instance) close(ctx context.Context) {
	if in.closed {
		return
	}
	in.closed = true
	in.timer.Stop()
	in.leaveCaller()
	if in.remote != nil {
		in.remote.close()
	}
	if in.module != nil {
		_ = in.module.Close(ctx) // there are no files whose closing could fail
	}
	in.linear.release()
	in.gen.unregister(in)
	in.gen.cfg.Watchdog.remove(in)
	// The functions have the stacks, of megabytes after a deep recursion. Go may keep a
	// timer that was stopped, and the instance with it, until much later.
	in.buffer, in.reconcile, in.optional = nil, nil, nil
}
