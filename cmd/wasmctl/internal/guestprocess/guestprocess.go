// Package guestprocess has modules in processes of their own. A process is the
// same binary, run again with the name of a hidden command; it speaks over
// sockets that it inherits and is given, and has nothing else. It ends when the
// process that has started it does.
package guestprocess

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"runtime"
	"sync"
	"time"

	"github.com/wasmctl/wasmctl/cmd/wasmctl/internal/harden"
	"github.com/wasmctl/wasmctl/cmd/wasmctl/internal/subprocess"
	"github.com/wasmctl/wasmctl/host"
)

// Command is the command of wasmctl that Serve is behind.
const Command = "guests-for-run"

// Config says what a process is.
type Config struct {
	// Memory is how much a process may allocate, in bytes: for guests, for what is
	// compiled and for what Go keeps of both. Zero does not bound it.
	Memory int64
	// Harden says whether a process gives up network, programs and all files but its
	// directory of compiled code.
	Harden harden.Mode
	// CPUs is how many guests compute on at once.
	CPUs int
}

// Classes are the processes of this one, by what runs in them. Its methods are
// safe for concurrent use.
type Classes struct {
	cfg Config

	mu     sync.Mutex
	shared map[string]*Isolation // by class; guarded by mu
}

// New returns Classes of this binary, whose main must know Command.
func New(cfg Config) *Classes { return &Classes{cfg: cfg, shared: map[string]*Isolation{}} }

// Of returns the process of a class; each call for "" returns another one.
func (c *Classes) Of(class string) host.Isolation {
	if class == "" {
		return &Isolation{cfg: c.cfg}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.shared[class] == nil {
		c.shared[class] = &Isolation{cfg: c.cfg}
	}
	return c.shared[class]
}

// Isolation is one process at a time: the next is started where one has ended. It
// implements host.Isolation.
type Isolation struct {
	cfg Config

	mu      sync.Mutex
	current *process  // nil where none is wanted; guarded by mu
	users   int       // of current; guarded by mu
	deaths  int       // one after the other; guarded by mu
	next    time.Time // when the next process may start; guarded by mu
}

// Bounds of starting processes again.
const (
	firstPause = 100 * time.Millisecond // after the second that has died soon
	mostPause  = 10 * time.Second
	livedLong  = time.Minute // what has lived so long has not died soon
)

// Process implements host.Isolation.
func (i *Isolation) Process(ctx context.Context) (host.GuestProcess, error) {
	for {
		p, wait, err := i.get()
		if p != nil || err != nil {
			return p, err
		}
		timer := time.NewTimer(wait)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return nil, fmt.Errorf("waiting to start it again: %w", context.Cause(ctx))
		}
	}
}

// get returns a process with a hold on it, or for how long to wait.
func (i *Isolation) get() (host.GuestProcess, time.Duration, error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.current != nil && i.current.Ended() != nil {
		i.died(i.current)
	}
	if i.current == nil {
		if wait := time.Until(i.next); wait > 0 {
			return nil, wait, nil
		}
		p, err := start(i)
		if err != nil {
			return nil, 0, err
		}
		i.current, i.users = p, 0
	}
	i.users++
	return i.current, 0, nil
}

// died notes that a process has ended that was wanted; mu is held.
func (i *Isolation) died(p *process) {
	i.current = nil
	if now := time.Now(); now.Sub(p.startedAt) < livedLong {
		i.deaths++
	} else {
		i.deaths = 1
	}
	i.next = time.Now().Add(pause(i.deaths))
}

// pause is how long nothing is started after so many processes have died soon.
func pause(deaths int) time.Duration {
	if deaths < 2 {
		return 0
	}
	return min(mostPause, firstPause<<min(deaths-2, 10))
}

var errUnused = errors.New("is not needed any longer")

// release gives a hold back; the last one ends the process, and waits for its end.
func (i *Isolation) release(p *process) {
	if i.drop(p) {
		_ = p.Kill(errUnused)
	}
}

// drop takes a hold off, and reports whether it was the last one of a process that
// lives.
func (i *Isolation) drop(p *process) bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.current != p {
		return false
	}
	if p.Ended() != nil {
		i.died(p)
		return false
	}
	if i.users--; i.users > 0 {
		return false
	}
	i.current = nil
	return true
}

// job is what a process reads from stdin.
type job struct {
	Memory int64  `json:"memory"`
	Dir    string `json:"dir,omitempty"`
	CPUs   int    `json:"cpus"`

	Harden harden.Mode `json:"harden"`
}

// start starts a process.
func start(of *Isolation) (*process, error) {
	p := &process{of: of, startedAt: time.Now(), ended: make(chan struct{})}
	p.dir, _ = os.MkdirTemp("", "wasmctl-guests-") // without one, it compiles itself
	err := p.begin()
	if err != nil {
		p.tidy()
		return nil, fmt.Errorf("start: %w", err)
	}
	return p, nil
}

// tidy removes what a process was given.
func (p *process) tidy() {
	if p.dir != "" {
		_ = os.RemoveAll(p.dir) // a later one has another name
	}
}

// begin starts the process.
func (p *process) begin() error {
	of := p.of
	in, err := json.Marshal(job{Memory: of.cfg.Memory, Dir: p.dir, CPUs: of.cfg.CPUs, Harden: of.cfg.Harden})
	if err != nil {
		return err
	}
	// One more than guests compute on: see cpus in cmd/wasmctl.
	p.cmd = subprocess.Command(context.Background(), Command, of.cfg.CPUs+1)
	p.cmd.Stdin, p.cmd.Stderr = bytes.NewReader(in), &p.trouble
	theirs, err := p.open()
	if err != nil {
		return err
	}
	defer func() { _ = theirs.Close() }()
	started := make(chan error)
	go p.run(started)
	if err := <-started; err != nil {
		_ = p.control.Close()
		return err
	}
	return nil
}

// run starts the process and waits for its end. The system ends the process with
// the thread that has started it, so that thread is kept.
func (p *process) run(started chan<- error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if err := p.cmd.Start(); err != nil {
		started <- err
		return
	}
	started <- nil
	p.end(p.cmd.Wait())
}

var errNoAnswer = errors.New("took no connection")
