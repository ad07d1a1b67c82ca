package wasmctl

import (
	"errors"
	"fmt"

	"github.com/wasmctl/wasmctl/host"
	"github.com/wasmctl/wasmctl/internal/aside"
	"github.com/wasmctl/wasmctl/internal/engine"
	"github.com/wasmctl/wasmctl/internal/failure"
	"github.com/wasmctl/wasmctl/internal/rollout"
	"github.com/wasmctl/wasmctl/internal/rollout/ledger"
)

// keep keeps the bytes of a module that is live and not on probation, so that a
// restart has them although its file has a module that was rolled back.
func (rt *Runtime) keep(controller, digest string) {
	for _, c := range rt.Controllers() {
		c.mu.Lock()
		m, ok := c.modules[digest]
		ok = ok && c.name == controller
		c.mu.Unlock()
		if !ok {
			continue
		}
		wasm, err := m.Read()
		if err == nil {
			err = ledger.Dir(rt.opts.StateDir).SetModule(controller, wasm)
		}
		if err != nil {
			rt.log.Warn("cannot keep the live module for a restart", "controller", controller, "error", err.Error())
		}
	}
}

// held is a module with its bytes: its file may have others by the time that a
// restart needs them, such as those of one that was rolled back.
type held struct {
	name    string // of the module that they come from
	digest  string
	wasm    *aside.Bytes
	signers []string // who has signed these
}

func (rt *Runtime) hold(m Module, wasm []byte, digest string, signers []string) held {
	return held{m.String(), digest, rt.bytes.Put(digest, wasm), signers}
}

// Read implements Module.
func (h held) Read() ([]byte, error) {
	wasm, err := h.wasm.Get()
	if err == nil && host.DigestOf(wasm) != h.digest {
		err = errors.New("its bytes have changed on the disk of the directory for temporary files")
	}
	if err != nil {
		return nil, failure.Module.Wrap(fmt.Errorf("module[%s]: %w", h.name, err))
	}
	return wasm, nil
}

// local implements local.
func (h held) local() {}

// String implements Module.
func (h held) String() string { return h.name }

// remember keeps the bytes of a module for a restart, and forgets those of
// modules that are gone.
func (c *Controller) remember(e *engine.Controller, m Module, wasm []byte) held {
	h, ok := m.(held)
	if !ok {
		digest := host.DigestOf(wasm)
		h = c.rt.hold(m, wasm, digest, c.proven(m, digest))
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	open := map[string]held{h.digest: h}
	if e != nil && e.Module != nil {
		for _, g := range e.Module.Revisions() {
			if known, ok := c.modules[g.Digest]; ok {
				open[g.Digest] = known
			}
		}
	}
	c.modules = open
	return h
}

// kept returns the bytes of the module that was live last, where the error says
// that the wanted one was rolled back, and there are any.
func (rt *Runtime) kept(err error) []byte {
	refused, ok := errors.AsType[*rollout.RolledBackError](err)
	if !ok || rt.opts.StateDir == "" {
		return nil
	}
	wasm, err := ledger.Dir(rt.opts.StateDir).Module(refused.Controller)
	if err != nil || wasm == nil || host.DigestOf(wasm) == refused.Digest {
		return nil
	}
	return wasm
}
