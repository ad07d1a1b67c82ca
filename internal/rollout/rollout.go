// SPDX-License-Identifier: Apache-2.0

// Package rollout assigns the objects of a controller to revisions of its module, and
// carries out the decisions of package life about revisions: swap, canary, probation,
// rollback.
//
// A Rollout belongs to one goroutine, the controller's loop. Workers read an atomic view of
// it (Acquire, RevisionOf, APIOf) and count their runs in its record, which has a lock of
// its own.
package rollout

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"sync/atomic"
	"time"

	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/api/v1alpha1"
	"github.com/wasmctl/wasmctl/host"
	"github.com/wasmctl/wasmctl/host/kubeapi"
	"github.com/wasmctl/wasmctl/host/kubeapi/kinds"
	"github.com/wasmctl/wasmctl/internal/plan"
	"github.com/wasmctl/wasmctl/internal/replay"
	"github.com/wasmctl/wasmctl/internal/rollout/canary"
	"github.com/wasmctl/wasmctl/internal/rollout/ledger"
	"github.com/wasmctl/wasmctl/internal/rollout/probation"
	"github.com/wasmctl/wasmctl/runtime/applier"
	"github.com/wasmctl/wasmctl/runtime/controller"
	"github.com/wasmctl/wasmctl/runtime/leader"
	"github.com/wasmctl/wasmctl/runtime/reflector"
)

// Options set how modules are swapped in.
type Options struct {
	// Probation configures the probation of a module that was swapped in; if its Time is 0,
	// there is no probation.
	Probation probation.Config
	// Reconcile selects the objects that are reconciled after a swap.
	Reconcile v1alpha1.Reconcile
	// Canary selects the objects on which a module is tried first, unless a swap overrides
	// it.
	Canary Canary
	// AllowMoreRights allows a module to have capabilities that the first module did not
	// have.
	AllowMoreRights bool
}

// OptionsOf returns the options of a spec, which must be valid and have its defaults
// applied. If r is nil, there is no probation.
func OptionsOf(r *v1alpha1.Rollout) Options {
	if r == nil {
		return Options{}
	}
	return Options{
		Probation: probation.Config{Time: r.Probation.Or(0)}, Reconcile: r.Reconcile, Canary: CanaryOf(r.Canary),
		AllowMoreRights: r.AllowMoreRights != nil && *r.AllowMoreRights,
	}
}

// Config has the module to roll out and the parts that a Rollout works with. Notes and Gate
// may be nil.
type Config struct {
	Controller string
	Kind       plan.Watched // the reconciled kind
	Module     *host.Module
	Host       host.Config  // the configuration of the module
	Plan       *plan.Plan   // of the first revision; no later module may have more rights than this plan and its grant
	API        *kubeapi.API // enforces the policy of Plan
	Planner    *plan.Planner
	Access     *plan.Access
	Resolver   *kinds.Resolver
	Recorder   *replay.Recorder // records the requests of guests to an API
	// Notes stores the state that replicas and restarts share; if nil, no state is shared.
	// Only the leader, according to Gate, changes it.
	Notes  ledger.Notes
	Gate   *leader.Gate
	Logger *slog.Logger
}

// Rollout rolls out the modules of one controller. It implements applier.Module.
type Rollout struct {
	record // the results of the revisions; has a lock of its own

	cfg     Config
	log     *slog.Logger
	Options Options // apply to the next swaps

	plan       *plan.Plan // of the live revision
	watches    watches    // all watches except that of the reconciled kind
	controller *controller.Controller
	canary     *canaryRun // nil without a canary
	began      time.Time  // when the last change began
	lastGood   lastGood
	late       chan Late

	view atomic.Pointer[view]
	live atomic.Pointer[live]
}

// view is the state that workers read. A view never changes; it is replaced.
type view struct {
	canary *canaryRun              // nil without a canary
	apis   map[uint64]*kubeapi.API // by revision
}

