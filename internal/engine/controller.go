// SPDX-License-Identifier: Apache-2.0

// Package engine runs one module as a controller: it connects host and runtime. Its Life is
// the one loop of a controller, which carries out the decisions of package life.
package engine

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/host"
	"github.com/wasmctl/wasmctl/host/kubeapi"
	"github.com/wasmctl/wasmctl/host/share"
	"github.com/wasmctl/wasmctl/internal/logging"
	"github.com/wasmctl/wasmctl/internal/memo"
	"github.com/wasmctl/wasmctl/internal/plan"
	"github.com/wasmctl/wasmctl/internal/replay"
	"github.com/wasmctl/wasmctl/internal/rollout"
	"github.com/wasmctl/wasmctl/internal/telemetry"
	"github.com/wasmctl/wasmctl/runtime/applier"
	"github.com/wasmctl/wasmctl/runtime/controller"
	"github.com/wasmctl/wasmctl/runtime/metrics"
)

// Controller is one module as a controller, from Load to Close. Its Life calls Load, Start,
// Run and Close, and changes it while it runs. Fields that Load and Start set do not change
// afterwards, unless their comment assigns them to the loop.
type Controller struct {
	shared *Shared
	opts   Options
	log    *slog.Logger
	name   string
	notice
	connection
	code
	observation
	running
	hide []func() // undo show
}

// notice tells people what loading waits for.
type notice struct {
	install string // the command that installs the CRD of a missing kind
	waits   atomic.Pointer[func(why string)]
}

// connection is the controller's view of the cluster. Load sets it.
type connection struct {
	*Identity

	leave   func() // gives up the Identity; nil before Load and after Close
	planner *plan.Planner
	access  *plan.Access
	kind    plan.Watched // the reconciled kind, the same for all revisions
	cache   *controller.Cache
	api     *kubeapi.API   // under the policy of the first revision
	account *share.Account // of the host's own memory for it
}

// code is the module, or the native reconciler. Load sets it.
type code struct {
	Module *host.Module                    // nil for a native reconciler
	native *plan.Plan                      // the plan of a native reconciler; nil for a module
	moved  func(has func(uid string) bool) // see Native.Moved
	guests applier.Module                  // the source of the guests of runs
	failed map[string]string               // why modules were rolled back before, by digest
}

// observation observes runs. Each of its parts guards its own state.
type observation struct {
	Telemetry *telemetry.Recorder // the last runs, and the values of Secrets
	counts    *metrics.Controller // nil if metrics are off
	recorder  replay.Recorder
	memo      *memo.Memo     // nil if no run may be skipped
	search    *strandedState // for stranded objects; set by Start; nil if there can be none
}

// running is the state of a controller that runs.
type running struct {
	Runtime   *controller.Controller // set by Start
	split     plan.Split             // how the objects are split between replicas; set by Start
	rollout   *rollout.Rollout       // belongs to the loop; nil for a native reconciler
	judges    *backend               // set by Start; nil for a native reconciler
	active    chan struct{}          // closed when runs may begin, if Shared.Notes is set
	followed  atomic.Uint64          // see Followed
	overrides map[string]*string     // on top of the settings of the options; nil unsets; belongs to the loop
}

// New returns a Controller. It calls waits with the reason whenever loading waits.
func New(shared *Shared, opts Options, log *slog.Logger, waits func(why string)) *Controller {
	c := &Controller{shared: shared, opts: opts, log: log}
	c.account, c.install, c.active = share.NewAccount(shared.Budget, opts.Tenant, share.Operations), "kubectl apply -f crd.yaml", make(chan struct{})
	c.waits.Store(&waits)
	if shared.Metrics != nil {
		c.counts = metrics.NewController()
	}
	c.Telemetry = telemetry.NewRecorder(telemetry.Config{History: opts.HistoryBytes(), Tracing: shared.Tracing, Metrics: c.counts, OnWrite: opts.OnWrite, Secrets: opts.Secrets})
	if f := logging.FeedOf(log); f != nil {
		f.Secrets.Store(c.Telemetry.Secrets)
		f.Charge(opts.Tenant)
	}
	c.guests = acquirer{c}
	return c
}

