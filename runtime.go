// SPDX-License-Identifier: Apache-2.0

// Package wasmctl runs Kubernetes controllers whose reconcile logic is a WebAssembly
// module, and also native reconcilers, in a Go program.
//
//	rt, err := wasmctl.New(restConfig, wasmctl.Options{Logger: log})
//	g.Go(func() error { return rt.Run(ctx) }) // returns when everything that it started has ended
//	options := wasmctl.ControllerOptions{}
//	options.Grant = &v1alpha1.Grant{Manifest: true} // what the module's manifest requests
//	c, err := rt.Load(ctx, wasmctl.File("greeter.wasm"), options)
//	revision, err := c.Swap(ctx, wasmctl.File("greeter-2.wasm"), wasmctl.SwapOptions{Canary: &v1alpha1.Canary{Percent: 10}})
//	err = c.Stop(ctx) // drains
//
// The controllers of a Runtime share watches, caches, workers and one lease. Each has
// rights, limits and logs of its own. A program may have several Runtimes, which share
// nothing. This package does not change any global state of the process.
package wasmctl

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	goruntime "runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/client-go/rest"

	"github.com/wasmctl/wasmctl/host"
	"github.com/wasmctl/wasmctl/host/kubeapi/events"
	"github.com/wasmctl/wasmctl/host/kubeapi/kinds"
	"github.com/wasmctl/wasmctl/host/share"
	"github.com/wasmctl/wasmctl/internal/engine"
	"github.com/wasmctl/wasmctl/internal/failure"
	"github.com/wasmctl/wasmctl/internal/rollout/ledger"
	"github.com/wasmctl/wasmctl/internal/spill"
	"github.com/wasmctl/wasmctl/internal/telemetry"
	"github.com/wasmctl/wasmctl/runtime/leader"
	"github.com/wasmctl/wasmctl/runtime/metrics"
	"github.com/wasmctl/wasmctl/runtime/runner"
	"github.com/wasmctl/wasmctl/runtime/shard"
	"github.com/wasmctl/wasmctl/runtime/watcher"
)

// Runtime runs controllers in one process. It is safe for concurrent use.
type Runtime struct {
	opts      Options
	log       *slog.Logger
	startedAt time.Time
	shared    engine.Shared
	users     *engine.Identities
	events    *events.Recorder
	probes    probes
	hooks     *hooks // nil unless webhooks are served
	replicas
	course
	roster
	loads
}

// replicas is the participation in an election, or in the sharing of objects.
type replicas struct {
	elector *leader.Elector // nil without an election
	member  *shard.Member   // nil unless replicas share the objects
}

// course is the course of a Runtime: from New to Run, and to its end.
type course struct {
	running atomic.Bool   // Run has begun
	begun   chan struct{} // closed by Run
	force   chan struct{} // closed by Interrupt
	once    sync.Once     // closes force

	ctx    context.Context // of the controllers
	cancel context.CancelFunc
}

// roster are the controllers of a Runtime.
type roster struct {
	mu          sync.Mutex
	controllers []*Controller   // in the order in which they were added; guarded by mu
	stop        context.Context // the context of Run; nil before; guarded by mu
	stopped     bool            // no more controllers may begin; guarded by mu
	errs        []error         // the errors of controllers that have ended; guarded by mu
	wg          sync.WaitGroup  // of controllers; added to under mu, unless stopped
}

// loads is the state that loading modules shares.
type loads struct {
	starts   sync.Mutex    // held while a controller takes its name
	turns    turns         // bounds concurrent loads of modules
	refusals refusals      // modules that could not be compiled
	bytes    spill.Shared  // the bytes of modules
	garbage  garbage       // of loading modules
	forged   atomic.Uint64 // the number of rejected cache entries
}

