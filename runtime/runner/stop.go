package runner

import (
	"context"
	"fmt"
	"time"
)

const (
	// reportEvery is how often jobs are complained of that go on after they were interrupted.
	reportEvery = 10 * time.Second
	// reportKeys is how many keys a log line names.
	reportKeys = 10
)

// checkStop takes a stop in, if one has come, without waiting for it.
func (l *loop[K, M]) checkStop(ctx context.Context) {
	select {
	case <-l.in.Force:
		l.force()
		return
	default:
	}
	select {
	case <-ctx.Done():
		l.drain()
	default:
	}
}

// drain begins an orderly stop: nothing is started any longer, running jobs have DrainTimeout to
// end.
func (l *loop[K, M]) drain() {
	l.halt(draining)
	l.stopAt = time.Now().Add(l.r.cfg.DrainTimeout)
	if n := l.sched.Running(); n > 0 {
		l.r.cfg.Logger.Info("stopping: waiting for running jobs", "running", n, "limit", l.r.cfg.DrainTimeout)
	}
}

// force takes the close of Input.Force in.
func (l *loop[K, M]) force() {
	l.in.Force = nil
	if l.state != interrupted {
		l.interruptAll(ErrForced)
	}
}

// alarm takes the firing of the timer in. While the loop is working there is nothing to do: the next turn advances the scheduler.
func (l *loop[K, M]) alarm() {
	switch l.state {
	case draining:
		l.interruptAll(ErrDrainTimeout)
	case interrupted:
		l.stopAt = time.Now().Add(reportEvery)
		l.r.cfg.Logger.Warn("interrupted jobs have not ended; still waiting", "running", l.sched.Running(), "objects", l.runningKeys())
	case working, finishing:
	}
}

// interruptAll cancels the context of the running jobs.
func (l *loop[K, M]) interruptAll(cause error) {
	l.halt(interrupted)
	l.stopAt = time.Now().Add(reportEvery)
	if n := l.sched.Running(); n > 0 {
		l.err = fmt.Errorf("runner: %d running jobs interrupted: %w", n, cause)
		l.r.cfg.Logger.Warn("interrupting running jobs", "cause", cause, "running", n, "objects", l.runningKeys())
	}
	l.interrupt(cause)
}

// halt moves on to a state in which nothing is started, and so nothing is taken in.
func (l *loop[K, M]) halt(to state) {
	l.state = to
	l.in.Requests, l.in.Ready = nil, nil
}

// runningKeys returns the keys that have been running longest, up to reportKeys, for a log line.
func (l *loop[K, M]) runningKeys() []string {
	var keys []string
	for key := range l.sched.RunningKeys() {
		if len(keys) == reportKeys {
			return append(keys, "...")
		}
		keys = append(keys, fmt.Sprint(key))
	}
	return keys
}