// New returns a Rollout of the module that was loaded first. The caller must call Start
// before it uses the Rollout.
func New(cfg Config, o Options) *Rollout {
	r := &Rollout{cfg: cfg, log: cfg.Logger.With("controller", cfg.Controller), Options: o, plan: cfg.Plan, late: make(chan Late)}
	r.init(cfg.Module)
	r.lastGood.on = o.Reconcile == v1alpha1.ReconcileChanged
	r.publish(cfg.Plan, cfg.Module.Digest())
	r.view.Store(&view{apis: map[uint64]*kubeapi.API{cfg.Module.Revision(): cfg.API}})
	return r
}

// Start adds the watches of the first revision to a controller that does not run yet.
func (r *Rollout) Start(c *controller.Controller) error {
	r.controller = c
	r.watches.init(c)
	list, err := r.wants(r.plan, r.cfg.Module)
	if err != nil {
		return err
	}
	added, err := r.watches.add(list, nil)
	if err == nil {
		r.watches.adopt(list, added)
	}
	return err
}

// Close waits for the goroutines that wait for pending kinds; the caller has ended their
// context.
func (r *Rollout) Close() { r.watches.waiting.Wait() }

// End gives up the canary of a controller that has ended.
func (r *Rollout) End() {
	if r.canary != nil {
		r.canary.Discard()
		r.canary = nil
	}
}

// leads reports whether this replica may change the shared state.
func (r *Rollout) leads() bool { return r.cfg.Gate == nil || r.cfg.Gate.Leads() }

// Plan returns the plan of the live revision. Only the loop may call it.
func (r *Rollout) Plan() *plan.Plan { return r.plan }

// Acquire implements applier.Module. It returns a guest of the canary if the object of the
// run is assigned to the canary.
func (r *Rollout) Acquire(ctx context.Context) (abi.Guest, func(), error) {
	acquire := r.cfg.Module.Acquire
	if run := abi.RunFrom(ctx); run != nil {
		if c := r.candidateFor(run.Key, run.Object != nil); c != nil {
			acquire = c.Acquire
		}
	}
	g, release, err := acquire(ctx)
	if errors.Is(err, host.ErrClosed) { // the canary has ended in the meantime
		return r.cfg.Module.Acquire(ctx)
	}
	return g, release, err
}

// candidateFor returns the canary if it runs the object, and nil otherwise.
func (r *Rollout) candidateFor(key abi.Key, exists bool) *host.Candidate {
	k := r.view.Load().canary
	if k == nil {
		return nil
	}
	o := canary.Object{Key: key}
	if stored := r.controller.Stored(key); stored != nil && exists {
		o = objectOf(stored)
	}
	if !k.assignment.Canary(&o) {
		return nil
	}
	return k.Candidate
}

func objectOf(o *reflector.Object) canary.Object {
	return canary.Object{Key: o.Ref(), UID: o.UID(), Labels: o.Labels()}
}

// RevisionOf returns the revision that currently runs an object.
func (r *Rollout) RevisionOf(key abi.Key) uint64 {
	if c := r.candidateFor(key, true); c != nil {
		return c.Number()
	}
	return r.cfg.Module.Revision()
}

// APIOf returns the API that enforces the policy of a revision.
func (r *Rollout) APIOf(revision uint64) *kubeapi.API {
	if api := r.view.Load().apis[revision]; api != nil {
		return api
	}
	return r.cfg.API
}

// Ended counts a run that has ended.
func (r *Rollout) Ended(out *applier.Outcome) {
	if k := r.view.Load().canary; k != nil && errors.Is(out.Err, applier.ErrObjectNotFound) {
		k.assignment.Forget(out.Key)
	}
	r.end(out)
	r.lastGood.end(out)
}

// show publishes a view with this canary and the API of one more revision, without the APIs
// of revisions that have ended.
func (r *Rollout) show(k *canaryRun, revision uint64, api *kubeapi.API) {
	open := map[uint64]bool{revision: true}
	for _, rev := range r.cfg.Module.Revisions() {
		open[rev.Number] = true
	}
	next := &view{canary: k, apis: maps.Clone(r.view.Load().apis)}
	maps.DeleteFunc(next.apis, func(number uint64, _ *kubeapi.API) bool { return !open[number] })
	if api != nil {
		next.apis[revision] = api
	}
	r.view.Store(next)
}

// settings returns the number of the settings in force.
func (r *Rollout) settings() int64 {
	_, number := r.cfg.Module.Settings()
	return number
}
