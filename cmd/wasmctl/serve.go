package main

import (
	"context"
	"os/signal"
	"sync"
	"syscall"
	"time"

	"github.com/wasmctl/wasmctl/runtime/probation"
)

// judgeEvery is how often a generation on probation is judged, beside each of
// its failures.
const judgeEvery = 250 * time.Millisecond

// command is something for serve to do.
type command struct {
	run  func(context.Context) error
	done chan error // has room for one
	// replaces says that it is about which module is live: one that is still being
	// prepared is not wanted any more.
	replaces bool
}

// serve does whatever changes a session while its controller runs, one thing
// after the other: swaps, settings, watches of kinds that come late. It returns
// when ctx has ended, and everything that it started.
func (s *session) serve(ctx context.Context) {
	defer close(s.served)
	var wg sync.WaitGroup
	defer wg.Wait()
	defer s.watching.waiting.Wait()
	ctx, end := context.WithCancel(ctx)
	defer end() // after a panic too: it must not wait for what goes on for ever
	if s.opts.configFile != "" {
		content := s.settingsFile
		wg.Go(func() { s.watchSettings(ctx, content) })
	}
	if s.opts.rights.grantFile != "" {
		wg.Go(func() { s.watchGrant(ctx) })
	}
	if s.opts.watch {
		wg.Go(func() { s.watchModule(ctx) })
	}
	signal.Notify(s.hangup, syscall.SIGHUP)
	defer signal.Stop(s.hangup)
	tick := time.NewTicker(judgeEvery)
	defer tick.Stop()
	s.awaitLate(ctx)
	for ctx.Err() == nil {
		if c := s.next; c != nil {
			s.next = nil
			c.done <- c.run(ctx)
			continue
		}
		select {
		case c := <-s.todo:
			c.done <- c.run(ctx)
		case <-s.hangup:
			s.reload(ctx)
		case <-s.trials.wake:
			s.judge(ctx)
		case <-tick.C:
			s.judge(ctx)
		case <-ctx.Done():
		}
	}
}

// do has serve do something, and returns its error. It is begun unless ctx ends
// before, and goes on though ctx ends.
func (s *session) do(ctx context.Context, run func(context.Context) error) error {
	return s.ask(ctx, command{run: run, done: make(chan error, 1)})
}

// replace is do for what is about which module is live.
func (s *session) replace(ctx context.Context, run func(context.Context) error) error {
	return s.ask(ctx, command{run: run, done: make(chan error, 1), replaces: true})
}

func (s *session) ask(ctx context.Context, c command) error {
	select {
	case s.todo <- c:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	select {
	case err := <-c.done:
		return err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// judge looks at the canary and at the generation on probation. One that is
// worse is replaced by the one before.
func (s *session) judge(ctx context.Context) {
	s.judgeCanary(ctx)
	number, _, ok := s.trials.onTrial()
	if !ok {
		return
	}
	switch v, reason := s.trials.judge(time.Now()); v {
	case probation.Passed:
		gone := s.watching.settle()
		s.log.Info("probation passed", "controller", s.name, "generation", number, "watches_ended", gone)
	case probation.Failed:
		s.takeBack(ctx, reason)
	default:
	}
}
