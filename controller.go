package wasmctl

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/internal/engine"
	"github.com/wasmctl/wasmctl/internal/logging"
	"github.com/wasmctl/wasmctl/runtime/admin"
)

// How long a controller that has failed waits before it is retried: doubled
// each time.
const (
	minRetry = 5 * time.Second
	maxRetry = time.Minute
)

// Why the engine of a controller ends while the Runtime goes on.
var (
	errRestart = errors.New("the controller is restarted")
	errStop    = errors.New("the controller was stopped")
)

type source = func() (Module, ControllerOptions, error)

// Controller is a controller of a Runtime, from the time that it is wanted until
// it has been stopped. It is safe for concurrent use.
type Controller struct {
	rt     *Runtime
	source source
	native *Native // nil for one with a module
	log    *slog.Logger
	first  chan struct{} // closed when the first try has ended
	ended  chan struct{} // closed when all that it started has ended

	mu       sync.Mutex
	name     string                  // what it is called; guarded by mu
	taken    string                  // the name that it has started with, and keeps; guarded by mu
	admitted bool                    // it is to begin when the Runtime runs; guarded by mu
	loaded   *engine.Controller      // what was loaded before it began; nil once it has; guarded by mu
	engine   *engine.Controller      // nil unless it runs; guarded by mu
	end      context.CancelCauseFunc // ends the engine, or the wait for one; nil before it has begun; guarded by mu
	stopping bool                    // Stop was called; guarded by mu
	phase    string                  // one of admin's; guarded by mu
	message  string                  // why it waits or has failed; guarded by mu
	since    time.Time               // of the phase and message; guarded by mu
	firstErr error                   // of the first try; guarded by mu
	tryErr   error                   // of the last try; nil once it runs; guarded by mu
	err      error                   // of its end; guarded by mu
	modules  map[string]held         // those that were live or asked for, by digest; guarded by mu
	shadows  map[string]*shadow      // those that shadow the live one, by digest; guarded by mu
	wanted   Module                  // of the next start; nil is the source's; guarded by mu
	options  ControllerOptions       // of the last try; guarded by mu
}

func newController(rt *Runtime, name string, source source) *Controller {
	return &Controller{
		rt: rt, source: source, name: name, log: logging.ForController(rt.log, rt.shared.Tracing.TraceIDs()),
		first: make(chan struct{}), ended: make(chan struct{}), modules: map[string]held{}, shadows: map[string]*shadow{}, phase: admin.PhaseLoading, since: time.Now(),
	}
}

// Name is what the controller is called. It may change when its module is
// loaded.
func (c *Controller) Name() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.name
}

// started reports whether the controller has started with a name, named whether its
// options give it one.
func (c *Controller) started(name string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.taken == name
}

func (c *Controller) named(name string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.options.Name == name
}

// Logger logs as the controller does: with its level, and into what wasmctl logs
// shows of it.
func (c *Controller) Logger() *slog.Logger { return c.log }

// Started waits until the controller has been tried for the first time, and
// returns the error of that: ErrStopping where it was stopped before.
func (c *Controller) Started(ctx context.Context) error {
	select {
	case <-c.first:
	case <-c.ended:
		if !isOpen(c.first) {
			return ErrStopping
		}
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.firstErr
}

// Running reports whether the controller runs: else it is loaded, waits or has
// failed.
func (c *Controller) Running() bool { return c.current() != nil }

// Err is why the controller does not run, as the last try to start it said; nil
// while it runs, or has not been tried. It matches as the errors of Load do.
func (c *Controller) Err() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.tryErr
}

// Ended is closed when the controller has been stopped and everything that it
// started has ended.
func (c *Controller) Ended() <-chan struct{} { return c.ended }

// Stop stops the controller cleanly, and returns when everything that it
// started has ended, or ctx has. Its watches go unless others share them. The
// error matches ErrForced where reconciles were interrupted.
func (c *Controller) Stop(ctx context.Context) error {
	c.mu.Lock()
	again := c.stopping
	c.stopping = true
	end := c.end
	c.mu.Unlock()
	if end == nil { // it has not begun, and does not any longer
		if again {
			return nil
		}
		return c.discard()
	}
	end(errStop)
	select {
	case <-c.ended:
	case <-ctx.Done():
		return fmt.Errorf("controller[%s]: is stopping: %w", c.Name(), context.Cause(ctx))
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.err
}

// Restart stops the controller cleanly, and starts it again with the options
// that its source returns then, and with the module that is live. It does not
// wait.
func (c *Controller) Restart() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.engine != nil {
		c.end(errRestart)
	}
}

