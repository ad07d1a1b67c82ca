// SPDX-License-Identifier: Apache-2.0

package wasmctl

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"

	"github.com/wasmctl/wasmctl/host"
	"github.com/wasmctl/wasmctl/host/load"
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
	signers []string // the fingerprints of the keys that have signed the bytes
}

func (rt *Runtime) storeModule(m Module, wasm []byte, digest string, signers []string) storedModule {
	return storedModule{m.String(), digest, rt.bytes.Put(digest, wasm), signers}
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

func newModules() modules {
	return modules{byDigest: map[string]storedModule{}, shadows: map[string]*shadow{}}
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

// remember stores the bytes of a module for a restart, and removes those of modules without
// an open revision.
func (c *Controller) remember(m Module, wasm []byte) storedModule {
	h, ok := m.(storedModule)
	if !ok {
		digest := load.DigestOf(wasm)
		h = c.rt.storeModule(m, wasm, digest, c.proven(m, digest))
	}
	var open []host.RevisionInfo
	if e := c.life.View().Engine; e != nil && e.Module != nil {
		open = e.Module.Revisions()
	}
	c.modules.add(h, open...)
	return h
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
