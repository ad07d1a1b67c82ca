// SPDX-License-Identifier: Apache-2.0

package isolate

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"time"

	"github.com/wasmctl/wasmctl/host/internal/instance"
	"github.com/wasmctl/wasmctl/host/load"
	"github.com/wasmctl/wasmctl/host/operation"
	"github.com/wasmctl/wasmctl/host/share"
	"github.com/wasmctl/wasmctl/internal/text"
)

// Serve is a guest process: it has code and instances for the host of an Isolation, on
// connections that accept returns, until that fails. It needs only these, and read access to
// the directory of compiled code. Guests compute on this many CPUs at once.
func Serve(accept func() (Conn, error), cpus int) error {
	return ServeObserved(accept, cpus, func(Conn, *instance.Local) {})
}

// ServeObserved is Serve that calls made before each new guest starts.
func ServeObserved(accept func() (Conn, error), cpus int, made func(Conn, *instance.Local)) error {
	s := &server{codes: map[uint64]*users{}, modules: map[string]*module{}, cpus: share.NewCPUScheduler(cpus), made: made}
	for {
		conn, err := accept()
		if err != nil {
			return err
		}
		go s.serve(conn)
	}
}

// server is a guest process.
type server struct {
	cpus *share.CPUScheduler
	made func(Conn, *instance.Local)

	mu      sync.Mutex
	codes   map[uint64]*users  // guarded by mu
	modules map[string]*module // guarded by mu
}

// users is code with the number of its users: the connection that has loaded it, and
// instances.
type users struct {
	*load.Code

	n int // guarded by server.mu
}

// module is what the instances of a module share.
type module struct {
	share.Module

	instances int // guarded by server.mu
}

// serve serves one connection, whose subject lives as long.
func (s *server) serve(conn Conn) {
	defer func() { _ = conn.Close() }() // the host has read everything
	c := &frameConn{conn: conn, limit: maxLoad}
	kind, f, err := c.read()
	if err != nil {
		return
	}
	switch kind {
	case frameLoad:
		s.serveCode(c, &f)
	case frameNew:
		s.serveInstance(c, &f)
	default: // the host is trusted, so this is a mistake in this package
		_ = c.begin(frameDone).text(fmt.Sprintf("BUG: unexpected message %d", kind)).send()
	}
}

// serveCode has code until the connection ends.
func (s *server) serveCode(c *frameConn, f *fields) {
	var job loadJob
	err := json.Unmarshal([]byte(f.text(text.MaxError)), &job)
	var code *load.Code
	if err == nil {
		loading := load.Loading{Form: f.rest(), Dir: job.Dir, Workers: job.Workers, MaxStack: job.MaxStack, StartSize: job.StartSize, Link: instance.HostFunc}
		code, err = loading.Load(context.Background())
	}
	if err != nil {
		_ = c.begin(frameDone).text(text.Ends(err.Error(), text.MaxError)).send()
		return
	}
	c.in = nil // it can have megabytes
	u := &users{Code: code, n: 1}
	s.mu.Lock()
	s.codes[job.ID] = u
	s.mu.Unlock()
	if c.begin(frameDone).text("").send() == nil {
		_, _, _ = c.read() // until the end
	}
	s.mu.Lock()
	delete(s.codes, job.ID)
	s.mu.Unlock()
	s.leave(u)
}

// leave ends a use of code, and closes it after the last.
func (s *server) leave(u *users) {
	s.mu.Lock()
	u.n--
	last := u.n == 0
	s.mu.Unlock()
	if last {
		_ = u.Close(context.Background()) // its memory is returned, or the process ends soon
	}
}

// spec returns the spec of a new instance, with a use of its code; nil if the code is not
// there.
func (s *server) spec(job *newJob) (_ *instance.Spec, release func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	u := s.codes[job.Code]
	if u == nil {
		return nil, nil
	}
	u.n++
	m := s.modules[job.Module]
	if m == nil {
		m = &module{}
		s.modules[job.Module] = m
	}
	m.instances++
	return job.spec(u.Code, &m.Module, s.cpus), func() {
		s.mu.Lock()
		if m.instances--; m.instances == 0 {
			delete(s.modules, job.Module)
		}
		s.mu.Unlock()
		s.leave(u)
	}
}

// spec returns the spec of an instance.
func (j *newJob) spec(code *load.Code, module *share.Module, cpus *share.CPUScheduler) *instance.Spec {
	env := &operation.Env{Name: j.Program, Limits: j.Limits, Share: module, Log: discard, Account: share.NewAccount(nil, "", share.Operations)}
	if j.Metric {
		env.Metric = unsupported
	}
	return &instance.Spec{Env: env, Code: code, Program: j.Program, Slice: j.Slice, CPUs: cpus, Clock: operation.Clock{}.WithDefaults(time.Now())}
}
