// SPDX-License-Identifier: Apache-2.0

package wasmctl

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/wasmctl/wasmctl/host/load"
	"github.com/wasmctl/wasmctl/internal/engine"
	"github.com/wasmctl/wasmctl/internal/humanize"
)

// loader loads the engine of a controller's life. It implements engine.Source.
type loader struct{ *Controller }

// Load implements engine.Source. After an error nothing remains.
func (l loader) Load(ctx context.Context, digest string, waits func(why string)) (a engine.Attempt) {
	c := l.Controller
	m, o, err := c.read()
	if err != nil {
		return engine.Attempt{Err: err}
	}
	if known, ok := c.modules.get(digest); ok {
		m = known
	}
	c.secrets.LearnTexts(o.Secrets)
	o.Default()
	c.mu.Lock()
	c.name = cmp.Or(c.name, o.Name, NameOf(m))
	c.mu.Unlock()
	options, err := c.engineOptions(&o, m)
	if err != nil {
		return engine.Attempt{Err: err}
	}
	e := engine.New(&c.rt.shared, options, c.log, waits)
	if c.native != nil {
		err = e.LoadNative(ctx, c.native.engine())
	} else {
		a.Digest, err = c.loadModule(ctx, e, m, o.Tenant)
	}
	if err == nil {
		err = c.start(e)
	}
	if err == nil {
		a.Controller = e
		return a
	}
	a.Err = errors.Join(err, e.Close())
	if good := c.rt.lastLive(err); good != nil {
		a.LastLive = load.DigestOf(good)
		c.modules.add(c.rt.storeModule(m, good, a.LastLive, nil))
	}
	return a
}

// Borrow implements engine.Source.
func (l loader) Borrow(ctx context.Context, digest string) (wasm []byte, done func(), err error) {
	m, ok := l.modules.get(digest)
	if !ok {
		return nil, nil, fmt.Errorf("module[%s]: is no longer stored: swap it in again", humanize.Digest(digest))
	}
	return m.Borrow(ctx)
}

// read returns the module and the options that are wanted.
func (c *Controller) read() (Module, ControllerOptions, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.wanted != nil {
		return c.wanted, *c.options, nil
	}
	c.mu.Unlock() // the source may take long, and may log
	m, o, err := c.source()
	c.mu.Lock()
	switch {
	case err != nil:
	case c.wanted != nil: // Want was called in the meantime
		return c.wanted, *c.options, nil
	default:
		c.options = &o
	}
	return m, o, err
}

// loadModule loads the module into e, in a turn of the tenant. It returns the digest of the
// module, if it could be read.
func (c *Controller) loadModule(ctx context.Context, e *engine.Controller, m Module, tenant string) (digest string, err error) {
	if _, ok := m.(local); !ok { // do not hold a turn while reading from a registry
		if m, err = c.stored(ctx, m); err != nil { // its signers decide about its rights
			return "", err
		}
	}
	end, err := c.rt.turns.take(ctx, tenant)
	if err != nil {
		return "", err
	}
	defer end()
	wasm, done, err := borrow(ctx, m)
	if err != nil {
		return "", err
	}
	defer done()
	digest = c.remember(m, wasm).digest
	if err := c.rt.refusals.find(time.Now(), tenant, digest); err != nil {
		return digest, err
	}
	loaded := func() {
		end()
		done()
	}
	if err = e.Load(ctx, wasm, digest, loaded); errors.Is(err, load.ErrUncompiled) {
		c.rt.refusals.add(time.Now(), tenant, digest, err)
	}
	return digest, err
}

// borrow reads the bytes of a module, which are charged to its tenant until done is called.
func borrow(ctx context.Context, m Module) (wasm []byte, done func(), err error) {
	if h, ok := m.(storedModule); ok {
		return h.Borrow(ctx)
	}
	wasm, err = m.Read(ctx)
	return wasm, func() {}, err
}

// start starts a loaded engine.
func (c *Controller) start(e *engine.Controller) error {
	c.rt.starts.Lock() // names are checked one at a time
	defer c.rt.starts.Unlock()
	if err := c.rt.conflict(c, e); err != nil {
		return err
	}
	if err := e.Start(); err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.name, c.taken = e.Name(), e.Name()
	if c.judge == nil && c.rt.hooks != nil && c.native == nil {
		c.judge = newJudge(c, e)
	}
	return nil
}

// conflict returns an error if another controller has the name or the finalizer of a
// controller that starts. A name stays reserved until its controller has ended, including
// restarts, because its rights and its field manager depend on it. A name in the options
// takes precedence over a name in a manifest.
func (rt *Runtime) conflict(by *Controller, e *engine.Controller) error {
	for _, c := range rt.Controllers() {
		if c == by {
			continue
		}
		if name := e.Name(); c.started(name) || c.named(name) && !by.named(name) {
			return fmt.Errorf("controller[%s]: %w", e.Name(), ErrNameTaken)
		}
		if o := c.life.View().Engine; o != nil {
			if f := e.SharesFinalizer(o); f != "" {
				return fmt.Errorf("controller[%s]: finalizer %s: controller[%s] sets it on objects of the same kind: use another name, or other namespaces", e.Name(), f, o.Name())
			}
		}
	}
	return nil
}

// admit lets a controller begin as soon as the Runtime runs, with its loaded engine, if
// there is one. After an error nothing remains of it.
func (rt *Runtime) admit(c *Controller, e *engine.Controller) error {
	rt.mu.Lock()
	defer rt.mu.Unlock()
	if rt.stopped || !c.life.Admit() {
		if e != nil {
			e.Release()
			return errors.Join(ErrStopping, e.Close())
		}
		return ErrStopping
	}
	rt.wg.Go(func() {
		defer rt.remove(c)
		err := c.life.Run(rt.ctx, rt.begun, rt.force, e)
		rt.ended(c, err)
	})
	return nil
}

// ended records the end of a controller.
func (rt *Runtime) ended(c *Controller, err error) {
	if err != nil && !c.life.Stopped() { // otherwise Stop returns the error
		rt.mu.Lock()
		rt.errs = append(rt.errs, err)
		rt.mu.Unlock()
	}
	if r := rt.shared.Registrar; r != nil && rt.ctx.Err() == nil {
		r.Release(rt.ctx, c.Name())
	}
	switch {
	case rt.ctx.Err() != nil || !isOpen(rt.begun):
	case err != nil:
		rt.log.Error("controller ended", "controller", c.Name(), "error", err.Error())
	default:
		rt.log.Info("controller ended", "controller", c.Name())
	}
}
