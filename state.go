// SPDX-License-Identifier: Apache-2.0

package wasmctl

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"runtime/debug"
	"slices"
	"sync"

	"github.com/wasmctl/wasmctl/host"
	"github.com/wasmctl/wasmctl/host/load"
	"github.com/wasmctl/wasmctl/host/share"
	"github.com/wasmctl/wasmctl/internal/failure"
	"github.com/wasmctl/wasmctl/internal/rollout"
	"github.com/wasmctl/wasmctl/internal/rollout/ledger"
	"github.com/wasmctl/wasmctl/internal/spill"
)

// storeLive stores the bytes of a module that is live and has passed its probation, so that a
// restart can run it even if its file then has a module that was rolled back.
func (rt *Runtime) storeLive(controller, digest string) {
	for _, c := range rt.Controllers() {
		m, ok := c.modules.get(digest)
		if !ok || c.Name() != controller {
			continue
		}
		wasm, err := m.Read(rt.ctx)
		if err == nil {
			err = ledger.Dir(rt.opts.StateDir).SetModule(controller, wasm)
		}
		if err != nil {
			rt.log.Warn("cannot store the live module for a restart", "controller", controller, "error", err.Error())
		}
	}
}

// storedModule is a module with its bytes. A restart needs these bytes, while the file may have
// others by then, such as those of a module that was rolled back.
type storedModule struct {
	name    string // of the module that the bytes come from
	digest  string
	wasm    *spill.Bytes
	signers []string       // the fingerprints of the keys that have signed the bytes
	account *share.Account // of the tenant, for bytes in memory; nil for modules of the operator
	garbage *garbage       // of the Runtime
}

// spilled is implemented by modules whose bytes are already outside of memory.
type spilled interface {
	Module
	digested

	Spilled() *spill.Bytes
}

// loadCopies is the memory of loading a module, in lengths of its bytes: they are read,
// rewritten to count their work, and decoded.
const loadCopies = 3

// maxGarbage is the memory of loads that may remain until it is collected, in bytes.
const maxGarbage = 64 << 20

// garbage is the memory that loads have used and not returned to the system. Go by itself would
// use as much again before it collects, which no account has. It is safe for concurrent use.
type garbage struct {
	mu    sync.Mutex
	bytes int64 // guarded by mu
}

// add adds the memory of a load that has ended, and collects it if there is too much.
func (g *garbage) add(bytes int64) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.bytes += bytes; g.bytes >= maxGarbage {
		g.bytes = 0
		debug.FreeOSMemory()
	}
}

// Borrow implements engine.Borrower: it reads the bytes, which are charged to the tenant until
// done is called.
func (h storedModule) Borrow(ctx context.Context) (wasm []byte, done func(), err error) {
	n := loadCopies * h.wasm.Size()
	if err := h.account.Take(n); err != nil {
		return nil, nil, fmt.Errorf("module[%s]: load: %w", h.name, err)
	}
	done = sync.OnceFunc(func() {
		h.garbage.add(n)
		h.account.Give(n)
	})
	if wasm, err = h.Read(ctx); err != nil {
		done()
	}
	return wasm, done, err
}

func (rt *Runtime) storeModule(m Module, wasm []byte, digest string, signers []string) storedModule {
	return storedModule{name: m.String(), digest: digest, wasm: rt.bytes.Put(digest, wasm), signers: signers, garbage: &rt.garbage}
}

// Read implements Module.
func (h storedModule) Read(context.Context) ([]byte, error) {
	wasm, err := h.wasm.Get()
	if err == nil && load.DigestOf(wasm) != h.digest {
		err = errors.New("its bytes in the directory for temporary files have changed")
	}
	if err != nil {
		return nil, failure.Module.Wrap(fmt.Errorf("module[%s]: %w", h.name, err))
	}
	return wasm, nil
}

// local implements local.
func (h storedModule) local() {}

// String implements Module.
func (h storedModule) String() string { return h.name }

// modules are the modules that were live or requested, and those that shadow the live one.
type modules struct {
	mu       sync.Mutex
	byDigest map[string]storedModule // guarded by mu
	shadows  map[string]*shadow      // by digest; guarded by mu
}

func (s *modules) get(digest string) (storedModule, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	m, ok := s.byDigest[digest]
	return m, ok
}

// add adds a module. While a controller runs, it removes modules without an open revision.
func (s *modules) add(h storedModule, open ...host.RevisionInfo) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(open) > 0 {
		maps.DeleteFunc(s.byDigest, func(digest string, _ storedModule) bool {
			return !slices.ContainsFunc(open, func(r host.RevisionInfo) bool { return r.Digest == digest })
		})
	}
	s.byDigest[h.digest] = h
}

// stored returns a module whose bytes are outside of memory, and remembers it.
func (c *Controller) stored(ctx context.Context, m Module) (storedModule, error) {
	switch m.(type) {
	case storedModule, spilled:
		return c.remember(m, nil), nil
	}
	wasm, err := m.Read(ctx)
	if err != nil {
		return storedModule{}, err
	}
	return c.remember(m, wasm), nil
}

// remember stores the bytes of a module for a restart, and removes those of modules without
// an open revision. wasm may be nil for a module whose bytes are outside of memory.
func (c *Controller) remember(m Module, wasm []byte) storedModule {
	h, ok := m.(storedModule)
	if s, known := m.(spilled); known {
		h = c.spilled(m, s)
	} else if !ok {
		digest := load.DigestOf(wasm)
		h = c.rt.storeModule(m, wasm, digest, c.proven(m, digest))
	}
	h.account = c.loadAccount()
	var open []host.RevisionInfo
	if e := c.life.View().Engine; e != nil && e.Module != nil {
		open = e.Module.Revisions()
	}
	c.modules.add(h, open...)
	return h
}

// spilled returns a module whose bytes are outside of memory in the form for loading it.
func (c *Controller) spilled(m Module, s spilled) storedModule {
	return storedModule{name: m.String(), digest: s.Digest(), wasm: s.Spilled(), signers: c.proven(m, s.Digest()), account: c.loadAccount(), garbage: &c.rt.garbage}
}

// loadAccount returns the account for the bytes of modules that are being loaded. It is nil if
// the controller has no tenant: then its modules are those of the operator.
func (c *Controller) loadAccount() *share.Account {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.options == nil || c.options.Tenant == "" {
		return nil
	}
	return share.NewAccount(c.rt.shared.Budget, c.options.Tenant, share.Modules)
}

// lastLive returns the bytes of the module that was live last, if there are any and the error
// reports that the wanted module was rolled back.
func (rt *Runtime) lastLive(err error) []byte {
	refused, ok := errors.AsType[*rollout.RolledBackError](err)
	if !ok || rt.opts.StateDir == "" {
		return nil
	}
	wasm, err := ledger.Dir(rt.opts.StateDir).Module(refused.Controller)
	if err != nil || wasm == nil || load.DigestOf(wasm) == refused.Digest {
		return nil
	}
	return wasm
}
