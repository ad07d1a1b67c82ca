// Package manager runs controllers side by side in one process. They share
// watches, workers and one lease; they come and go without touching each other.
package manager

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"

	"github.com/wasmctl/wasmctl/runtime/leader"
)

// Controller is what a Manager runs: a *controller.Controller.
type Controller interface {
	// Name is unique within a Manager.
	Name() string
	// Run reconciles until ctx ends, and returns when everything it started has
	// ended. Closing force interrupts running reconciles.
	Run(ctx context.Context, force <-chan struct{}) error
	// Release gives up what the controller holds if Run is not going to be called.
	Release()
}

// Errors of a Manager.
var (
	// ErrNameTaken is wrapped by Add's error where a controller of that name runs.
	ErrNameTaken = errors.New("another controller has this name")
	// ErrStopped is wrapped by Add's error after Run has begun to stop.
	ErrStopped = errors.New("the manager has stopped")
	// ErrUnknown is wrapped by Remove's error where no controller has the name.
	ErrUnknown = errors.New("there is no controller of this name")
)

// Config says how controllers run. The zero value works.
type Config struct {
	// Elector, if not nil, is run for as long as the controllers are, and given up
	// after the last of them has ended. Controllers find out by its gate when they
	// may begin.
	Elector *leader.Elector
	// OnEnd, if not nil, is told of each controller that has ended while others go
	// on, with the error of its Run.
	OnEnd func(name string, err error)
	// Logger is told of controllers that come and go; nil drops it.
	Logger *slog.Logger
}

// Manager runs controllers. It is safe for concurrent use.
type Manager struct {
	cfg  Config
	wake chan struct{} // has a value after members was changed

	mu      sync.Mutex
	members map[string]*member // guarded by mu
	stopped bool               // guarded by mu
}

// member is a controller and how far it is.
type member struct {
	Controller
	started bool          // guarded by Manager.mu
	stop    chan struct{} // closed by Remove, under Manager.mu
	ended   chan struct{} // closed when Run has returned
	err     error         // of Run; read after ended is closed
}

// removed reports whether somebody took it out: then its error is theirs.
func (c *member) removed() bool {
	select {
	case <-c.stop:
		return true
	default:
		return false
	}
}

// New returns a Manager without controllers.
func New(cfg Config) *Manager {
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	return &Manager{cfg: cfg, wake: make(chan struct{}, 1), members: map[string]*member{}}
}

// Add adds a controller: it runs as soon as the Manager does. On an error it is
// released.
func (m *Manager) Add(c Controller) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	var err error
	if m.stopped {
		err = ErrStopped
	} else if m.members[c.Name()] != nil {
		err = ErrNameTaken
	}
	if err != nil {
		c.Release()
		return fmt.Errorf("controller[%s]: %w", c.Name(), err)
	}
	m.members[c.Name()] = &member{Controller: c, stop: make(chan struct{}), ended: make(chan struct{})}
	m.signal()
	return nil
}

// Remove stops a controller, in order, and returns the error of its Run when
// it has ended. The others go on. It waits for a Manager that runs, until ctx
// ends.
func (m *Manager) Remove(ctx context.Context, name string) error {
	m.mu.Lock()
	c := m.members[name]
	if c == nil {
		m.mu.Unlock()
		return fmt.Errorf("controller[%s]: %w", name, ErrUnknown)
	}
	if !c.started {
		delete(m.members, name)
		m.mu.Unlock()
		c.Release()
		return nil
	}
	select {
	case <-c.stop: // somebody else removes it too
	default:
		close(c.stop)
	}
	m.mu.Unlock()
	select {
	case <-c.ended:
		return c.err
	case <-ctx.Done():
		return fmt.Errorf("controller[%s]: is stopping: %w", name, context.Cause(ctx))
	}
}

