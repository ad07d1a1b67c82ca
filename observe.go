// SPDX-License-Identifier: Apache-2.0

package wasmctl

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/wasmctl/wasmctl/host/load"
	"github.com/wasmctl/wasmctl/internal/adminserver"
	"github.com/wasmctl/wasmctl/internal/humanize"
	"github.com/wasmctl/wasmctl/internal/logging"
	"github.com/wasmctl/wasmctl/internal/rollout"
	"github.com/wasmctl/wasmctl/internal/text"
	"github.com/wasmctl/wasmctl/runtime/admin"
	"github.com/wasmctl/wasmctl/runtime/health"
	"github.com/wasmctl/wasmctl/runtime/history"
	"github.com/wasmctl/wasmctl/runtime/metrics"
	"github.com/wasmctl/wasmctl/runtime/shard"
	"github.com/wasmctl/wasmctl/runtime/watcher"
)

// Metrics returns a handler for the Prometheus metrics of the Runtime, which have
// controller-runtime's names and names of its own.
func (rt *Runtime) Metrics() http.Handler { return rt.shared.Metrics.Handler() }

// HandleHealth serves /livez and /readyz. The first fails if only a restart of the process
// helps, and the second if the Runtime does not do its work.
func (rt *Runtime) HandleHealth(mux *http.ServeMux) {
	rt.probes.live.Handle(mux)
	rt.probes.ready.Handle(mux)
}

// Admin returns the service behind wasmctl's commands. A program serves it with admin.New.
func (rt *Runtime) Admin() admin.Service {
	s := adminserver.Service{
		Version: rt.opts.Version, Hardening: rt.opts.Hardening, InsecureRegistries: rt.opts.InsecureRegistries, Started: rt.startedAt, Gate: rt.shared.Gate,
		Tenants: rt.tenants,
		Controllers: func() []adminserver.Controller {
			list := rt.Controllers()
			out := make([]adminserver.Controller, len(list))
			for i, c := range list {
				out[i] = c.snapshot()
			}
			return out
		},
	}
	if rt.member != nil {
		s.Group = rt.member
	}
	if rt.elector != nil {
		s.Leader = rt.elector.Leader
	}
	return s
}

// tenants returns the accounts of the tenants, ordered by name.
func (rt *Runtime) tenants() (list []admin.Tenant) {
	computing := map[string]history.Duration{}
	for _, c := range rt.Controllers() {
		if e := c.life.View().Engine; e != nil {
			tenant, took := e.Computed()
			computing[tenant] += history.Duration(took)
		}
	}
	for _, u := range rt.shared.Budget.Usage() {
		log := logging.UsageOf(rt.log, u.Tenant)
		list = append(list, admin.Tenant{
			Name: u.Tenant, Memory: u.Memory, Kinds: u.Kinds, Pinned: u.Pinned, Share: u.Share, Refused: u.Refused, Reclaimed: u.Reclaimed,
			Computing: computing[u.Tenant], LogBytes: log.Bytes, LogLinesDropped: log.Dropped,
		})
	}
	return list
}

// probes has the health checks.
type probes struct{ live, ready *health.Checks }

func (p *probes) init(rt *Runtime) {
	p.live, p.ready = health.New("livez"), health.New("readyz")
	p.live.Add(health.Watches(func() []health.Watch { return rt.watchHealth(time.Now()) }))
	p.live.Add(health.Check{Name: "calls", Do: rt.shared.Watchdog.Check})
	p.ready.Add(health.Check{Name: "started", Do: func() error {
		if !rt.running.Load() {
			return errors.New("loading modules and looking up kinds")
		}
		return nil
	}})
	p.ready.Add(health.Check{Name: "controllers", Do: rt.allRun})
	if rt.hooks != nil {
		p.ready.Add(health.Check{Name: "webhooks", Do: rt.hooks.ready})
	}
	p.ready.Add(health.Check{Name: "leader", Do: func() error {
		if gate := rt.shared.Gate; gate != nil { // a standby is ready to lead
			return gate.Err()
		}
		return nil
	}})
	p.ready.Add(health.Check{Name: "shutdown", Do: func() error {
		if rt.stopping() {
			return errors.New("the process is stopping")
		}
		return nil
	}})
}

// stopping reports whether Run's ctx has ended.
func (rt *Runtime) stopping() bool {
	rt.mu.Lock()
	defer rt.mu.Unlock()
	return rt.stop != nil && rt.stop.Err() != nil
}

// allRun returns an error that lists the controllers that do not run, and why.
func (rt *Runtime) allRun() error {
	var errs []error
	for _, c := range rt.Controllers() {
		if v := c.life.View(); v.Phase != admin.PhaseRunning {
			errs = append(errs, fmt.Errorf("%s is %s: %s", c.Name(), v.Phase, v.Message))
		}
	}
	return errors.Join(errs...)
}

func (rt *Runtime) watchHealth(now time.Time) []health.Watch {
	if !rt.running.Load() {
		return nil
	}
	var list []health.Watch
	rt.users.EachWatch(func(source watcher.Source, st watcher.State) {
		list = append(list, health.Watch{Name: source.String(), Stalled: st.Stalled(now), Progress: st.LastProgress})
	})
	return list
}

func (rt *Runtime) swapped(controller, result string) {
	if c := rt.shared.Metrics.Controller(controller); c != nil {
		c.Swapped(result)
	}
}

