// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/wasmctl/wasmctl/internal/life"
	"github.com/wasmctl/wasmctl/internal/rollout"
	"github.com/wasmctl/wasmctl/runtime/admin"
)

// Errors of requests to a Life.
var (
	// ErrPreparing is returned if the same module is requested again.
	ErrPreparing = errors.New("this module is already being prepared")
	// ErrSuperseded is returned for a request that another one has replaced while its module was being
	// prepared. It is no verdict about the module.
	ErrSuperseded = errors.New("superseded by another request while its module was being prepared")
	// ErrStopping is returned if the controller is about to end.
	ErrStopping = errors.New("the controller is stopping")
	// ErrNotRunning is returned if the controller is still loading, waits or has failed.
	ErrNotRunning = errors.New("the controller does not run")
	// ErrNative is returned for a request that needs a module.
	ErrNative = errors.New("the controller is a native reconciler: it has no module")

	// ErrSettings is returned if the live module does not accept the requested settings.
	ErrSettings = errors.New("settings")
)

// Source supplies the controllers that a Life loads, and records their changes.
type Source interface {
	// Name returns the name of the controller as far as it is known.
	Name() string
	// Load loads and starts the module with this digest; if the digest is empty, the module
	// that the options name. It calls waits with the reason whenever it waits.
	Load(ctx context.Context, digest string, waits func(why string)) Attempt
	// Borrow is Borrower.Borrow of a module that was requested before.
	Borrow(ctx context.Context, digest string) (wasm []byte, done func(), err error)
	// Changed records a change of the module that runs.
	Changed(c *admin.Change)
}

// Attempt is the result of loading.
type Attempt struct {
	Controller *Controller // started; nil after an error
	Digest     string      // of the module, if it is known
	// LastLive is the digest of the module that was live last, if Err reports that the
	// requested one was rolled back.
	LastLive string
	Err      error
}

// View is the state of a Life for status.
type View struct {
	Phase, Message string // one of admin's phases, and why the controller waits or failed
	Since          time.Time
	Engine         *Controller // nil unless it runs
	Restarting     bool        // Engine ends, and is loaded again
	First, Last    error       // of the first and the last attempt to load; nil if it runs
	Err            error       // the error that Run ended with
}

// Life is a controller from the moment it is requested until it has ended. One loop, Run,
// owns it: it passes requests, timers and results to package life, and carries out the
// effects. The methods are safe for concurrent use.
type Life struct {
	source   Source
	log      *slog.Logger
	requests chan *request
	restart  chan struct{} // has a buffer of one
	results  chan result   // of goroutines that the loop started
	first    chan struct{} // closed when the first attempt to load has ended
	stop     chan struct{} // closed by Stop
	once     sync.Once     // closes stop
	force    chan struct{} // closed by Interrupt, or when the process stops by force
	forced   sync.Once     // closes force
	admitted atomic.Bool   // Run is going to be called
	ended    chan struct{} // closed when everything that it started has ended
	view     atomic.Pointer[View]
}

// NewLife returns a Life. Run must be called if Admit returns true.
func NewLife(source Source, log *slog.Logger) *Life {
	l := &Life{
		source: source, log: log, requests: make(chan *request), restart: make(chan struct{}, 1), results: make(chan result),
		first: make(chan struct{}), stop: make(chan struct{}), force: make(chan struct{}), ended: make(chan struct{}),
	}
	l.view.Store(&View{Phase: admin.PhaseLoading, Since: time.Now()})
	return l
}

// Admit reports whether the controller may begin; it may not if it was stopped before.
func (l *Life) Admit() bool {
	l.admitted.Store(true)
	if l.Stopped() {
		l.admitted.Store(false)
		return false
	}
	return true
}

// Discard ends a controller that was not admitted.
func (l *Life) Discard() { close(l.ended) }

// Waits records what loading waits for, while a caller loads the controller before Run.
func (l *Life) Waits(why string) {
	l.view.Store(&View{Phase: admin.PhaseWaiting, Message: why, Since: time.Now()})
}

// View returns the state.
func (l *Life) View() View { return *l.view.Load() }

// Started waits until the first attempt to load has ended, and returns its error:
// ErrStopping if the controller was stopped before.
func (l *Life) Started(ctx context.Context) error {
	select {
	case <-l.first:
	case <-l.ended:
		if !isClosed(l.first) {
			return ErrStopping
		}
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	return l.View().First
}

// Ended is closed when everything that the controller started has ended.
func (l *Life) Ended() <-chan struct{} { return l.ended }

// Stop stops the controller, and returns when the controller or ctx has ended. It does not
// wait for a controller that was not admitted: it will never begin.
func (l *Life) Stop(ctx context.Context) error {
	l.once.Do(func() { close(l.stop) })
	if !l.admitted.Load() {
		return nil
	}
	select {
	case <-l.ended:
		return l.View().Err
	case <-ctx.Done():
		return fmt.Errorf("controller[%s]: is stopping: %w", l.source.Name(), context.Cause(ctx))
	}
}

// Interrupt stops the controller by force: it cuts running reconciles short. It does not wait.
func (l *Life) Interrupt() {
	l.once.Do(func() { close(l.stop) })
	l.interrupt()
}

func (l *Life) interrupt() { l.forced.Do(func() { close(l.force) }) }

// Stopped reports whether Stop was called.
func (l *Life) Stopped() bool { return isClosed(l.stop) }

// Restart stops the controller cleanly, and loads it again. It does not wait.
func (l *Life) Restart() {
	select {
	case l.restart <- struct{}{}:
	default: // a restart is pending
	}
}

// Live returns the running controller; the error explains why there is none.
func (l *Life) Live() (*Controller, error) {
	v := l.View()
	if v.Engine == nil {
		return nil, l.notRunning()
	}
	return v.Engine, nil
}

func (l *Life) notRunning() error {
	v := l.View()
	return fmt.Errorf("controller[%s]: %w: is %s: %s", l.source.Name(), ErrNotRunning, v.Phase, v.Message)
}

// ask passes a request to the loop and waits for the answer. If ctx ends, ask returns, but
// a request that the loop has received goes on.
func (l *Life) ask(ctx context.Context, r *request) (answer, error) {
	r.answered = make(chan answer, 1)
	select {
	case l.requests <- r:
	case <-l.ended:
		return answer{}, l.notRunning()
	case <-ctx.Done():
		return answer{}, context.Cause(ctx)
	}
	select {
	case a := <-r.answered:
		return a, a.err
	case <-ctx.Done():
		return answer{}, context.Cause(ctx)
	}
}

// err returns the error of an answer.
func (l *Life) err(e *life.Effect) error {
	switch e.Outcome {
	case life.OK:
		return nil
	case life.Same:
		return sameModule(e.Err)
	case life.Busy:
		return ErrPreparing
	case life.Superseded:
		return ErrSuperseded
	case life.NoCanary:
		return rollout.ErrNoCanary
	case life.NotRunning:
		return l.notRunning()
	case life.Ending:
		return ErrStopping
	default:
		return e.Err
	}
}
