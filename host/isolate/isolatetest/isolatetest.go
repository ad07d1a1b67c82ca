// SPDX-License-Identifier: Apache-2.0

// Package isolatetest has guest processes that are goroutines of this process, for tests.
// Their connections are real.
package isolatetest

import (
	"context"
	"fmt"
	"net"
	"os"
	"sync"
	"syscall"

	"github.com/wasmctl/wasmctl/host/internal/instance"
	"github.com/wasmctl/wasmctl/host/isolate"
)

// Isolation implements isolate.Isolation.
type Isolation struct {
	// Serve serves the connections of a process. If nil, it is isolate.Serve.
	Serve func(accept func() (isolate.Conn, error))

	// Overhead is that of the processes.
	Overhead int64

	mu   sync.Mutex
	last *Process // guarded by mu
}

// Process implements isolate.Isolation.
func (l *Isolation) Process(context.Context) (isolate.Process, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.last == nil || l.last.Ended() != nil {
		p := &Process{overhead: l.Overhead, accepts: make(chan isolate.Conn), ended: make(chan struct{})}
		l.last = p
		serve := l.Serve
		if serve == nil {
			serve = func(accept func() (isolate.Conn, error)) {
				_ = isolate.ServeObserved(accept, 2, func(c isolate.Conn, guest *instance.Local) { p.guests.Store(c, guest) })
			}
		}
		go serve(p.accept)
	}
	return l.last, nil
}

// Last returns the process that was started last.
func (l *Isolation) Last() *Process {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.last
}

// Process implements isolate.Process.
type Process struct {
	overhead int64

	accepts chan isolate.Conn
	ended   chan struct{}
	// theirs has the other end of each connection, and guests the guest that is served there.
	theirs, guests sync.Map

	mu    sync.Mutex
	why   error           // guarded by mu
	conns []*net.UnixConn // guarded by mu
}

func (p *Process) accept() (isolate.Conn, error) {
	select {
	case c := <-p.accepts:
		return c, nil
	case <-p.ended:
		return nil, net.ErrClosed
	}
}

// Connect implements isolate.Process.
func (p *Process) Connect() (isolate.Conn, error) {
	fds, err := syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	mine, theirs := unixConn(fds[0]), unixConn(fds[1])
	select {
	case p.accepts <- theirs:
	case <-p.ended:
		return nil, p.Ended()
	}
	p.theirs.Store(isolate.Conn(mine), theirs)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.conns = append(p.conns, theirs)
	return mine, nil
}

func unixConn(fd int) *net.UnixConn {
	f := os.NewFile(uintptr(fd), "socket")
	defer func() { _ = f.Close() }() // the connection has a copy
	c, err := net.FileConn(f)
	if err != nil {
		panic(err)
	}
	return c.(*net.UnixConn)
}

// Kill implements isolate.Process.
func (p *Process) Kill(reason error) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.why != nil {
		return p.why
	}
	p.why = fmt.Errorf("killed: %w", reason)
	close(p.ended)
	for _, c := range p.conns {
		_ = c.Close()
	}
	return p.why
}

// Ended implements isolate.Process.
func (p *Process) Ended() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.why
}

// Dir implements isolate.Process.
func (p *Process) Dir() string { return "" }

// Release implements isolate.Process.
func (p *Process) Release() {}

// Overhead implements isolate.Process.
func (p *Process) Overhead() int64 { return p.overhead }

// Stats implements isolate.Process.
func (p *Process) Stats() isolate.Stats { return isolate.Stats{PID: os.Getpid()} }

// Guest returns the guest behind that of an instance: itself, or the one in a guest process.
func (l *Isolation) Guest(in *instance.Instance) *instance.Local {
	if local, ok := in.Guest().(*instance.Local); ok {
		return local
	}
	p := l.Last()
	theirs, _ := p.theirs.Load(in.Guest().(interface{ Conn() isolate.Conn }).Conn())
	guest, _ := p.guests.Load(theirs)
	return guest.(*instance.Local)
}
