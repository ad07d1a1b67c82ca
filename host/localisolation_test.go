package host

import (
	"context"
	"fmt"
	"net"
	"os"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
)

// localIsolation has guest processes that are goroutines of this one, so that the
// tests of this package can run with each connection being real.
type localIsolation struct {
	// serve is ServeGuests where it is nil.
	serve func(accept func() (GuestConn, error))

	mu   sync.Mutex
	last *localProcess // guarded by mu
}

func (l *localIsolation) Process(context.Context) (GuestProcess, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.last == nil || l.last.Ended() != nil {
		p := &localProcess{accepts: make(chan GuestConn), ended: make(chan struct{})}
		l.last = p
		serve := l.serve
		if serve == nil {
			serve = func(accept func() (GuestConn, error)) {
				s := newGuestServer(2)
				s.made = func(c GuestConn, in *instance) { p.instances.Store(c, in) }
				_ = s.serveAll(accept)
			}
		}
		go serve(p.accept)
	}
	return l.last, nil
}

type localProcess struct {
	accepts chan GuestConn
	ended   chan struct{}
	// theirs has the other end of each connection, instances the instance that is
	// served at that.
	theirs, instances sync.Map

	mu    sync.Mutex
	why   error           // guarded by mu
	conns []*net.UnixConn // guarded by mu
}

func (p *localProcess) accept() (GuestConn, error) {
	select {
	case c := <-p.accepts:
		return c, nil
	case <-p.ended:
		return nil, net.ErrClosed
	}
}

func (p *localProcess) Connect() (GuestConn, error) {
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
	p.theirs.Store(mine, theirs)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.conns = append(p.conns, theirs)
	return mine, nil
}

func unixConn(fd int) *net.UnixConn {
	f := os.NewFile(uintptr(fd), "socket")
	defer func() { _ = f.Close() }()
	c, err := net.FileConn(f)
	if err != nil {
		panic(err)
	}
	return c.(*net.UnixConn)
}

func (p *localProcess) Kill(reason error) error {
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

func (p *localProcess) Ended() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.why
}

func (p *localProcess) Dir() string         { return "" }
func (p *localProcess) Release()            {}
func (p *localProcess) Stats() ProcessStats { return ProcessStats{PID: os.Getpid()} }

// inGuest is an instance where its guest is: itself, or one in a guest process.
func inGuest(in *instance) *instance {
	if in.remote == nil {
		return in
	}
	p := in.remote.proc.(*localProcess)
	theirs, _ := p.theirs.Load(in.remote.conn.conn)
	there, _ := p.instances.Load(theirs)
	return there.(*instance)
}

// inBubble is synctest.Test. Connections are outside of bubbles.
func inBubble(t *testing.T, f func(*testing.T)) {
	if defaultIsolation != nil {
		t.Skip("SKIPPED: in virtual time connections do not work")
	}
	synctest.Test(t, f)
}

// inThisProcess skips a test of what holds for guests in this process: its clocks,
// its cache of code, its heap.
func inThisProcess(t *testing.T) {
	t.Helper()
	if defaultIsolation != nil {
		t.Skip("SKIPPED: holds for guests in this process")
	}
}
