// SPDX-License-Identifier: Apache-2.0

package guestprocess

import (
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/wasmctl/wasmctl/cmd/wasmctl/internal/subprocess"
	"github.com/wasmctl/wasmctl/host/isolate"
	"github.com/wasmctl/wasmctl/internal/humanize"
)

// Supported reports whether this system has guest processes.
const Supported = true

// controlFD is the socket that a process inherits. It passes the other sockets.
const controlFD = 3

// namespaces are those of a process: it sees no other process and no IPC object. Only the user who
// has started it is in its user namespace, where it has no capabilities after the start.
const namespaces = syscall.CLONE_NEWUSER | syscall.CLONE_NEWPID | syscall.CLONE_NEWIPC

// connectLimit is the time within which a process must accept a connection.
const connectLimit = 10 * time.Second

// process is one guest process. It implements isolate.Process.
type process struct {
	of        *Isolation
	cmd       *exec.Cmd
	trouble   subprocess.Head // what it has printed; read after its end
	startedAt time.Time
	dir       string // the directory that the process reads; empty for none

	mu      sync.Mutex    // locked while a connection is sent
	control *net.UnixConn // writes are guarded by mu

	once  sync.Once // sets cause
	cause error     // why it was killed; read after ended
	ended chan struct{}
	why   error // written before ended is closed
}

// open creates the socket that the process inherits, and sets how the system starts and ends it.
func (p *process) open(namespaces uintptr) (*os.File, error) {
	mine, theirs, err := pair()
	if err != nil {
		return nil, err
	}
	p.control = mine
	p.cmd.ExtraFiles = []*os.File{theirs}
	p.cmd.SysProcAttr.Pdeathsig, p.cmd.SysProcAttr.Cloneflags = syscall.SIGKILL, namespaces
	return theirs, nil
}

// pair creates a connection.
func pair() (mine *net.UnixConn, theirs *os.File, err error) {
	fds, err := syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC|syscall.SOCK_NONBLOCK, 0)
	if err != nil {
		return nil, nil, os.NewSyscallError("socketpair", err)
	}
	if mine, err = connOf(fds[0]); err != nil {
		_ = syscall.Close(fds[1])
		return nil, nil, err
	}
	return mine, os.NewFile(uintptr(fds[1]), "guest process"), nil //nolint:gosec // not negative
}

// connOf takes over a socket.
func connOf(fd int) (*net.UnixConn, error) {
	f := os.NewFile(uintptr(fd), "guest process") //nolint:gosec // not negative
	if f == nil {
		return nil, os.ErrInvalid
	}
	defer func() { _ = f.Close() }() // the connection has a duplicate
	c, err := net.FileConn(f)
	if err != nil {
		return nil, err
	}
	u, ok := c.(*net.UnixConn)
	if !ok {
		_ = c.Close()
		return nil, os.ErrInvalid
	}
	return u, nil
}

// Connect implements isolate.Process.
func (p *process) Connect() (isolate.Conn, error) {
	mine, theirs, err := pair()
	if err != nil {
		return nil, err
	}
	defer func() { _ = theirs.Close() }()
	p.mu.Lock()
	defer p.mu.Unlock()
	if err = p.control.SetWriteDeadline(time.Now().Add(connectLimit)); err == nil {
		_, _, err = p.control.WriteMsgUnix([]byte{0}, syscall.UnixRights(int(theirs.Fd())), nil)
	}
	if err == nil {
		return mine, nil
	}
	_ = mine.Close()
	if errors.Is(err, os.ErrDeadlineExceeded) {
		err = errNoAnswer
	}
	return nil, p.Kill(err)
}

// Kill implements isolate.Process.
func (p *process) Kill(reason error) error {
	p.once.Do(func() { p.cause = reason })
	_ = p.cmd.Process.Kill() // it may already have ended
	<-p.ended
	return p.why
}

// end records the end of the process.
func (p *process) end(err error) {
	p.once.Do(func() {})
	state := "exit status 0"
	if err != nil {
		state = err.Error()
	}
	if text := strings.TrimSpace(string(p.trouble.Bytes)); text != "" {
		state += ": " + humanize.FirstLine(text)
	}
	p.why = fmt.Errorf("process %d has ended: %s", p.cmd.Process.Pid, state)
	if p.cause != nil {
		p.why = fmt.Errorf("process %d %w (%s)", p.cmd.Process.Pid, p.cause, state)
	}
	_ = p.control.Close()
	p.tidy()
	close(p.ended)
}

// Ended implements isolate.Process.
func (p *process) Ended() error {
	select {
	case <-p.ended:
		return p.why
	default:
		return nil
	}
}

// Dir implements isolate.Process.
func (p *process) Dir() string { return p.dir }

// Release implements isolate.Process.
func (p *process) Release() { p.of.release(p) }

// Stats implements isolate.Process.
func (p *process) Stats() isolate.Stats {
	st := isolate.Stats{PID: p.cmd.Process.Pid}
	b, err := os.ReadFile("/proc/" + strconv.Itoa(st.PID) + "/statm")
	if words := strings.Fields(string(b)); err == nil && len(words) > 1 {
		pages, _ := strconv.ParseInt(words[1], 10, 64) // 0 if it is unknown
		st.Memory = pages * int64(os.Getpagesize())
	}
	return st
}
