// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/api/v1alpha1"
	"github.com/wasmctl/wasmctl/host"
	"github.com/wasmctl/wasmctl/host/isolate"
	"github.com/wasmctl/wasmctl/host/kubeapi"
	"github.com/wasmctl/wasmctl/host/kubeapi/kinds"
	"github.com/wasmctl/wasmctl/host/load"
	"github.com/wasmctl/wasmctl/host/operation"
	"github.com/wasmctl/wasmctl/internal/failure"
	"github.com/wasmctl/wasmctl/internal/plan"
	"github.com/wasmctl/wasmctl/internal/rollout"
	"github.com/wasmctl/wasmctl/runtime/controller"
)

// Load loads the module and checks that it can run. Resolving its kinds may wait for the
// API server and for CRDs. Before that, Load calls loaded: the caller may then release the
// bytes of the module, whose digest is digest.
func (c *Controller) Load(ctx context.Context, wasm []byte, digest string, loaded func()) error {
	if err := c.identify(); err != nil {
		return err
	}
	o := &c.opts
	rolls := rollout.OptionsOf(o.Rollout)
	cfg := host.Config{
		Name: o.Name, Fallback: o.Fallback, Controller: o.Module.Controller, Concurrency: o.concurrency(), Limits: o.limits(),
		Process: host.Process{Tenant: o.Tenant, Account: c.account, Budget: c.shared.Budget, CPUs: c.shared.CPUs, Watchdog: c.shared.Watchdog, Codes: c.shared.Codes},
		Code:    load.Options{CacheDir: c.shared.CacheDir, CacheKey: c.shared.CacheKey, OnForged: c.shared.OnForged, Compiler: c.shared.Compile},
		Logger:  c.log, Settings: o.Settings,
		Secrets: c.Telemetry.Secrets, Keep: host.Keep{Drain: o.DrainTimeout.Or(0), Code: max(host.DefaultKeepFor, rolls.Probation.Time+time.Minute)},
		Observer: operation.Observer{OnCall: c.Telemetry.OnCall(), OutsideRuns: c.Telemetry.OutsideRuns, Metric: c.Telemetry.Metric},
	}
	var err error
	if cfg.Isolation, err = c.isolation(); err != nil {
		return err
	}
	var first *plan.Plan
	cfg.API = func(m *abi.Manifest) (_ operation.API, err error) {
		loaded()
		c.name = cfg.NameFor(m)
		if first, err = c.connect(ctx, digest, m, cfg.LimitsFor(m).APIRate); err != nil {
			return nil, err
		}
		return c.recorder.API(c.api), nil
	}
	if c.Module, err = host.Load(ctx, wasm, cfg); err != nil {
		return ModuleError(err)
	}
	if err := c.checkSettings(); err != nil {
		return err
	}
	c.rollout = rollout.New(rollout.Config{
		Controller: c.name, Kind: c.kind, Module: c.Module, Host: cfg, Plan: first, API: c.api, Planner: c.planner, Access: c.access,
		Resolver: c.shared.Resolver, Recorder: &c.recorder, Notes: c.shared.Notes, Gate: c.shared.Gate, Logger: c.log,
	}, rolls)
	noted, err := c.rollout.Recall(ctx)
	if err != nil {
		return failure.Module.Wrap(err)
	}
	c.failed = rollout.Reasons(noted)
	return c.check(ctx, first)
}

// isolation returns the process of the module's class, or nil if the module runs in this
// process.
func (c *Controller) isolation() (isolate.Isolation, error) {
	class := c.opts.Isolate
	switch {
	case class == "":
		return nil, nil
	case c.shared.Isolation == nil:
		return nil, failure.Usage.Wrap(fmt.Errorf("isolate %s: this program has no processes for modules", class))
	case class == v1alpha1.IsolateAlone:
		class = ""
	}
	return c.shared.Isolation(class), nil
}

