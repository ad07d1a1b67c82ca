// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"cmp"
	"context"
	"fmt"
	"runtime/debug"

	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/host/load"
	"github.com/wasmctl/wasmctl/internal/failure"
	"github.com/wasmctl/wasmctl/internal/plan"
	"github.com/wasmctl/wasmctl/internal/rollout"
	"github.com/wasmctl/wasmctl/runtime/controller"
)

// Native is a reconciler in Go that takes the place of a module.
type Native struct {
	// Manifest declares the watches.
	Manifest *abi.Manifest
	// Install is the command that installs the CRD of its kind; if empty, the default
	// command.
	Install string
	// Unpooled means that its runs do not count as workers of the process.
	Unpooled bool
	// Reconcile and Finalize are the functions of the reconciler. They may read the cache.
	Reconcile, Finalize func(context.Context, *abi.Request, *controller.Cache) (abi.Action, error)
	// Map and Filter, if not nil, are the mapper and the predicate "func" of watches.
	Map    func(context.Context, *abi.Event) ([]abi.Key, error)
	Filter func(context.Context, *abi.Event) (bool, error)
	// Moved, if not nil, is called after the last run of objects that move to another
	// replica. It must end the work that the reconciler does for them outside of its runs.
	Moved func(has func(uid string) bool)
}

// LoadNative is the counterpart of Load for a reconciler in Go.
func (c *Controller) LoadNative(ctx context.Context, n *Native) error {
	if n.Manifest.Name == "" || n.Reconcile == nil || n.Manifest.Finalizer != "" && n.Finalize == nil {
		return failure.Usage.Wrap(fmt.Errorf("native reconciler %q: want a name and Reconcile, and Finalize with a finalizer", n.Manifest.Name))
	}
	if err := c.identify(); err != nil {
		return err
	}
	c.name, c.install = n.Manifest.Name, cmp.Or(n.Install, c.install)
	c.planner.Grant = plan.Grant{Everything: true} // the program trusts its own reconciler
	p, err := c.connect(ctx, "", n.Manifest, 0)
	if err != nil {
		return err
	}
	c.native, c.guests, c.moved = p, nativeGuest{c, n}, n.Moved
	return c.check(ctx, p)
}

// nativeCode makes the whole object available to a native reconciler, as for a module that
// imports cache_get. It implements rollout.Code.
type nativeCode struct{ filters bool }

// Info implements rollout.Code.
func (nativeCode) Info() *load.Info {
	return &load.Info{Imports: []load.Import{{Module: abi.ImportModule, Name: string(abi.OpCacheGet)}}}
}

// HasHook implements rollout.Code.
func (n nativeCode) HasHook(name string) bool { return name == abi.ExportFilter && n.filters }

func (c *Controller) startNative() error {
	var err error
	if c.split, err = c.kind.SplitBy(c.native, c.opts.ShardBy); err != nil {
		return err
	}
	if c.moved != nil {
		c.split = plan.Split{By: plan.ByUID, Why: "the reconciler knows by uid what it has begun"}
	}
	cfg := c.config()
	c.searchStranded(&cfg)
	cfg.Finalizer, cfg.Concurrency = c.native.Manifest.Finalizer, c.opts.concurrency()
	guest := c.guests.(nativeGuest)
	if guest.Unpooled {
		cfg.Pool = nil
	}
	code := nativeCode{guest.Filter != nil}
	if err := rollout.CheckPredicates(code, c.kind, c.native.Related...); err != nil {
		return failure.Usage.Wrap(err)
	}
	cfg.For = rollout.WatchOf(c.kind, code)
	cfg.Hooks = nativeHooks(guest)
	for _, k := range c.native.Related {
		w, err := rollout.RelatedWatch(c.kind, k, code, c.api, c.log)
		if err == nil && w.Map == nil && guest.Map == nil {
			err = fmt.Errorf("watch[%s]: map: func needs Map of the reconciler", k.Name())
		}
		if err != nil {
			return failure.Usage.Wrap(err)
		}
		cfg.Related = append(cfg.Related, w)
	}
	if c.Runtime, err = controller.New(cfg); err != nil {
		return failure.Usage.Wrap(err)
	}
	return c.show()
}

// nativeGuest calls a native reconciler. It implements applier.Module and abi.Guest.
type nativeGuest struct {
	controller *Controller
	*Native
}

// Acquire implements applier.Module.
func (g nativeGuest) Acquire(context.Context) (abi.Guest, func(), error) { return g, func() {}, nil }

// Revision implements abi.Guest.
func (g nativeGuest) Revision() uint64 { return 1 }

// Fuel implements abi.Guest.
func (g nativeGuest) Fuel() int64 { return 0 }

// Reconcile implements abi.Guest.
func (g nativeGuest) Reconcile(ctx context.Context, req *abi.Request) (abi.Result, error) {
	return g.call(ctx, req, g.Native.Reconcile)
}

// Finalize implements abi.Guest.
func (g nativeGuest) Finalize(ctx context.Context, req *abi.Request) (abi.Result, error) {
	return g.call(ctx, req, g.Native.Finalize)
}

// ErrorPolicy implements abi.Guest.
func (g nativeGuest) ErrorPolicy(context.Context, *abi.Failure) (abi.Result, error) {
	return abi.Result{}, abi.ErrNoErrorPolicy
}

// nativeHooks calls the mapper and the predicate of a native reconciler. It implements
// queue.Module.
type nativeHooks nativeGuest

// Map implements queue.Module.
func (g nativeHooks) Map(ctx context.Context, ev *abi.Event) (keys []abi.Key, err error) {
	defer recovered(&err)
	return g.Native.Map(ctx, ev)
}

// Filter implements queue.Module.
func (g nativeHooks) Filter(ctx context.Context, ev *abi.Event) (passes bool, err error) {
	defer recovered(&err)
	return g.Native.Filter(ctx, ev)
}

// recovered turns a panic of the reconciler into an error.
func recovered(err *error) {
	if r := recover(); r != nil {
		*err = &abi.CallError{Kind: abi.FailureTrap, Func: "native", Err: fmt.Errorf("panic: %v\n%s", r, debug.Stack())}
	}
}

// call calls a function of the reconciler. A panic becomes an error of the object, as a
// trap does.
func (g nativeGuest) call(ctx context.Context, req *abi.Request, f func(context.Context, *abi.Request, *controller.Cache) (abi.Action, error)) (res abi.Result, err error) {
	if d := g.controller.Timeout(); d > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, d)
		defer cancel()
	}
	defer recovered(&err)
	res.Action, err = f(ctx, req, g.controller.cache)
	return res, err
}
