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
	// MaxConcurrency is far above what an API server bears from one controller; it keeps a slip of the finger from being "unbounded".
	MaxConcurrency = 10_000
)

// Config says how a Runner runs. The zero value works.
type Config[M any] struct {
	// Concurrency is how many jobs run at once; zero is DefaultConcurrency, and MaxConcurrency is the most (rule 5).
	Concurrency int
	// Pool is a limit of jobs that this Runner shares with others, beside its own Concurrency; nil shares with none.
	Pool *Pool
	// DrainTimeout is how long running jobs may go on after a stop before they are interrupted (rule 9); zero is DefaultDrainTimeout.
	// To interrupt at once, close Input.Force.
	DrainTimeout time.Duration
	// Scheduler configures the scheduler: how messages merge, and debounce.
	Scheduler scheduler.Config[M]
	// Logger gets what happens during a stop, and which jobs do not end; nil drops it.
	Logger *slog.Logger

	// OnStart, if not nil, is called before each job starts, with how long it had been due (workqueue_queue_duration) and its priority;
	// OnEnd after each job has ended, with how long it took (workqueue_work_duration). The loop calls them: they must be quick, and must
	// not call the Runner.
	OnStart func(queued time.Duration, priority scheduler.Priority)
	OnEnd   func(took time.Duration)
}

// Validate returns an error that names the first field with a value that cannot be used.
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

// withDefaults returns the config as it is used.
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