// New returns a Runtime for a cluster. It sends no request. The error matches ErrUsage or
// ErrCluster.
func New(config *rest.Config, o Options) (*Runtime, error) {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	rt := &Runtime{opts: o, log: o.Logger, startedAt: time.Now()}
	rt.force, rt.begun, rt.turns = make(chan struct{}), make(chan struct{}), newTurns(cmp.Or(o.CPUs, goruntime.GOMAXPROCS(0)))
	rt.ctx, rt.cancel = context.WithCancel(context.Background())
	var err error
	watches := watcher.Config{Log: rt.log, Compress: o.CacheCompression, Backoff: watcher.Backoff(o.WatchBackoff)}
	if err = watches.Backoff.Check(); err != nil {
		return nil, failure.Usage.Wrap(err)
	}
	config = rest.CopyConfig(config)
	config.QPS, config.UserAgent = -1, "wasmctl/"+o.Version // the API server's priority and fairness limits requests
	if rt.users, err = engine.NewIdentities(config, watches); err != nil {
		return nil, failure.Cluster.Wrap(err)
	}
	rt.users.MaxCache, rt.users.MaxWatches = o.Tenants.Cache, o.Tenants.Watches
	rt.shared = engine.Shared{
		As: rt.users.As, Resolver: kinds.NewResolver(rt.users.Own.Client, rt.log), CPUs: share.NewCPUScheduler(cmp.Or(o.CPUs, goruntime.GOMAXPROCS(0))),
		Compile: o.Compile, CacheDir: o.CacheDir, CacheKey: o.CacheKey, OnForged: func() { rt.forged.Add(1) },
		Watchdog: share.NewWatchdog(), Codes: &host.Codes{}, Isolation: o.Isolation,
		OnSwap: rt.swapped, Record: rt.recordAbout,
	}
	if o.MemoryBudget > 0 {
		rt.shared.Budget = share.NewBudget(o.MemoryBudget, o.TenantMemory)
		rt.users.Budget = rt.shared.Budget
	}
	if o.Workers > 0 {
		if rt.shared.Pool, err = runner.NewPool(o.Workers); err != nil {
			return nil, failure.Usage.Wrap(err)
		}
	}
	if err = rt.replicate(config); err != nil {
		return nil, failure.Usage.Wrap(err)
	}
	if rt.events, err = rt.newRecorder(); err != nil {
		return nil, failure.Cluster.Wrap(err)
	}
	if o.StateDir != "" {
		rt.shared.OnProven = rt.storeLive
		if o.Election == nil {
			rt.shared.Notes = ledger.Dir(o.StateDir)
		}
	}
	if o.Notes != nil {
		rt.shared.Notes = o.Notes
	}
	if o.Traces != nil {
		if rt.shared.Tracing, err = telemetry.NewTracing(o.Traces, o.Version); err != nil {
			return nil, failure.Usage.Wrap(err)
		}
	}
	others, err := rt.prepareHooks(config)
	if err != nil {
		return nil, failure.Usage.Wrap(err)
	}
	rt.shared.Metrics = metrics.New(metrics.Config{Version: o.Version, Process: rt.figures, Others: others, Logger: rt.log})
	rt.probes.init(rt)
	rt.shared.Ready = rt.probes.ready
	return rt, nil
}

// Load loads a module and starts its controller: at once if the Runtime runs, and otherwise
// when it does. It waits for the API server and for kinds that do not exist yet, until ctx
// ends. After an error nothing remains; the error matches ErrUsage, ErrModule,
// ErrUnknownKind, ErrDenied or ErrNameTaken.
func (rt *Runtime) Load(ctx context.Context, m Module, o ControllerOptions) (*Controller, error) {
	return rt.LoadFunc(ctx, func() (Module, ControllerOptions, error) { return m, o, nil })
}

// LoadFunc is like Load, but calls source for the module and the options: now, and at each
// restart of the controller.
func (rt *Runtime) LoadFunc(ctx context.Context, source func() (Module, ControllerOptions, error)) (*Controller, error) {
	return rt.load(ctx, source, nil)
}