// acquirer supplies the guests of runs, which a shadow may record.
type acquirer struct{ *Controller }

// Acquire implements applier.Module.
func (a acquirer) Acquire(ctx context.Context) (abi.Guest, func(), error) {
	g, release, err := a.rollout.Acquire(ctx)
	if err != nil {
		return nil, nil, err
	}
	g, release = a.recorder.Guest(g, release, a.Module.Revision())
	return g, release, nil
}

// Run reconciles until ctx ends, and returns when everything that it started has
// ended. Closing force interrupts running reconciles. It is called once, after
// Start.
func (c *Controller) Run(ctx context.Context, force <-chan struct{}) error {
	ctx, stop := context.WithCancel(ctx)
	services, end := context.WithCancel(context.WithoutCancel(ctx)) // the recorder of events ends last
	var wg sync.WaitGroup
	defer wg.Wait()
	defer end()
	defer stop()
	if c.Module != nil {
		defer context.AfterFunc(ctx, c.Module.Drain)() // guests see this through cancelled()
		wg.Go(func() {
			<-ctx.Done()
			c.rollout.Close()
		})
	}
	wg.Go(func() { _ = c.api.Run(services) }) // it can only fail if it runs already
	if c.memo != nil {
		wg.Go(func() { c.memo.Run(services) })
	}
	if c.member() != nil {
		wg.Go(func() { c.share(ctx) })
	}
	if c.search != nil {
		wg.Go(func() { c.findStranded(ctx, c.search) })
	}
	err := c.Runtime.Run(ctx, force)
	c.logStopped()
	return err
}

// SharesFinalizer returns the finalizer that both controllers set on the same objects, or
// an empty string if there is none. It compares only kinds and namespaces. Either
// controller would remove a shared finalizer before the other has cleaned up.
func (c *Controller) SharesFinalizer(o *Controller) string {
	f := c.finalizer()
	if f == "" || f != o.finalizer() || c.kind.Group != o.kind.Group || c.kind.Kind.Kind != o.kind.Kind.Kind {
		return ""
	}
	mine, theirs := c.kind.Watch.Namespaces, o.kind.Watch.Namespaces
	if len(mine) > 0 && len(theirs) > 0 && !slices.ContainsFunc(mine, func(ns string) bool { return slices.Contains(theirs, ns) }) {
		return ""
	}
	return f
}

// Namespaces returns the namespaces of the reconciled objects; if there are none, all.
func (c *Controller) Namespaces() []string { return c.kind.Watch.Namespaces }

func (c *Controller) finalizer() string {
	if c.native != nil {
		return c.native.Manifest.Finalizer
	}
	return c.Module.Manifest().Finalizer
}

// Close releases what Load acquired. It is called after Run has returned, or instead of
// Run.
func (c *Controller) Close() error {
	for _, undo := range c.hide {
		undo()
	}
	c.hide = nil
	if c.leave != nil {
		defer c.leave()
		c.leave = nil
	}
	if c.Module == nil {
		return nil
	}
	if c.rollout != nil {
		c.rollout.End()
	}
	return c.Module.Close(context.Background())
}

// Started implements applier.Observer.
func (c *Controller) Started(r *applier.Started) {
	if c.rollout != nil {
		c.rollout.Started(r.Revision, r.Request.Key)
	}
	c.Telemetry.Started(r.Revision, r.Request)
}

// Returned implements applier.Observer.
func (c *Controller) Returned(id string) { c.Telemetry.Returned(id) }

// Ended implements applier.Observer.
func (c *Controller) Ended(out *applier.Outcome) {
	if errors.Is(out.Err, applier.ErrObjectNotFound) {
		c.api.Forget(out.Key)
	}
	if c.rollout != nil {
		c.rollout.Ended(out)
	}
	c.Telemetry.Ended(out)
	if c.opts.OnResult != nil {
		c.opts.OnResult(out)
	}
	c.logOutcome(out)
}
