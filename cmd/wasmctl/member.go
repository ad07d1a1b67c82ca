package main

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"
)

// Phases of a member.
const (
	phaseLoading = "loading" // its module is read, compiled and checked
	phaseWaiting = "waiting" // for a kind or the cluster
	phaseRunning = "running"
	phaseFailed  = "failed" // it could not be loaded, and is tried again
)

// How long a member that has failed waits before it is tried again: doubled
// each time.
const (
	minRetry = 5 * time.Second
	maxRetry = time.Minute
)

// errAnew is why a session ends whose member begins another.
var errAnew = errors.New("the controller is started anew")

// errRemoved is why a member ends while the process goes on.
var errRemoved = errors.New("the controller is not wanted any more")

// member is a controller of a process from the time that it is wanted. Its
// session exists once the module is loaded.
type member struct {
	*process

	opts   *controllerOptions
	log    *slog.Logger
	loaded *session                // what is loaded before it runs, as the only one of a process is; closed with the process, unless it is started anew
	remove context.CancelCauseFunc // ends it, as its controller's drain timeout allows; errRemoved alone
	ended  chan struct{}           // closed when all that it started has ended

	mu      sync.Mutex
	session *session // guarded by mu; nil unless it runs
	called  string   // what it was called when it ran last, "" before; guarded by mu
	phase   string   // guarded by mu
	message string   // why it waits or has failed; guarded by mu
	since   time.Time
}

// name is what the controller is known by: until its manifest is known, what
// the options say.
func (m *member) name() string {
	m.mu.Lock()
	called := m.called
	m.mu.Unlock()
	if called != "" {
		return called
	}
	if m.opts.name != "" {
		return m.opts.name
	}
	return moduleName(m.opts.module)
}

// live returns the session, nil where it does not run.
func (m *member) live() *session {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.session
}

// state says how far it is, and why.
func (m *member) state() (phase, message string, since time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.phase, m.message, m.since
}

// note says how far it is; unless it runs, s is nil.
func (m *member) note(phase, message string, s *session) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.phase != phase || m.message != message {
		m.since = time.Now()
	}
	if m.phase, m.message, m.session = phase, message, s; s != nil {
		m.called = s.name
	}
}

// begin loads the module and starts the controller, and tries again until that
// works or ctx ends, which is nil's meaning. settled is told of the first try.
func (m *member) begin(ctx context.Context, settled func(error)) *session {
	for wait := minRetry; ; wait = min(2*wait, maxRetry) {
		s, err := m.try(ctx)
		if ctx.Err() != nil {
			settled(nil)
			return nil
		}
		settled(err)
		settled = func(error) {}
		if err == nil {
			return s
		}
		if _, before, _ := m.state(); before != err.Error() {
			m.log.Error("controller does not start; the others go on, and it is tried again", "controller", m.name(), "error", err.Error())
		}
		m.note(phaseFailed, err.Error(), nil)
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(wait):
		}
	}
}

// try loads and starts once. After an error nothing is left.
func (m *member) try(ctx context.Context) (*session, error) {
	wasm, err := readModule(m.opts.module)
	if err != nil {
		return nil, err
	}
	s := &session{process: m.process, opts: m.opts, log: m.log, waits: func(why string) { m.note(phaseWaiting, why, nil) }}
	if err = s.prepare(ctx, wasm); err == nil {
		err = s.start()
	}
	if err != nil {
		return nil, errors.Join(err, s.close())
	}
	return s, nil
}

// startLoaded starts the controller of what is loaded already.
func (m *member) startLoaded() error {
	if m.loaded == nil {
		return nil
	}
	if err := m.loaded.start(); err != nil {
		return err
	}
	m.note(phaseRunning, "", m.loaded)
	return nil
}

// run is the life of a member.
func (m *member) run(ctx context.Context, settled func(error)) {
	defer close(m.ended)
	s := m.loaded
	if s == nil {
		defer m.members.drop(m)
		s = m.begin(ctx, settled)
	} else {
		settled(nil)
	}
	for s != nil {
		again := m.serve(ctx, s)
		if !again && s == m.loaded {
			return // it is closed with the process
		}
		if err := s.close(); err != nil {
			m.log.Error("module cannot be closed", "controller", s.name, "error", err.Error())
		}
		if s = nil; again {
			m.note(phaseLoading, "", nil)
			s = m.begin(ctx, func(error) {})
		}
	}
}

// serve does what a controller that was started needs, until ctx ends and it
// has ended, or it is to be started anew. What records its events ends after it.
func (m *member) serve(ctx context.Context, s *session) (again bool) {
	s.waits = s.trials.waits
	m.note(phaseRunning, "", s)
	ctx, s.restart = context.WithCancelCause(ctx)
	defer s.restart(nil)
	defer context.AfterFunc(ctx, s.module.Drain)() // tells guests, through cancelled()
	services, stop := context.WithCancel(context.WithoutCancel(ctx))
	var wg sync.WaitGroup
	defer wg.Wait()
	defer stop()
	wg.Go(func() { _ = s.api.Run(services) }) // its error is only that it runs
	wg.Go(func() { s.serve(ctx) })            // nothing changes any more once a stop has begun
	<-ctx.Done()
	again = errors.Is(context.Cause(ctx), errAnew)
	if err := s.manager.Remove(context.WithoutCancel(ctx), s.name); err != nil && (again || errors.Is(context.Cause(ctx), errRemoved)) {
		m.log.Warn("controller did not stop in order", "controller", s.name, "error", err.Error())
	}
	s.sayStopped()
	return again
}
