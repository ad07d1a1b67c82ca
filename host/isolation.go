package host

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync/atomic"
	"time"
)

// Isolation gives modules a process of their own, in which ServeGuests runs: their
// instances are there, and everything else stays in this process, which answers
// what they ask for. So a guest that escapes from its sandbox is in a process
// that has nothing but its own memory. All methods are safe for concurrent use.
type Isolation interface {
	// Process returns the process, and starts one where none runs. It lives until
	// each caller has called Release.
	Process(ctx context.Context) (GuestProcess, error)
}

// GuestProcess is a process of an Isolation. All methods are safe for concurrent
// use.
type GuestProcess interface {
	// Connect returns a connection that ServeGuests serves there. It ends with
	// the process.
	Connect() (GuestConn, error)
	// Kill ends the process, because of what it has done, and returns why it has
	// ended.
	Kill(reason error) error
	// Ended returns why the process has ended, and nil while it runs.
	Ended() error
	// Dir is a directory of its own, in which it is given what it reads; empty where
	// there is none.
	Dir() string
	// Release gives it back.
	Release()
	// Stats returns its figures.
	Stats() ProcessStats
}

// GuestConn is a connection to a guest process: *net.UnixConn is one.
type GuestConn = duplex

// ProcessStats are figures of a guest process.
type ProcessStats struct {
	PID int
	// Memory is what is resident, in bytes; 0 where it is not known.
	Memory int64
}

// defaultIsolation is what Config.Isolation is where it is nil. Tests run with one.
var defaultIsolation Isolation

// loadLimit bounds loading code in a guest process, which may compile it.
const loadLimit = 5 * time.Minute

// remoteCode is code that is loaded in a guest process, and again in another
// where that has ended.
type remoteCode struct {
	isolation Isolation
	job       loadJob
	form      []byte // that is compiled
	// take calls a function with a directory, in another one, that has the compiled
	// code; nil where processes compile it.
	take func(in string, use func(dir string) error) error

	busy chan struct{} // has room for one: who loads

	proc GuestProcess // where it is loaded; nil before; the holder of busy changes it
	conn GuestConn    // by which it is
	live atomic.Pointer[GuestProcess]
}

// loadJob is frameLoad, beside the code.
type loadJob struct {
	ID        uint64 `json:"id"`
	Dir       string `json:"dir,omitempty"` // of compiled code; it is compiled there where it is not found
	Workers   int    `json:"workers"`
	MaxStack  int64  `json:"maxStack,omitempty"`
	StartSize int64  `json:"startSize"`
}

var lastCode atomic.Uint64

// isolated makes code that guest processes load. It is compiled beforehand where
// there is a directory to find it in; else each process does it.
func (c compiler) isolated(ctx context.Context, code *code, src *source) error {
	code.remote = &remoteCode{
		isolation: c.cfg.Isolation, form: src.form, busy: make(chan struct{}, 1),
		job: loadJob{
			ID: lastCode.Add(1), Workers: c.workers,
			MaxStack: code.maxStack, StartSize: code.startSize,
		},
	}
	if c.cfg.Compiler == nil || c.cfg.CacheDir == "" || len(src.form) <= maxHere {
		return validate(ctx, src.form)
	}
	code.remote.take = func(in string, use func(dir string) error) error { return c.taken(in, src, use) }
	var err error
	if !c.fromStore(ctx, code, src) {
		err = c.throughDir(ctx, code, src)
	}
	if err := code.closeLocal(ctx); err != nil {
		return err
	}
	if err == nil || ctx.Err() != nil || errors.Is(err, ErrInvalidModule) {
		return err
	}
	c.log.Warn("cannot compile the module beforehand; its guest process compiles it", "error", err)
	return validate(ctx, src.form)
}

// taken calls a function with a directory, in another one, that has what the cache has
// for a module.
func (c compiler) taken(in string, src *source, use func(dir string) error) error {
	return inPrivate(in, func(dir string) error {
		if _, err := c.store().Take(src.id, dir, nil); err != nil {
			c.untaken(err)
		}
		return use(dir)
	})
}