// identify determines the identity that requests are sent as.
func (c *Controller) identify() (err error) {
	if c.Identity, c.leave, err = c.shared.As(c.opts.As, c.opts.Tenant); err != nil {
		return err
	}
	c.planner = &plan.Planner{Options: c.opts.Options, Finder: &plan.Patient{Resolver: c.shared.Resolver, Waits: c.waiting}, Log: c.log}
	if c.opts.Audit != nil {
		c.planner.Grant = plan.Grant{Everything: true}
	}
	c.access = &plan.Access{Client: c.Client, Dynamic: c.Dynamic, User: c.opts.As}
	return nil
}

// connect resolves the kinds of a manifest under the options and builds the
// module's view of the cluster. rate is that of kubeapi.Config.
func (c *Controller) connect(ctx context.Context, digest string, m *abi.Manifest, rate int64) (*plan.Plan, error) {
	c.planner.Controller, c.planner.Log = c.name, c.log.With("controller", c.name)
	planner, err := c.planner.Of(digest)
	if err != nil {
		return nil, err
	}
	if c.kind, err = planner.Kind(ctx, m); err != nil {
		return nil, err
	}
	first, err := planner.Plan(ctx, c.kind, m)
	if err != nil {
		return nil, err
	}
	if err := c.access.LimitWebhooks(ctx, first); err != nil {
		c.log.Warn("not all webhooks are served", "reason", err.Error(), "controller", c.name)
	}
	c.Telemetry.For(c.name, c.kind.Kind)
	observers := []kubeapi.Observer{c.Telemetry.Requested}
	if c.opts.Audit != nil {
		observers = append(observers, planner.NewAudit(c.kind, first, c.Telemetry.Secrets, c.opts.Audit).Requested)
	}
	c.cache = controller.NewCache()
	cfg := kubeapi.Config{
		Client: c.Client, Resolver: c.shared.Resolver, Controller: c.name, Reconciled: c.kind.Kind, FormerManagers: c.opts.AdoptManagers, Policy: first.Policy, Logger: c.log, Cache: c.cache, Children: c.cache,
		Observer: kubeapi.Observers(observers...), Rate: rate, Secrets: c.Telemetry.Secrets,
		Account: c.account,
	}
	if c.shared.Gate != nil {
		cfg.Gate = c.shared.Gate
	}
	if c.api, err = kubeapi.New(cfg); err != nil {
		return nil, err
	}
	if c.opts.Audit != nil {
		c.api = c.api.WithAudit()
	}
	c.api = c.api.WithDryRun(c.opts.dryRun())
	return first, nil
}

// check asks the API server whether it allows what the plan requires, and logs the watches
// and the rights of the module.
func (c *Controller) check(ctx context.Context, p *plan.Plan) error {
	if err := c.access.Check(ctx, c.kind, append([]plan.Watched{c.kind}, p.Related...)...); err != nil {
		return err
	}
	if err := c.access.CheckSelectors(ctx, append([]plan.Watched{c.kind}, p.Related...)...); err != nil {
		return err
	}
	c.announce(p)
	if err := c.access.Refused(ctx, c.kind, p); err != nil {
		c.log.Warn("the API server allows less than the module is granted", "reason", err.Error(), "controller", c.name)
	}
	return nil
}

// waiting logs the reason why loading or a swap waits.
func (c *Controller) waiting(reason error) {
	msg, next, status := "waiting for the API server", "start it, or configure another cluster; wasmctl keeps retrying", reason.Error()
	if unknown, ok := errors.AsType[*kinds.UnknownError](reason); ok {
		msg, next = "waiting for CRD "+unknown.Name+"; "+c.install, "wasmctl keeps retrying"
		status = "CRD " + unknown.Name + " is missing; " + c.install + " (" + status + ")"
	}
	if waits := *c.waits.Load(); waits != nil {
		waits(status)
	}
	c.log.Warn(msg, "reason", reason.Error(), "next", next, "controller", c.name)
}

// ModuleError assigns an exit class to an error of a module.
func ModuleError(err error) error {
	if errors.Is(err, load.ErrInvalidModule) {
		return failure.Module.Wrap(err)
	}
	if errors.Is(err, operation.ErrRefused) {
		return failure.Usage.Wrap(fmt.Errorf("%w; correct the settings (config)", err))
	}
	return err
}