func (rt *Runtime) load(ctx context.Context, source source, native *Native) (*Controller, error) {
	c, err := rt.add("", source)
	if err != nil {
		return nil, err
	}
	c.native = native
	a := loader{c}.Load(ctx, "", c.life.Waits)
	if a.LastLive != "" {
		c.log.Warn("running the module that was live last", "reason", a.Err.Error())
		a = loader{c}.Load(ctx, a.LastLive, c.life.Waits)
	}
	if a.Err == nil {
		a.Err = rt.admit(c, a.Controller)
	}
	if c, err = rt.settled(c, a.Err); err == nil {
		_ = c.Started(ctx) // it is already loaded
	}
	return c, err
}

// Ensure adds a controller that is loaded when the Runtime runs, and retried until it
// starts. It calls source for the module and options at each attempt; name is the name of
// the controller until it is loaded.
func (rt *Runtime) Ensure(name string, source func() (Module, ControllerOptions, error)) (*Controller, error) {
	c, err := rt.add(name, source)
	if err != nil {
		return nil, err
	}
	return rt.settled(c, rt.admit(c, nil))
}

// settled returns an added controller, or removes it if there was an error.
func (rt *Runtime) settled(c *Controller, err error) (*Controller, error) {
	if err != nil {
		rt.remove(c)
		c.life.Discard()
		return nil, err
	}
	return c, nil
}

// add adds a controller to the Runtime.
func (rt *Runtime) add(name string, source source) (*Controller, error) {
	c := newController(rt, name, source)
	rt.mu.Lock()
	defer rt.mu.Unlock()
	if rt.stopped {
		return nil, ErrStopping
	}
	rt.controllers = append(rt.controllers, c)
	return c, nil
}

func (rt *Runtime) remove(c *Controller) {
	c.unserve()
	rt.mu.Lock()
	defer rt.mu.Unlock()
	rt.controllers = slices.DeleteFunc(rt.controllers, func(o *Controller) bool { return o == c })
}

// Controllers returns the controllers in the order in which they were added.
func (rt *Runtime) Controllers() []*Controller {
	rt.mu.Lock()
	defer rt.mu.Unlock()
	return slices.Clone(rt.controllers)
}

// Run runs the controllers until ctx ends, and returns when everything that it started has
// ended. Running reconciles may use the DrainTimeout of their controller; Interrupt cuts
// them short. The lease is given up last. Run returns nil after an orderly stop. Otherwise
// the error matches ErrForced if reconciles were interrupted, or ErrLeaseLost. Run may be
// called only once.
func (rt *Runtime) Run(ctx context.Context) error {
	if rt.running.Swap(true) {
		return errors.New("wasmctl: Runtime.Run was called before")
	}
	rt.mu.Lock()
	rt.stop = ctx
	rt.mu.Unlock()
	close(rt.begun)
	stopHooks, failed := rt.hooks.start(ctx)
	if failed != nil {
		rt.Interrupt()
	}
	rt.wg.Go(func() { rt.shared.Watchdog.Run(rt.ctx) })
	rt.wg.Go(func() { rt.users.Run(rt.ctx) })
	recording, stopRecording := context.WithCancel(context.WithoutCancel(rt.ctx)) // ends after the controllers
	var recorder sync.WaitGroup
	recorder.Go(func() { _ = rt.events.Run(recording) }) // it can only fail if it runs already
	lease := rt.elect(rt.ctx)
	select {
	case <-ctx.Done():
		lease.handOver(rt.force)
	case <-rt.force:
	case <-lease.lost:
		rt.Interrupt()
	}
	stopHooks(rt.force)
	rt.cancel()
	rt.mu.Lock()
	rt.stopped = true
	rt.mu.Unlock()
	rt.wg.Wait()
	stopRecording()
	recorder.Wait()
	// If the lease was lost, that is the cause of the other errors.
	return errors.Join(append([]error{failed, lease.release()}, append(rt.errs, rt.shared.Tracing.Close())...)...)
}

// Interrupt stops the Runtime by force: it cuts running reconciles short, and Run returns.
func (rt *Runtime) Interrupt() { rt.once.Do(func() { close(rt.force) }) }
