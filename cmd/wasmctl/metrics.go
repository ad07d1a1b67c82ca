package main

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/host"
	"github.com/wasmctl/wasmctl/host/kubeapi"
	"github.com/wasmctl/wasmctl/runtime/applier"
	"github.com/wasmctl/wasmctl/runtime/controller"
	"github.com/wasmctl/wasmctl/runtime/health"
	"github.com/wasmctl/wasmctl/runtime/metrics"
	"github.com/wasmctl/wasmctl/runtime/scheduler"
	"github.com/wasmctl/wasmctl/runtime/watcher"
)

// monitor is what a process shows of itself over HTTP. Without addresses it is
// empty, and nothing is counted.
type monitor struct {
	metrics     *metrics.Registry // nil without --metrics-address
	live, ready *health.Checks    // nil without --health-address

	// running is set once the process has all that is asked about; before that
	// only the addresses answer. stopping is set when it is to stop.
	running, stopping atomic.Bool
	lease             string // name of the Lease; written before running is set
}

// serveHTTP opens the addresses and serves there until stop is called. It comes
// first, so that probes are answered while modules are loaded. Where an address
// cannot be had, the error has exitListen.
func (p *process) serveHTTP(ctx context.Context) (stop func(), err error) {
	o, m := &p.opts.http, &p.monitor
	servers := &httpServers{log: p.log, list: map[string]*httpServer{}}
	defer func() {
		if err != nil {
			servers.close()
		}
	}()
	if isAddress(o.metrics) {
		mux, err := servers.at(ctx, "--metrics-address", o.metrics, "/metrics")
		if err != nil {
			return nil, err
		}
		m.metrics = metrics.New(metrics.Config{Version: version, Process: p.sharedFigures, Logger: p.log})
		p.onSwap = m.swapped
		mux.Handle("GET /metrics", m.metrics.Handler())
		if o.pprof {
			servePprof(mux)
			servers.list[o.metrics].paths = append(servers.list[o.metrics].paths, "/debug/pprof/")
		}
	}
	if isAddress(o.health) {
		mux, err := servers.at(ctx, "--health-address", o.health, "/livez /readyz")
		if err != nil {
			return nil, err
		}
		m.addChecks(p)
		m.live.Handle(mux)
		m.ready.Handle(mux)
	}
	release := context.AfterFunc(ctx, func() { m.stopping.Store(true) })
	stopServers := servers.run()
	return func() { release(); stopServers() }, nil
}

// begin says that the process has all that is asked about.
func (m *monitor) begin(p *process) {
	if p.elector != nil {
		m.lease = p.leaseName()
	}
	m.running.Store(true)
}

func (m *monitor) swapped(controller, result string) {
	if c := m.metrics.Controller(controller); c != nil {
		c.Swapped(result)
	}
}

// sharedFigures are those of what the controllers share.
func (p *process) sharedFigures() metrics.Process {
	f := metrics.Process{Controllers: map[string]int{}}
	for _, m := range p.members.all() {
		phase, _, _ := m.state()
		f.Controllers[phase]++
	}
	if !p.monitor.running.Load() {
		return f
	}
	now := time.Now()
	p.eachWatch(func(source watcher.Source, st watcher.State) {
		heard := st.LastProgress
		if heard.IsZero() {
			heard = st.Since
		}
		f.Watches = append(f.Watches, metrics.Watch{
			Resource: source.Name(), State: st.Phase.String(), Age: max(0, now.Sub(heard)), Failures: st.Failures, Stalled: st.Stalled(now),
			Objects: st.Objects, Bytes: st.Bytes,
		})
	})
	if p.elector != nil {
		f.Leader = &metrics.Leader{Name: p.monitor.lease, Leads: isOpen(p.elector.Gate().Open()) && p.elector.Gate().Err() == nil}
	}
	if p.budget != nil {
		st := p.budget.Stats()
		f.Budget = &metrics.Budget{Limit: st.Limit, Used: st.Used, Refused: st.Refused}
	}
	if p.pool != nil {
		st := p.pool.Stats()
		f.Workers = &metrics.Workers{Limit: st.Limit, Running: st.Running, Waiting: st.Waiting}
	}
	return f
}