// connect returns a connection to a process in which the code is loaded. A process
// may end meanwhile, because of another module of its class: then it tries the
// next one.
func (r *remoteCode) connect(ctx context.Context) (proc GuestProcess, conn GuestConn, err error) {
	for range 3 {
		if proc, err = r.place(ctx); err == nil {
			if conn, err = proc.Connect(); err == nil {
				return proc, conn, nil
			}
		}
		if ctx.Err() != nil || errors.Is(err, errNotLoaded) {
			return nil, nil, err
		}
	}
	return nil, nil, fmt.Errorf("guest process: %w", err)
}

// place returns the guest process in which the code is loaded, and loads it
// there first.
func (r *remoteCode) place(ctx context.Context) (GuestProcess, error) {
	select {
	case r.busy <- struct{}{}:
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	defer func() { <-r.busy }()
	if r.proc != nil && r.proc.Ended() == nil {
		return r.proc, nil
	}
	r.leave()
	proc, err := r.isolation.Process(ctx)
	if err != nil {
		return nil, err
	}
	conn, err := r.load(ctx, proc)
	if err != nil {
		proc.Release()
		return nil, err
	}
	r.proc, r.conn = proc, conn
	r.live.Store(&proc)
	return proc, nil
}

// load has a process load the code.
func (r *remoteCode) load(ctx context.Context, proc GuestProcess) (_ GuestConn, err error) {
	conn, err := proc.Connect()
	if err != nil {
		return nil, err
	}
	defer context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Unix(1, 0)) })()
	defer func() {
		if err != nil {
			_ = conn.Close()
		}
	}()
	if err := conn.SetDeadline(time.Now().Add(loadLimit)); err != nil {
		return nil, err
	}
	c := &frameConn{conn: conn, limit: maxFrame}
	if r.take == nil || proc.Dir() == "" {
		err = r.send(c, "")
	} else if err = r.take(proc.Dir(), func(dir string) error { return r.send(c, dir) }); errors.Is(err, ErrCacheDir) {
		err = r.send(c, "") // the process compiles it
	}
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	if err != nil && !errors.Is(err, errNotLoaded) {
		err = proc.Kill(err)
	}
	if err != nil {
		return nil, err
	}
	return conn, nil
}

// send has the code loaded, with what a directory has of it.
func (r *remoteCode) send(c *frameConn, dir string) error {
	job := r.job
	job.Dir = dir
	head, err := json.Marshal(job)
	if err == nil {
		err = c.begin(frameLoad).text(string(head)).rest(r.form).send()
	}
	if err != nil {
		return err
	}
	return readLoaded(c)
}

// readLoaded reads the answer to frameLoad.
func readLoaded(c *frameConn) error {
	kind, f, err := c.read()
	if err != nil {
		return err
	}
	trouble := f.text(maxText)
	if kind != frameDone || f.end() != nil {
		return errFrame
	}
	if trouble != "" {
		return fmt.Errorf("%w: %s", errNotLoaded, trouble)
	}
	return nil
}

// errNotLoaded is the error of code that a guest process could not load.
var errNotLoaded = errors.New("the module cannot be loaded")

// leave unloads the code. The caller holds busy, or is the last one.
func (r *remoteCode) leave() {
	if r == nil || r.proc == nil {
		return
	}
	r.live.Store(nil)
	_ = r.conn.Close() // it was read to its end
	r.proc.Release()
	r.proc, r.conn = nil, nil
}

// GuestProcess returns the figures of the process in which the instances of the
// live revision are, and false where there is none.
func (m *Module) GuestProcess() (ProcessStats, bool) {
	r := m.last.Load().code.remote
	if r == nil {
		return ProcessStats{}, false
	}
	proc := r.live.Load()
	if proc == nil || (*proc).Ended() != nil {
		return ProcessStats{}, false
	}
	return (*proc).Stats(), true
}
