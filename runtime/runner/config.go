// SPDX-License-Identifier: Apache-2.0

package runner

import (
	"cmp"
	"fmt"
	"log/slog"
	"time"

	"github.com/wasmctl/wasmctl/runtime/scheduler"
)

// Defaults and limits of Config.
const (
	DefaultConcurrency  = 4
	DefaultDrainTimeout = 30 * time.Second
	// MaxConcurrency is far more than an API server can bear from one controller. It prevents a typo from making a runner unbounded.
	MaxConcurrency = 10_000
)

// Config configures a Runner. The zero value works.
type Config[M any] struct {
	// Concurrency is the maximum number of concurrent jobs, up to MaxConcurrency; zero means DefaultConcurrency (rule 5).
	Concurrency int
	// Pool is a limit on jobs that this Runner shares with others, in addition to its own Concurrency. If nil, there is no shared limit.
	Pool *Pool
	// DrainTimeout is how long running jobs may continue after a stop before they are interrupted (rule 9). Zero means DefaultDrainTimeout.
	// To interrupt at once, close Input.Force.
	DrainTimeout time.Duration
	// Scheduler configures the scheduler: how messages are merged, and the debounce.
	Scheduler scheduler.Config[M]
	// Logger logs the progress of a stop, and jobs that do not end. If nil, nothing is logged.
	Logger *slog.Logger

	// OnStart, if not nil, is called before each job starts, with the time since the job was due (workqueue_queue_duration) and its
	// priority. OnEnd is called after each job has ended, with its duration (workqueue_work_duration). Both are called from the loop: they
	// must be quick, and must not call the Runner.
	OnStart func(queued time.Duration, priority scheduler.Priority)
	OnEnd   func(took time.Duration)
}

// Validate returns an error that names the first invalid field.
func (c Config[M]) Validate() error {
	if c.Concurrency < 0 || c.Concurrency > MaxConcurrency {
		return fmt.Errorf("runner: concurrency %d: must be 1 to %d; 0 is the default of %d", c.Concurrency, MaxConcurrency, DefaultConcurrency)
	}
	if c.DrainTimeout < 0 {
		return fmt.Errorf("runner: drain timeout %v: must be positive; 0 is the default of %v", c.DrainTimeout, DefaultDrainTimeout)
	}
	if err := c.Scheduler.Debounce.Validate(); err != nil {
		return fmt.Errorf("runner: %w", err)
	}
	return nil
}

// withDefaults returns the config with its defaults filled in.
func (c Config[M]) withDefaults() Config[M] {
	c.Concurrency = cmp.Or(c.Concurrency, DefaultConcurrency)
	c.DrainTimeout = cmp.Or(c.DrainTimeout, DefaultDrainTimeout)
	c.Logger = cmp.Or(c.Logger, slog.New(slog.DiscardHandler))
	if c.OnStart == nil {
		c.OnStart = func(time.Duration, scheduler.Priority) {}
	}
	if c.OnEnd == nil {
		c.OnEnd = func(time.Duration) {}
	}
	return c
}
