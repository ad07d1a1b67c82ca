// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/host/kubeapi"
	"github.com/wasmctl/wasmctl/host/share"
	"github.com/wasmctl/wasmctl/internal/failure"
	"github.com/wasmctl/wasmctl/internal/life"
	"github.com/wasmctl/wasmctl/internal/rollout"
	"github.com/wasmctl/wasmctl/runtime/applier"
	"github.com/wasmctl/wasmctl/runtime/controller"
	"github.com/wasmctl/wasmctl/runtime/health"
	"github.com/wasmctl/wasmctl/runtime/leader"
	"github.com/wasmctl/wasmctl/runtime/queue/trigger"
	"github.com/wasmctl/wasmctl/runtime/scheduler"
)

// Start builds the runtime's controller and registers its watches. Afterwards the caller
// must call Run; after an error, or if it does not call Run, it must call Release and
// Close.
func (c *Controller) Start() error {
	if c.native != nil {
		return c.startNative()
	}
	man := c.Module.Manifest()
	if err := rollout.CheckPredicates(c.Module, c.kind, c.rollout.Plan().Related...); err != nil {
		return failure.Module.Wrap(err)
	}
	var err error
	if c.split, err = c.kind.SplitBy(c.rollout.Plan(), c.opts.ShardBy); err != nil {
		return err
	}
	cfg := c.config()
	cfg.Finalizer, cfg.Hooks, cfg.Concurrency, cfg.Revision = man.Finalizer, c.Module, c.Module.Concurrency(), c.rollout.RevisionOf
	cfg.For = rollout.WatchOf(c.kind, c.Module)
	c.searchStranded(&cfg)
	if c.memo = c.newMemo(); c.memo != nil {
		cfg.Memo = c.memo
	}
	if c.Runtime, err = controller.New(cfg); err != nil {
		return failure.Module.Wrap(err)
	}
	if err := c.rollout.Start(c.Runtime); err != nil {
		c.Runtime.Release()
		return failure.Module.Wrap(err)
	}
	c.judges = &backend{Controller: c}
	waits := c.rollout.Waits // from now on, only preparations of modules wait
	c.waits.Store(&waits)
	return c.show()
}

// config returns the configuration of the runtime's controller that modules and native
// reconcilers have in common.
func (c *Controller) config() controller.Config {
	o := &c.opts
	cfg := controller.Config{
		Config: applier.Config{
			Controller: c.name, Module: c.guests, Cluster: cluster{c}, Deletes: c.kind.Watch.Deletes, Observer: c, Logger: c.log,
		},
		Watches: c.Watches, Cache: c.cache, Triggers: scoped(o.triggers(), !c.kind.Namespaced, c.log), Pool: c.shared.Pool,
		DrainTimeout: o.DrainTimeout.Or(0), Debounce: o.Debounce.Parse(),
		OnHidden: c.Telemetry.Hidden, OnRelated: c.Telemetry.Related,
	}
	if m := c.member(); m != nil {
		cfg.Slots = &controller.Slots{Count: m.Slots, Served: m.Served, Gone: c.moved != nil}
	}
	if n := c.counts; n != nil {
		cfg.OnStart, cfg.OnEnd = func(queued time.Duration, _ scheduler.Priority) { n.Started(queued) }, n.Ended
	}
	if gate := c.shared.Gate; gate != nil {
		cfg.Lapsed = func() bool { return gate.Err() != nil }
	}
	if c.shared.Gate != nil || c.rollout != nil && c.shared.Notes != nil {
		cfg.Active = c.active
	}
	return cfg
}

// leads reports whether this replica may change the cluster or the shared state.
func (c *Controller) leads() bool { return c.shared.Gate == nil || c.shared.Gate.Leads() }

func (c *Controller) proven(digest string) {
	if c.shared.OnProven != nil {
		c.shared.OnProven(c.name, digest)
	}
}

