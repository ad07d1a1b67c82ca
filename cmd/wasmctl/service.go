package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/host"
	"github.com/wasmctl/wasmctl/runtime/admin"
	"github.com/wasmctl/wasmctl/runtime/controller"
	"github.com/wasmctl/wasmctl/runtime/queue/trigger"
)

// Status implements admin.Service.
func (p *process) Status() admin.Status {
	st := admin.Status{Version: version, PID: os.Getpid(), Started: p.started}
	if p.elector != nil {
		leads := isOpen(p.elector.Gate().Open()) && p.elector.Gate().Err() == nil
		st.Leader = &leads
	}
	for _, m := range p.members.all() {
		st.Controllers = append(st.Controllers, m.status())
	}
	return st
}

func isOpen(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// status is how far a member is, and, once it runs, all of its session's.
func (m *member) status() admin.Controller {
	phase, message, since := m.state()
	c := admin.Controller{Name: m.name(), Module: m.opts.module}
	if s := m.live(); s != nil {
		c = s.status()
	}
	c.Phase, c.Message, c.Since = phase, message, since
	c.State = controllerState(&c, time.Now())
	return c
}

func (s *session) status() admin.Controller {
	stats := s.controller.Stats()
	c := admin.Controller{
		Name: s.name, Module: s.file.path(), Digest: s.module.Digest(), Kind: s.kind.Name(), Paused: stats.Paused,
		Ready: stats.Ready, Waiting: stats.Waiting, Running: stats.Running, Runs: stats.Started, Failures: map[string]uint64{},
	}
	c.Fuel, c.HotLoops = s.module.Fuel(), stats.Reconciles.Loops.Episodes
	c.Generations = s.trials.generations()
	s.statusOfRuns(&c, &stats)
	for kind, n := range stats.Failures {
		c.Failures[string(kind)] = n
	}
	s.addLimits(&c)
	c.MissingRights = s.missingRights()
	for _, w := range stats.Watches {
		c.Watches = append(c.Watches, watchStatus(&w))
	}
	return c
}

func watchStatus(w *controller.WatchState) admin.Watch {
	out := admin.Watch{
		Source: w.Source.String(), Phase: w.State.Phase.String(), Since: w.State.Since, Objects: w.State.Objects, Message: w.State.Message,
	}
	if !w.State.LastProgress.IsZero() {
		out.LastProgress = &w.State.LastProgress
	}
	if w.Hook != nil && w.Hook.Failing > 0 {
		out.Unmapped = w.Hook.Failing
		if out.Message == "" {
			out.Message = w.Hook.LastError.Error()
		}
	}
	return out
}

// Trigger implements admin.Service.
func (p *process) Trigger(ctx context.Context, name string, objects []abi.Key) (int, error) {
	s, err := p.session(name)
	if err != nil {
		return 0, err
	}
	t := trigger.Trigger{Refs: objects, All: len(objects) == 0, Low: len(objects) == 0}
	for i := range t.Refs {
		if err := s.checkKey(t.Refs[i]); err != nil {
			return 0, err
		}
	}
	return s.controller.Trigger(ctx, t), nil
}

// Pause implements admin.Service.
func (p *process) Pause(name string, paused bool) error {
	s, err := p.session(name)
	if err != nil {
		return err
	}
	if paused {
		s.controller.Pause()
		s.log.Info("paused: no reconcile starts until wasmctl resume", "controller", name)
		return nil
	}
	s.controller.Resume()
	s.log.Info("resumed", "controller", name)
	return nil
}

// checkKey refuses a key that no object of the kind can have.
func (s *session) checkKey(key abi.Key) error {
	switch {
	case s.kind.Namespaced && key.Namespace == "":
		return fmt.Errorf("object %q: %s is namespaced: want namespace/name", key, s.kind.Name())
	case !s.kind.Namespaced && key.Namespace != "":
		return fmt.Errorf("object %q: %s is cluster-scoped: want its name alone", key, s.kind.Name())
	}
	return nil
}

// Swap implements admin.Service.
func (p *process) Swap(ctx context.Context, name string, wasm []byte, how admin.SwapHow) (admin.Swapped, error) {
	s, err := p.session(name)
	if err != nil {
		return admin.Swapped{}, err
	}
	tried, err := canaryOf(how.Canary, s.opts.tried)
	if err != nil {
		return admin.Swapped{}, err
	}
	res, err := s.swapped(ctx, true, func(ctx context.Context) (uint64, error) {
		return s.swap(ctx, wasm, swapHow{force: how.Force, canary: tried, why: "wasmctl swap"})
	})
	if errors.Is(err, host.ErrSameModule) {
		res.Unchanged = true
		if res.Generation == 0 {
			res.Generation = s.module.Generation()
		}
		return res, nil
	}
	return res, admin.Refuse(err)
}

// swapped has serve do something that changes the generations, and says what
// came of it. What replaces a module is not kept waiting by another that is being
// prepared.
func (s *session) swapped(ctx context.Context, replaces bool, do func(context.Context) (uint64, error)) (res admin.Swapped, err error) {
	how := s.do
	if replaces {
		how = s.replace
	}
	err = how(ctx, func(ctx context.Context) (err error) {
		res.Generation, err = do(ctx)
		res.Canary = s.canary != nil && s.canary.candidate.Number() == res.Generation
		return err
	})
	return res, err
}

// Rollback implements admin.Service.
func (p *process) Rollback(ctx context.Context, name string, to uint64) (admin.Swapped, error) {
	return p.swapped(ctx, name, true, func(ctx context.Context, s *session) (uint64, error) {
		return s.rollback(ctx, to, swapRolledBack, "wasmctl rollback")
	})
}

// Promote implements admin.Service.
func (p *process) Promote(ctx context.Context, name string) (admin.Swapped, error) {
	return p.swapped(ctx, name, false, func(ctx context.Context, s *session) (uint64, error) {
		return s.promoteCanary(ctx, "wasmctl promote")
	})
}

// Abort implements admin.Service.
func (p *process) Abort(ctx context.Context, name string) (admin.Swapped, error) {
	return p.swapped(ctx, name, false, func(ctx context.Context, s *session) (uint64, error) {
		if s.canary == nil {
			return 0, errNoCanary
		}
		s.endCanary(ctx, canaryAborted, "wasmctl abort")
		return s.module.Generation(), nil
	})
}

// swapped is session.swapped of a controller.
func (p *process) swapped(ctx context.Context, name string, replaces bool, do func(context.Context, *session) (uint64, error)) (admin.Swapped, error) {
	s, err := p.session(name)
	if err != nil {
		return admin.Swapped{}, err
	}
	res, err := s.swapped(ctx, replaces, func(ctx context.Context) (uint64, error) { return do(ctx, s) })
	return res, admin.Refuse(err)
}

// Configure implements admin.Service.
func (p *process) Configure(ctx context.Context, name string, change map[string]*string) (int64, error) {
	s, err := p.session(name)
	if err != nil {
		return 0, err
	}
	var gen int64
	err = s.do(ctx, func(ctx context.Context) error {
		gen, err = s.override(ctx, change)
		return err
	})
	if errors.Is(err, admin.ErrInvalid) {
		return gen, err
	}
	return gen, admin.Refuse(err)
}
