package wasmctl

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/wasmctl/wasmctl/host"
	"github.com/wasmctl/wasmctl/internal/engine"
	"github.com/wasmctl/wasmctl/internal/humanize"
	"github.com/wasmctl/wasmctl/runtime/admin"
)

// admit lets the controller begin, with what was loaded of it, as soon as the
// Runtime runs. After an error nothing is left of it.
func (c *Controller) admit(e *engine.Controller) error {
	c.rt.mu.Lock()
	defer c.rt.mu.Unlock()
	c.mu.Lock()
	refused := c.stopping || c.rt.stopped
	if !refused {
		c.admitted, c.loaded = true, e
	}
	c.mu.Unlock()
	if refused {
		return errors.Join(ErrStopping, release(e))
	}
	if c.rt.ctx != nil {
		c.begin()
	}
	return nil
}

// begin begins the life of the controller, if it is admitted; the Runtime's mu is
// held.
func (c *Controller) begin() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.admitted || c.end != nil || c.stopping {
		return
	}
	var ctx context.Context
	ctx, c.end = context.WithCancelCause(c.rt.ctx)
	c.rt.wg.Go(func() { c.run(ctx) })
}

// run is the life of the controller: it is tried until it starts, runs, and
// begins again where it is restarted.
func (c *Controller) run(ctx context.Context) {
	defer close(c.ended)
	defer c.rt.drop(c)
	c.mu.Lock()
	e, wait := c.loaded, minRetry
	c.loaded = nil
	c.mu.Unlock()
	for {
		var err error
		if e == nil {
			e, err = c.try(ctx)
		}
		c.tried(ctx, err)
		if err == nil {
			ctx, e, wait = c.serve(ctx, e), nil, minRetry
			if ctx == nil {
				return
			}
			continue
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(wait):
			wait = min(2*wait, maxRetry)
		}
	}
}

// try loads and starts once. After an error nothing is left.
func (c *Controller) try(ctx context.Context) (*engine.Controller, error) {
	m, o, err := c.source()
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	c.options = o
	if c.wanted != nil {
		m = c.wanted
	}
	if c.name == "" {
		c.name = cmp.Or(o.Name, NameOf(m))
	}
	c.mu.Unlock()
	for {
		e := engine.New(&c.rt.shared, c.engineOptions(&o, m), c.log, func(why string) { c.note(admin.PhaseWaiting, why, nil) })
		if c.native != nil {
			err = e.LoadNative(ctx, c.native.engine())
		} else {
			err = c.loadModule(ctx, e, m)
		}
		if err == nil {
			err = c.start(e)
		}
		if err == nil {
			return e, nil
		}
		err = errors.Join(err, e.Close())
		good := c.rt.kept(err)
		if good == nil {
			return nil, err
		}
		c.log.Warn("running the module that was live last", "reason", err.Error())
		m = c.rt.hold(m, good, host.DigestOf(good), nil)
	}
}

func (c *Controller) loadModule(ctx context.Context, e *engine.Controller, m Module) error {
	if _, ok := m.(local); !ok { // no other controller waits for a registry
		wasm, err := m.Read()
		if err != nil {
			return err
		}
		m = c.remember(nil, m, wasm) // who has signed it decides about its rights
	}
	end, err := c.rt.turns.take(ctx)
	if err != nil {
		return err
	}
	defer end()
	wasm, err := m.Read()
	if err != nil {
		return err
	}
	return e.Load(ctx, wasm, c.remember(nil, m, wasm).digest, end)
}

// start starts what is loaded.
func (c *Controller) start(e *engine.Controller) error {
	c.rt.starts.Lock() // names are checked one after the other
	defer c.rt.starts.Unlock()
	if err := c.rt.conflict(c, e); err != nil {
		return err
	}
	if err := e.Start(); err != nil {
		return err
	}
	c.mu.Lock()
	c.name, c.taken, c.wanted = e.Name(), e.Name(), nil
	c.mu.Unlock()
	c.note(admin.PhaseRunning, "", e)
	return nil
}

// tried records the result of an attempt.
func (c *Controller) tried(ctx context.Context, err error) {
	c.mu.Lock()
	first, before := !isOpen(c.first), c.message
	c.tryErr = err
	if first && ctx.Err() == nil {
		c.firstErr = err
	}
	c.mu.Unlock()
	if err != nil && ctx.Err() == nil {
		if before != err.Error() {
			c.log.Error("controller failed to start; retrying", "controller", c.Name(), "error", humanize.OneLine(err.Error()))
		}
		c.note(admin.PhaseFailed, err.Error(), nil)
	}
	if first {
		close(c.first)
	}
}

// note says how far the controller is; unless it runs, e is nil.
func (c *Controller) note(phase, message string, e *engine.Controller) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.phase != phase || c.message != message {
		c.since = time.Now()
	}
	c.phase, c.message, c.engine = phase, message, e
}

// serve runs the engine until it ends. It returns the context of the next one,
// nil where there is none.
func (c *Controller) serve(ctx context.Context, e *engine.Controller) context.Context {
	err := classed(e.Run(ctx, c.rt.force))
	restart := errors.Is(context.Cause(ctx), errRestart) && c.rt.ctx.Err() == nil
	c.mu.Lock()
	if m := e.Module; m != nil && c.wanted == nil { // a restart goes on with what is live
		if live, ok := c.modules[m.Digest()]; ok {
			c.wanted = live
		}
	}
	if restart = restart && !c.stopping; restart {
		ctx, c.end = context.WithCancelCause(c.rt.ctx)
	} else {
		c.err = err
	}
	c.mu.Unlock()
	if closeErr := e.Close(); closeErr != nil {
		c.log.Error("cannot close the module", "controller", e.Name(), "error", closeErr.Error())
	}
	c.note(admin.PhaseLoading, "", nil)
	if restart {
		if err != nil {
			c.log.Warn("controller did not stop cleanly", "controller", e.Name(), "error", err.Error())
		}
		return ctx
	}
	c.rt.ended(c, context.Cause(ctx), err)
	return nil
}

// ended notes the end of a controller.
func (rt *Runtime) ended(c *Controller, cause, err error) {
	stopped := errors.Is(cause, errStop)
	if err != nil && !stopped { // else it is Stop's
		rt.mu.Lock()
		rt.errs = append(rt.errs, err)
		rt.mu.Unlock()
	}
	if rt.ctx.Err() != nil {
		return
	}
	if err != nil {
		rt.log.Error("controller ended", "controller", c.Name(), "error", err.Error())
		return
	}
	rt.log.Info("controller ended", "controller", c.Name())
}

// discard ends a controller that has not begun.
func (c *Controller) discard() error {
	c.rt.drop(c)
	c.mu.Lock()
	e, admitted := c.loaded, c.admitted
	c.loaded = nil
	c.mu.Unlock()
	if admitted { // else who loads it does
		close(c.ended)
	}
	return release(e)
}

// release gives up what was started and is not run; nil is nothing.
func release(e *engine.Controller) error {
	if e == nil {
		return nil
	}
	e.Release()
	return e.Close()
}
