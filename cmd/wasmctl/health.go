package main

import (
	"errors"
	"fmt"
	"time"

	"github.com/wasmctl/wasmctl/runtime/health"
	"github.com/wasmctl/wasmctl/runtime/leader"
	"github.com/wasmctl/wasmctl/runtime/watcher"
)

// addChecks makes the checks of the process: /livez is about what only a new
// start helps with, /readyz about whether it does its work.
func (m *monitor) addChecks(p *process) {
	m.live, m.ready = health.New("livez"), health.New("readyz")
	m.live.Add(health.Watches(func() []health.Watch { return p.watchHealth(time.Now()) }))
	m.ready.Add(health.Check{Name: "started", Do: func() error {
		if !m.running.Load() {
			return errors.New("modules are being loaded, and kinds looked up")
		}
		return nil
	}})
	m.ready.Add(health.Check{Name: "controllers", Do: p.allRun})
	m.ready.Add(health.Check{Name: "leader", Do: func() error {
		if !m.running.Load() || p.elector == nil {
			return nil
		}
		if err := p.elector.Gate().Err(); errors.Is(err, leader.ErrLost) { // who stands by is ready to
			return err
		}
		return nil
	}})
	m.ready.Add(health.Check{Name: "shutdown", Do: func() error {
		if m.stopping.Load() {
			return errors.New("the process is stopping")
		}
		return nil
	}})
}

// allRun says which controllers do not run, and why.
func (p *process) allRun() error {
	var errs []error
	for _, m := range p.members.all() {
		if phase, message, _ := m.state(); phase != phaseRunning {
			errs = append(errs, fmt.Errorf("%s is %s: %s", m.name(), phase, message))
		}
	}
	return errors.Join(errs...)
}

func (p *process) watchHealth(now time.Time) []health.Watch {
	if !p.monitor.running.Load() {
		return nil
	}
	var list []health.Watch
	p.eachWatch(func(source watcher.Source, st watcher.State) {
		list = append(list, health.Watch{Name: source.String(), Stalled: st.Stalled(now), Progress: st.LastProgress})
	})
	return list
}

// addHealth adds the checks of a controller, which runs.
func (s *session) addHealth() {
	ready := s.monitor.ready
	if ready == nil {
		return
	}
	s.unshow = append(s.unshow,
		ready.Add(health.Synced(s.name, s.controller.Unsynced)),
		ready.Add(health.Check{Name: "module-" + s.name, Do: s.module.Healthy}),
	)
}