// Names returns the names of the controllers that run or are going to, sorted.
func (m *Manager) Names() []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	names := make([]string, 0, len(m.members))
	for name := range m.members {
		names = append(names, name)
	}
	slices.SortFunc(names, strings.Compare)
	return names
}

func (m *Manager) signal() {
	select {
	case m.wake <- struct{}{}:
	default:
	}
}

// Run runs the controllers until ctx ends, and returns when all have ended.
// Each has its own time to finish running reconciles; closing force interrupts
// them all. The lease is given up last. A controller that ends by itself does
// not end the others, but its error is part of Run's. If the lease is lost,
// all controllers are interrupted and the error wraps leader.ErrLost. A
// Manager runs once.
func (m *Manager) Run(ctx context.Context, force <-chan struct{}) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	g := &group{m: m, ended: make(chan *member), force: make(chan struct{})}
	lease := m.elect(ctx)
	for stop := ctx.Done(); stop != nil || g.running > 0; {
		select {
		case <-m.wake:
			g.start(ctx)
		case c := <-g.ended:
			g.end(c, ctx.Err() != nil)
		case <-stop:
			stop = nil
			m.stop()
		case <-force:
			force = nil
			g.interrupt()
			cancel()
		case <-lease.lost:
			lease.lost = nil
			g.interrupt()
			cancel()
		}
	}
	return errors.Join(append(g.errs, lease.release())...)
}

// stop lets no more controllers in, and releases those that were not started.
func (m *Manager) stop() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.stopped = true
	for name, c := range m.members {
		if !c.started {
			delete(m.members, name)
			c.Release()
		}
	}
}

// group is one Run. All fields belong to its goroutine.
type group struct {
	m       *Manager
	running int
	ended   chan *member
	force   chan struct{} // closed to interrupt all
	forced  bool
	errs    []error
}

// start starts the controllers that were added, unless the end has come.
func (g *group) start(ctx context.Context) {
	g.m.mu.Lock()
	defer g.m.mu.Unlock()
	if g.m.stopped || ctx.Err() != nil {
		return
	}
	for name, c := range g.m.members {
		if c.started {
			continue
		}
		c.started = true
		g.running++
		g.m.cfg.Logger.Debug("controller starts", "controller", name)
		go g.run(ctx, c)
	}
}

// run is the goroutine of one controller.
func (g *group) run(ctx context.Context, c *member) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	finished := make(chan struct{})
	go func() {
		select {
		case <-c.stop:
			cancel()
		case <-finished:
		}
	}()
	c.err = c.Run(ctx, g.force)
	close(finished)
	g.ended <- c
}

// end takes a controller out; stopping says that all are to end.
func (g *group) end(c *member, stopping bool) {
	g.m.mu.Lock()
	delete(g.m.members, c.Name())
	g.m.mu.Unlock()
	g.running--
	close(c.ended)
	if stopping {
		g.errs = append(g.errs, c.err)
		return
	}
	if c.err != nil && !c.removed() {
		g.errs = append(g.errs, c.err)
	}
	if g.m.cfg.OnEnd != nil {
		g.m.cfg.OnEnd(c.Name(), c.err)
	}
}

func (g *group) interrupt() {
	if !g.forced {
		g.forced = true
		close(g.force)
	}
}

// lease is the part that a Run takes in an election.
type lease struct {
	lost    <-chan struct{} // nil without an election
	release func() error    // returns when the lease has been given up
}

// elect starts to take part in the election, if there is one. The lease is
// kept while ctx's controllers stop, until release.
func (m *Manager) elect(ctx context.Context) lease {
	if m.cfg.Elector == nil {
		return lease{release: func() error { return nil }}
	}
	running, giveUp := context.WithCancel(context.WithoutCancel(ctx))
	result := make(chan error, 1)
	go func() { result <- m.cfg.Elector.Run(running) }()
	return lease{lost: m.cfg.Elector.Gate().Done(), release: func() error {
		giveUp()
		return <-result
	}}
}
