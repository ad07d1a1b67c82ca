// SPDX-License-Identifier: Apache-2.0

package runner

import (
	"context"
	"fmt"
	"time"
)

const (
	// reportEvery is how often interrupted jobs that have not ended are reported.
	reportEvery = 10 * time.Second
	// reportKeys is the maximum number of keys in a log line.
	reportKeys = 10
)

// checkStop handles a stop that has been requested, without waiting for one.
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

// drain begins an orderly stop: no job is started, and running jobs have DrainTimeout to end.
func (l *loop[K, M]) drain() {
	l.halt(draining)
	l.stopAt = time.Now().Add(l.r.cfg.DrainTimeout)
	if n := l.sched.Running(); n > 0 {
		l.r.cfg.Logger.Info("stopping: waiting for running jobs", "running", n, "limit", l.r.cfg.DrainTimeout)
	}
}

// force handles the close of Input.Force.
func (l *loop[K, M]) force() {
	l.in.Force = nil
	if l.state != interrupted {
		l.interruptAll(ErrForced)
	}
}

// alarm handles the expiry of the timer. While the loop is working, there is nothing to do: the next turn advances the scheduler.
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

// interruptAll cancels the contexts of the running jobs.
func (l *loop[K, M]) interruptAll(cause error) {
	l.halt(interrupted)
	l.stopAt = time.Now().Add(reportEvery)
	if n := l.sched.Running(); n > 0 {
		l.err = fmt.Errorf("runner: %d running jobs interrupted: %w", n, cause)
		l.r.cfg.Logger.Warn("interrupting running jobs", "cause", cause, "running", n, "objects", l.runningKeys())
	}
	l.interrupt(cause)
}

// halt enters a state in which no job is started, and therefore no request is received.
func (l *loop[K, M]) halt(to state) {
	l.state = to
	l.in.Requests, l.in.Ready = nil, nil
}

// runningKeys returns up to reportKeys keys, the longest-running first, for a log line.
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
