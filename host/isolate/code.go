// SPDX-License-Identifier: Apache-2.0

package isolate

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/wasmctl/wasmctl/host/load"
	"github.com/wasmctl/wasmctl/host/share"
	"github.com/wasmctl/wasmctl/internal/text"
)

// loadLimit bounds loading code in a guest process, which may compile it.
const loadLimit = 5 * time.Minute

// Code is code that is loaded in a guest process, and again in another one if that has
// ended.
type Code struct {
	*load.Code

	isolation Isolation
	account   *share.Account // is charged for the overhead of proc
	id        uint64
	workers   int
	busy      chan struct{} // a one-token semaphore: its holder may load

	proc Process // in which it is loaded; nil before; the holder of busy changes it
	conn Conn    // by which it is loaded
	live atomic.Pointer[Process]
}

// loadJob is frameLoad, in front of the code.
type loadJob struct {
	ID        uint64 `json:"id"`
	Dir       string `json:"dir,omitempty"` // with compiled code; if the code is not there, the process compiles it
	Workers   int    `json:"workers"`
	MaxStack  int64  `json:"maxStack,omitempty"`
	StartSize int64  `json:"startSize"`
}

var lastCode atomic.Uint64

// NewCode returns isolated code. The account is charged for the memory of its process. In a guest
// process, workers bounds the CPUs that compile it.
func NewCode(isolation Isolation, code *load.Code, workers int, account *share.Account) *Code {
	return &Code{Code: code, isolation: isolation, account: account, id: lastCode.Add(1), workers: workers, busy: make(chan struct{}, 1)}
}

// connect returns a connection to a process in which the code is loaded. A process may end
// meanwhile, because of another module of its class: then it tries the next one.
func (c *Code) connect(ctx context.Context) (proc Process, conn Conn, err error) {
	for range 3 {
		if proc, err = c.place(ctx); err == nil {
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

// place returns the guest process in which the code is loaded, and loads it there first.
func (c *Code) place(ctx context.Context) (Process, error) {
	select {
	case c.busy <- struct{}{}:
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	defer func() { <-c.busy }()
	if c.proc != nil && c.proc.Ended() == nil {
		return c.proc, nil
	}
	c.unload()
	proc, err := c.isolation.Process(ctx)
	if err != nil {
		return nil, err
	}
	if err := c.account.Take(proc.Overhead()); err != nil {
		proc.Release()
		return nil, err
	}
	conn, err := c.load(ctx, proc)
	if err != nil {
		c.account.Give(proc.Overhead())
		proc.Release()
		return nil, err
	}
	c.proc, c.conn = proc, conn
	c.live.Store(&proc)
	return proc, nil
}

// load has a process load the code.
func (c *Code) load(ctx context.Context, proc Process) (_ Conn, err error) {
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
	fc := &frameConn{conn: conn, limit: maxFrame}
	if !c.Stored() || proc.Dir() == "" {
		err = c.send(fc, "")
	} else if err = c.Take(proc.Dir(), func(dir string) error { return c.send(fc, dir) }); errors.Is(err, load.ErrCacheDir) {
		err = c.send(fc, "") // the process compiles it
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

// send has the code loaded, with a directory for its compiled form.
func (c *Code) send(fc *frameConn, dir string) error {
	head, err := json.Marshal(loadJob{ID: c.id, Dir: dir, Workers: c.workers, MaxStack: c.MaxStack, StartSize: c.StartSize})
	if err == nil {
		err = fc.begin(frameLoad).text(string(head)).rest(c.Form()).send()
	}
	if err != nil {
		return err
	}
	return readLoaded(fc)
}

// readLoaded reads the answer to frameLoad.
func readLoaded(c *frameConn) error {
	kind, f, err := c.read()
	if err != nil {
		return err
	}
	trouble := f.text(text.MaxError)
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

// unload unloads the code. The caller holds busy, or is the last user.
func (c *Code) unload() {
	if c.proc == nil {
		return
	}
	c.live.Store(nil)
	_ = c.conn.Close() // it was read to its end
	c.account.Give(c.proc.Overhead())
	c.proc.Release()
	c.proc, c.conn = nil, nil
}

// Close unloads the code, which has no instances anymore.
func (c *Code) Close(ctx context.Context) error {
	c.unload()
	return c.Code.Close(ctx)
}

// Stats returns the figures of the process in which the code is loaded, and false if there
// is none.
func (c *Code) Stats() (Stats, bool) {
	proc := c.live.Load()
	if proc == nil || (*proc).Ended() != nil {
		return Stats{}, false
	}
	return (*proc).Stats(), true
}