// measure lets a session count, if anyone can ask. It is called before the
// module is loaded.
func (s *session) measure(cfg *host.Config) {
	if s.monitor.metrics == nil {
		return
	}
	c := metrics.NewController()
	s.counts = c
	cfg.OnCall = func(export string, took time.Duration, err error) { c.Called(export, took, kindOf(err)) }
	s.observers = append(s.observers, func(_ context.Context, e *kubeapi.Exchange) { c.HostCall(e.Op, e.Status, e.Took) })
}

// kindOf says how a call failed; empty where it did not, or was interrupted.
func kindOf(err error) abi.FailureKind {
	if err == nil {
		return ""
	}
	if call, ok := errors.AsType[*abi.CallError](err); ok {
		return call.Kind
	}
	return ""
}

// measureRuns lets the controller tell of its runs.
func (s *session) measureRuns(cfg *controller.Config) {
	if c := s.counts; c != nil {
		cfg.OnStart = func(queued time.Duration, _ scheduler.Priority) { c.Started(queued) }
		cfg.OnEnd = c.Ended
	}
}

// count counts what a run came to.
func (s *session) count(out *applier.Outcome) {
	if s.counts == nil || errors.Is(out.Err, applier.ErrInterrupted) {
		return
	}
	run := metrics.Run{
		ID: out.ID, Reason: out.Reasons.First.Type, Requeue: out.Action.Requeue, After: out.Action.After, Took: out.Duration, Kind: failureOf(out),
	}
	if run.Kind != "" {
		said, ok := errors.AsType[*abi.ResultError](out.Err)
		run.Permanent = ok && said.Class == abi.ErrorPermanent
	}
	s.counts.Ran(&run)
}

// show makes a controller, which has been built, a part of metrics and health,
// until hide.
func (s *session) show() error {
	s.addHealth()
	if s.counts == nil {
		return nil
	}
	if err := s.monitor.metrics.Add(s.name, s.counts, s.figures); err != nil {
		return err
	}
	s.unshow = append(s.unshow, func() { s.monitor.metrics.Remove(s.counts) })
	return nil
}

// hide undoes show. It comes before what is shown is closed.
func (s *session) hide() {
	for _, remove := range s.unshow {
		remove()
	}
	s.unshow = nil
}

// figures are those that the controller keeps itself.
func (s *session) figures() metrics.Stats {
	st := s.controller.Stats()
	f := metrics.Stats{
		Ready: st.Ready, ReadyLow: st.ReadyLow, Waiting: st.Waiting, Running: st.Running, Concurrency: s.module.Concurrency(),
		Started: st.Started, Received: st.Received, Requeued: st.Requeued,
		OldestReady: st.OldestReady, OldestRunning: st.OldestRunning, Unfinished: st.Unfinished,
		Synced: len(s.controller.Unsynced()) == 0, Paused: st.Paused,
		Failing: st.Reconciles.Failing, Quarantined: st.Reconciles.Quarantined, Hot: st.Reconciles.Loops.Hot, HotLoops: st.Reconciles.Loops.Episodes, Stale: st.Reconciles.Stale,
		Generation: s.module.Generation(), Digest: shortDigest(s.module.Digest()), States: map[string]int{},
		Memory: s.module.Memory(), Fuel: s.module.Fuel(), UnknownKeys: s.module.UnknownKeys() + s.api.UnknownKeys(),
		Limits: s.limitStats(), Recycled: s.module.Recycled(),
	}
	for _, w := range st.Watches {
		if w.Hook != nil {
			f.Unmapped += w.Hook.Failing
		}
	}
	for _, g := range s.module.Generations() {
		f.States[string(g.State)]++
		f.Instances += g.Instances
	}
	e := s.api.EventCounts()
	f.Events = map[string]uint64{"recorded": e.Recorded, "limited": e.Limited, "dropped": e.Dropped, "refused": e.Refused}
	return f
}
