// SPDX-License-Identifier: Apache-2.0

// Package guestprocess runs modules in processes of their own. A process is the same binary,
// started with a hidden command. It communicates over sockets that it inherits or receives, and has
// nothing else. It ends when its parent ends.
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
	"github.com/wasmctl/wasmctl/host/isolate"
)

// Command is the command of wasmctl that calls Serve.
const Command = "guests-for-run"

// Config configures a process.
type Config struct {
	// Memory is the memory that a process may allocate, in bytes: for guests, for compiled code,
	// and for Go's overhead of both. If zero, it is unlimited.
	Memory int64
	// Harden controls whether a process gives up network, programs and all files except its
	// directory of compiled code.
	Harden harden.Mode
	// CPUs is the number of guests that compute at the same time.
	CPUs int
}

// Classes has the guest processes, by class. Its methods are safe for concurrent use.
type Classes struct {
	cfg Config

	mu     sync.Mutex
	shared map[string]*Isolation // by class; guarded by mu
}

// New returns Classes for this binary, whose main must have Command.
func New(cfg Config) *Classes { return &Classes{cfg: cfg, shared: map[string]*Isolation{}} }

// Of returns the process of a class. Each call for "" returns another process.
func (c *Classes) Of(class string) isolate.Isolation {
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

// Isolation is one process at a time: after it ends, the next one is started. It implements
// isolate.Isolation.
type Isolation struct {
	cfg Config

	mu      sync.Mutex
	current *process  // nil if none is needed; guarded by mu
	users   int       // of current; guarded by mu
	deaths  int       // consecutive early ones; guarded by mu
	next    time.Time // when the next process may start; guarded by mu
}

// Limits on restarts of processes.
const (
	firstPause = 100 * time.Millisecond // after the second early death
	mostPause  = 10 * time.Second
	livedLong  = time.Minute // a process that lived this long did not die early
)

// Process implements isolate.Isolation.
func (i *Isolation) Process(ctx context.Context) (isolate.Process, error) {
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

// get returns a process and adds a user, or returns the time to wait.
func (i *Isolation) get() (isolate.Process, time.Duration, error) {
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

// died records the unexpected end of a process. The caller must hold mu.
func (i *Isolation) died(p *process) {
	i.current = nil
	if now := time.Now(); now.Sub(p.startedAt) < livedLong {
		i.deaths++
	} else {
		i.deaths = 1
	}
	i.next = time.Now().Add(pause(i.deaths))
}

// pause returns the time to wait after consecutive early deaths.
func pause(deaths int) time.Duration {
	if deaths < 2 {
		return 0
	}
	return min(mostPause, firstPause<<min(deaths-2, 10))
}

var errUnused = errors.New("is no longer needed")

// release removes a user. After the last one, it ends the process and waits for its end.
func (i *Isolation) release(p *process) {
	if i.leave(p) {
		_ = p.Kill(errUnused)
	}
}

// leave removes a user, and reports whether it was the last one of a live process.
func (i *Isolation) leave(p *process) bool {
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

// job is the input that a process reads from stdin.
type job struct {
	Memory int64  `json:"memory"`
	Dir    string `json:"dir,omitempty"`
	CPUs   int    `json:"cpus"`

	Harden harden.Mode `json:"harden"`
}

// start starts a process.
func start(of *Isolation) (*process, error) {
	p := &process{of: of, startedAt: time.Now(), ended: make(chan struct{})}
	p.dir, _ = os.MkdirTemp("", "wasmctl-guests-") // without a directory, the process compiles itself
	err := p.begin(namespaces)
	if err != nil { // the kernel, or the container, may not permit namespaces
		err = p.begin(0)
	}
	if err != nil {
		p.tidy()
		return nil, fmt.Errorf("start: %w", err)
	}
	return p, nil
}

// overhead is about the resident memory of a process with one module of the Go SDK, without the
// pages of the binary, which processes share, and without linear memory.
const overhead = 32 << 20

// Overhead implements isolate.Process.
func (p *process) Overhead() int64 { return overhead }

// tidy removes the files of a process.
func (p *process) tidy() {
	if p.dir != "" {
		_ = os.RemoveAll(p.dir) // the next process has another directory
	}
}

// begin starts the process, in new namespaces of these kinds.
func (p *process) begin(namespaces uintptr) error {
	of := p.of
	in, err := json.Marshal(job{Memory: of.cfg.Memory, Dir: p.dir, CPUs: of.cfg.CPUs, Harden: of.cfg.Harden})
	if err != nil {
		return err
	}
	// One more than the guests need: see cpus in cmd/wasmctl.
	p.cmd = subprocess.Command(context.Background(), Command, of.cfg.CPUs+1)
	p.cmd.Stdin, p.cmd.Stderr = bytes.NewReader(in), &p.trouble
	theirs, err := p.open(namespaces)
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

// run starts the process and waits for its end. The system ends the process together with the
// thread that started it, so this thread stays locked.
func (p *process) run(started chan<- error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if err := subprocess.Start(p.cmd); err != nil {
		started <- err
		return
	}
	started <- nil
	p.end(p.cmd.Wait())
}

var errNoAnswer = errors.New("took no connection")