// current returns the engine, nil where it does not run.
func (c *Controller) current() *engine.Controller {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.engine
}

// live returns the engine; the error says why there is none.
func (c *Controller) live() (*engine.Controller, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.engine == nil {
		return nil, fmt.Errorf("controller[%s]: %w: is %s: %s", c.name, ErrNotRunning, c.phase, c.message)
	}
	return c.engine, nil
}

// Swap makes another module live, or runs it as a canary first, and returns its
// revision when that has begun. Queue, timers and caches stay. A module that
// cannot be used is refused, and the live one goes on. The error wraps
// ErrSameModule where the module is live already.
func (c *Controller) Swap(ctx context.Context, m Module, o SwapOptions) (revision uint64, err error) {
	revision, _, err = c.swap(ctx, m, o)
	return revision, err
}

func (c *Controller) swap(ctx context.Context, m Module, o SwapOptions) (revision uint64, canary bool, err error) {
	wasm, err := m.Read()
	if err != nil {
		return 0, false, err
	}
	e, err := c.live()
	if err == nil {
		c.remember(e, m, wasm)
		revision, canary, err = e.Swap(ctx, wasm, o)
	}
	if errors.Is(err, ErrNotRunning) || errors.Is(err, ErrStopping) || errors.Is(err, context.Canceled) && ctx.Err() == nil {
		c.mu.Lock()
		c.wanted = m
		c.mu.Unlock()
	}
	return revision, canary, err
}

// Rollback makes the module of an earlier revision live again; 0 is the one
// before. It becomes a new revision, without probation.
func (c *Controller) Rollback(ctx context.Context, to uint64) (revision uint64, err error) {
	e, err := c.live()
	if err == nil {
		revision, _, err = e.Rollback(ctx, to, "requested through the API")
	}
	return revision, err
}

// FollowReplicas rolls back the live module, or ends the canary, where another replica
// has rolled that one back since this one took it, by what the Runtime's Notes say.
func (c *Controller) FollowReplicas(ctx context.Context) error {
	e, err := c.live()
	if err == nil {
		err = e.FollowReplicas(ctx)
	}
	return err
}

// Promote gives the canary all objects, and Abort none. They return the revision
// that is live. The error is ErrNoCanary where there is none.
func (c *Controller) Promote(ctx context.Context) (revision uint64, err error) {
	e, err := c.live()
	if err == nil {
		revision, err = e.Promote(ctx, "requested through the API")
	}
	return revision, err
}

// Abort is described at Promote.
func (c *Controller) Abort(ctx context.Context) (revision uint64, err error) {
	e, err := c.live()
	if err == nil {
		revision, err = e.Abort(ctx, "requested through the API")
	}
	return revision, err
}

// Configure gives the module other settings in the place of those of its options,
// and reconciles all objects. The error wraps ErrRefused where the module does
// not accept them; the old ones stay then.
func (c *Controller) Configure(ctx context.Context, settings map[string]string) error {
	e, err := c.live()
	if err == nil {
		_, err = e.Configure(ctx, settings)
	}
	return err
}

// Trigger asks for reconciles of objects, or of all where none is named, and
// returns how many it asked for.
func (c *Controller) Trigger(ctx context.Context, objects ...abi.Key) (int, error) {
	return c.trigger(ctx, objects, false)
}

// ForceTrigger is Trigger, but no run is skipped because of ControllerOptions.Memo.
func (c *Controller) ForceTrigger(ctx context.Context, objects ...abi.Key) (int, error) {
	return c.trigger(ctx, objects, true)
}

func (c *Controller) trigger(ctx context.Context, objects []abi.Key, force bool) (int, error) {
	e, err := c.live()
	if err != nil {
		return 0, err
	}
	return e.Trigger(ctx, objects, force)
}

// Pause stops the controller from starting reconciles; Resume lets it start them
// again, also those that were asked for meanwhile.
func (c *Controller) Pause() error { return c.pause(true) }

// Resume is described at Pause.
func (c *Controller) Resume() error { return c.pause(false) }

func (c *Controller) pause(paused bool) error {
	e, err := c.live()
	if err == nil {
		e.Pause(paused)
	}
	return err
}