// takeOver waits until this replica leads and no other group of replicas runs the same
// objects, rolls back the modules that the previous leader has rolled back, and then lets
// runs begin.
func (c *Controller) takeOver(ctx context.Context, l *Life) {
	if gate := c.shared.Gate; gate != nil {
		select {
		case <-gate.Open():
		case <-ctx.Done():
			return
		}
		if !c.admitted(ctx) {
			return
		}
	}
	defer close(c.active)
	if c.rollout == nil || c.shared.Notes == nil {
		return
	}
	_, err := l.ask(ctx, &request{Event: life.Event{Kind: life.Lead}})
	if refused, ok := errors.AsType[*rollout.RolledBackError](err); ok {
		c.log.Error("nothing runs: there is no other module", "error", refused.Error(), "controller", c.name)
		c.Pause(true)
	}
}

// admitted claims the objects of the controller, unless a tenant owns them. If another group
// of replicas runs them, this replica stops.
func (c *Controller) admitted(ctx context.Context) bool {
	if c.shared.Registrar == nil || c.opts.Tenant != "" && !share.IsOwnTenant(c.opts.Tenant) || c.opts.dryRun() != kubeapi.DryRunNone {
		return true
	}
	w := &c.kind.Watch
	err := c.shared.Registrar.Admit(ctx, leader.Claim{
		Controller: c.name, Kind: c.kind.GVK().GroupKind().String(), Namespaces: w.Namespaces, Labels: w.LabelSelector, Fields: w.FieldSelector,
	})
	if errors.Is(err, leader.ErrRival) {
		c.shared.Gate.Close(err)
	}
	return err == nil
}

// scoped sets the scope of triggers that read lines of text to that of the kind.
func scoped(triggers []trigger.Source, clusterScoped bool, log *slog.Logger) []trigger.Source {
	out := make([]trigger.Source, len(triggers))
	for i, t := range triggers {
		if lines, ok := t.(trigger.Lines); ok {
			lines.Scope.ClusterScoped = clusterScoped
			lines.OnError = func(err error) {
				log.Warn("skipping a line of "+lines.Name+" that does not name an object", "error", err.Error())
			}
			t = lines
		}
		out[i] = t
	}
	return out
}

// Release gives up the watches of a controller that was started but is not run.
func (c *Controller) Release() { c.Runtime.Release() }

// show adds the controller to metrics and health checks, until Close.
func (c *Controller) show() error {
	if ready := c.shared.Ready; ready != nil {
		c.hide = append(c.hide, ready.Add(health.Synced(c.name, c.Runtime.Unsynced)))
		if c.Module != nil {
			c.hide = append(c.hide, ready.Add(health.Check{Name: "module-" + c.name, Do: c.Module.Healthy}))
		}
	}
	if c.counts == nil {
		return nil
	}
	if err := c.shared.Metrics.Add(c.name, c.counts, c.figures); err != nil {
		return err
	}
	c.hide = append(c.hide, func() { c.shared.Metrics.Remove(c.counts) })
	return nil
}

// cluster carries out the writes that runs ask for. It implements applier.Cluster.
type cluster struct{ *Controller }

// Declare implements applier.Cluster.
func (c cluster) Declare(ctx context.Context, of applier.Owner, d *abi.Declared) error {
	api := c.api
	if c.rollout != nil {
		api = c.rollout.APIOf(of.Revision) // under the policy of the revision that ran
	}
	return api.Declare(ctx, kubeapi.Owner{Kind: c.kind.Kind, Object: of.Object}, d)
}

// AddFinalizer implements applier.Cluster.
func (c cluster) AddFinalizer(ctx context.Context, object []byte, finalizer string) ([]byte, error) {
	return c.api.AddFinalizer(ctx, c.kind.Kind, object, finalizer)
}

// RemoveFinalizer implements applier.Cluster.
func (c cluster) RemoveFinalizer(ctx context.Context, object []byte, finalizer string) error {
	return c.api.RemoveFinalizer(ctx, c.kind.Kind, object, finalizer)
}

// Inspect implements applier.Cluster.
func (c cluster) Inspect(ctx context.Context, w abi.Write) ([]byte, error) {
	if w.Resource == "" {
		return nil, fmt.Errorf("write of %s: unknown resource", w.Key)
	}
	return c.api.Inspect(ctx, schema.GroupVersionResource{Group: w.Group, Version: w.Version, Resource: w.Resource}, w.Key)
}