// figures returns the metrics of the process as a whole.
func (rt *Runtime) figures() metrics.Process {
	f := metrics.Process{Controllers: map[string]int{}, ForgedCode: rt.forged.Load(), Events: rt.events.Counts().ByResult()}
	for _, c := range rt.Controllers() {
		f.Controllers[c.life.View().Phase]++
	}
	if !rt.running.Load() {
		return f
	}
	now := time.Now()
	rt.users.EachWatch(func(source watcher.Source, st watcher.State) {
		heard := st.LastProgress
		if heard.IsZero() {
			heard = st.Since
		}
		f.Watches = append(f.Watches, metrics.Watch{
			Resource: source.Name(), State: st.Phase.String(), Age: max(0, now.Sub(heard)), Failures: st.Failures, Stalled: st.Stalled(now),
			Objects: st.Objects, Bytes: st.Bytes, Compressed: st.Compressed, Saved: st.Saved,
		})
	})
	if rt.member != nil {
		f.Shards = shardFigures(rt.member.View(), now)
		for _, c := range rt.Controllers() {
			if e := c.life.View().Engine; e != nil {
				for slot, n := range e.Runtime.PerSlot() {
					f.Shards.Objects[slot] += n
				}
			}
		}
	} else if gate := rt.shared.Gate; gate != nil {
		f.Leader = &metrics.Leader{Name: rt.opts.Election.Name, Leads: gate.Leads()}
	}
	if rt.shared.Budget != nil {
		st := rt.shared.Budget.Stats()
		f.Budget = &metrics.Budget{Limit: st.Limit, Used: st.Used, Refused: st.Refused, Tenants: map[string]int64{}}
		for _, t := range rt.tenants() {
			f.Budget.Tenants[t.Name] = t.Memory
		}
	}
	if rt.shared.Pool != nil {
		st := rt.shared.Pool.Stats()
		f.Workers = &metrics.Workers{Limit: st.Limit, Running: st.Running, Waiting: st.Waiting}
	}
	return f
}

func shardFigures(v *shard.View, now time.Time) *metrics.Shards {
	f := &metrics.Shards{
		States: map[string]int{}, Moves: v.Moves, Ended: v.Ended, PeerAge: v.PeerAge(now), Load: v.Own.Cost().Seconds(), Objects: map[int]int{},
	}
	cover := v.Coverage(now)
	for _, state := range shard.SlotStates {
		f.States[string(state)] = cover.Count(state)
	}
	if v.Record != nil {
		f.Epoch = v.Record.Epoch
	}
	return f
}

// summary returns the summary of this replica's controllers that it shares with the others.
func (rt *Runtime) summary() (sum shard.Summary) {
	sum.Version = rt.opts.Version
	for _, c := range rt.Controllers() {
		e := c.life.View().Engine
		if e == nil {
			continue
		}
		st := e.Runtime.Stats()
		sum.Controllers++
		sum.Due += st.Ready
		sum.Running += st.Running
		sum.Runs += st.Started
		sum.Failing += st.Reconciles.Failing
		if e.Shared() && len(sum.Modules) < shard.MaxModules {
			if sum.Modules == nil {
				sum.Modules = map[string]shard.Module{}
			}
			of := shard.Module{Paused: st.Paused, Followed: e.Followed()}
			if m := e.Module; m != nil {
				of.Digest, of.Revision = strings.TrimPrefix(humanize.Digest(m.Digest()), "sha256:"), m.Revision()
			}
			sum.Modules[e.Name()] = of
		}
		for i := range st.Watches {
			if w := &st.Watches[i]; w.Source.Resource == e.Kind().GVR() {
				sum.Objects += w.State.Objects
			}
		}
	}
	return sum
}

func isOpen(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// adminModules implements adminserver.Modules.
type adminModules struct{ c *Controller }

// Swap implements adminserver.Modules.
func (m adminModules) Swap(ctx context.Context, from string, wasm, proof []byte, o rollout.SwapOptions) (uint64, bool, error) {
	sent := provenBytes{bytesModule{wasm}, proof}
	if from == "" {
		return m.c.swap(ctx, sent, o)
	}
	return m.c.swap(ctx, namedBytes{sent, text.Line(text.Truncate(from, maxWhy))}, o)
}

// Know implements adminserver.Modules.
func (m adminModules) Know(wasm, proof []byte) (forget func()) {
	return m.c.known(provenBytes{bytesModule{wasm}, proof}, load.DigestOf(wasm))
}

// Signers implements adminserver.Modules.
func (m adminModules) Signers(digest string) []string { return m.c.signers(digest) }

// History implements adminserver.Modules.
func (m adminModules) History() []admin.Change { return m.c.changes.all() }

// snapshot returns the controller in the form of package adminserver.
func (c *Controller) snapshot() adminserver.Controller {
	v := c.life.View()
	c.mu.Lock()
	defer c.mu.Unlock()
	out := adminserver.Controller{
		Name: c.name, Phase: v.Phase, Message: v.Message, Since: v.Since, Engine: v.Engine, Life: c.life, Source: c.name,
		Logger: c.log, Ended: c.Ended(), Modules: adminModules{c}, Hooks: c.rt.hooks.of(c.name), Restarting: v.Restarting,
	}
	if o := c.options; o != nil {
		out.Hooks.Prefix = o.WebhookPrefix
		out.For, out.Canary = o.For.String(), rollout.OptionsOf(o.Rollout).Canary
	}
	if v.Engine != nil && v.Engine.Module != nil {
		if m, ok := c.modules.get(v.Engine.Module.Digest()); ok { // the origin of the live module
			out.Source = m.String()
		}
	}
	return out
}

// Status returns the phase of the controller and, once it runs, its figures, as wasmctl
// status shows them.
func (c *Controller) Status() admin.Controller { return adminserver.Status(c.snapshot()) }
