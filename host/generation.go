package host

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/experimental"
	"github.com/tetratelabs/wazero/imports/wasi_snapshot_preview1"

	"github.com/wasmctl/wasmctl/abi"
)

// compilationWorkers bounds the processors that compiling takes from guests
// that run meanwhile. With one, wazero would not look at the context.
const compilationWorkers = 2

// generation is one set of bytes that a Module serves. It owns a wazero
// runtime of its own, so that closing one generation cannot touch another.
type generation struct {
	number   uint64 // from 1
	digest   string
	name     string
	cfg      Config // with defaults
	limits   Limits
	manifest *abi.Manifest
	caps     []string
	// settings are those that new guests get; they are replaced as a whole.
	settings atomic.Pointer[settings]
	api      API // nil: api_* answer UNSUPPORTED
	hooks    map[string]bool
	log      *slog.Logger // with controller and generation
	shared   *shared

	runtime  wazero.Runtime
	cache    wazero.CompilationCache // nil where there is none
	compiled wazero.CompiledModule

	// startSize is the memory that an instance starts with, in bytes.
	startSize int64
	// slots are those of reconciles, hookSlots those of map, filter and
	// configure.
	slots, hookSlots slots
	mu               sync.Mutex
	idle             []*instance // guarded by mu; the last one used is the last

	// refs is 1 for being current and 1 per acquired guest; at 0 everything is
	// closed and it never rises again.
	refs atomic.Int64
	// retired is closed when no guest may be acquired any more, closed when
	// everything was returned.
	retired, closed chan struct{}
	closeErr        error // written before closed is closed
}

// shared is what the generations of one module have in common.
type shared struct {
	draining    atomic.Bool
	unknownKeys atomic.Uint64
	warnUnknown sync.Once
}

// compile makes a generation out of bytes that passed all checks. It has no
// manifest yet, and one reference.
func compile(ctx context.Context, wasm []byte, bin *binaryModule, cfg Config) (*generation, error) {
	g := &generation{
		number: 1, cfg: cfg, name: cfg.NameFor(nil), shared: &shared{},
		hooks: map[string]bool{}, retired: make(chan struct{}), closed: make(chan struct{}), hookSlots: make(slots, hookSlots),
	}
	if mem := bin.memory(); mem != nil {
		g.startSize = mem.Min
	}
	cfg.Budget.join(g)
	g.refs.Store(1)
	g.configure(nil)
	ctx = experimental.WithCompilationWorkers(ctx, compilationWorkers)
	if err := g.compileCached(ctx, boundTables(wasm, bin)); err != nil {
		g.close(ctx)
		if ctx.Err() != nil {
			return nil, fmt.Errorf("module[%s]: compile: %w", g.name, ctx.Err())
		}
		return nil, invalid(g.name, err)
	}
	if err := g.linkImports(ctx, bin); err != nil {
		g.close(ctx)
		return nil, fmt.Errorf("module[%s]: host functions: %w", g.name, err)
	}
	for _, e := range abi.Exports {
		g.hooks[e.Name] = bin.exportsFunc(e.Name)
	}
	return g, nil
}

// compileCached compiles through the cache directory. A directory that cannot
// be read or written costs time, never the module.
func (g *generation) compileCached(ctx context.Context, wasm []byte) (err error) {
	if g.cfg.CacheDir == "" {
		g.newRuntime(ctx, nil)
		g.compiled, err = compileSafely(ctx, g.runtime, wasm)
		return err
	}
	cache, cacheErr := wazero.NewCompilationCacheWithDir(g.cfg.CacheDir)
	if cacheErr == nil {
		g.newRuntime(ctx, cache)
		if g.compiled, cacheErr = compileSafely(ctx, g.runtime, wasm); cacheErr == nil || ctx.Err() != nil {
			return cacheErr
		}
		// Where only writing failed, the code is in memory already.
		if g.compiled, err = compileSafely(ctx, g.runtime, wasm); err == nil {
			g.warnCache(cacheErr)
			return nil
		}
		_ = g.closeRuntime(ctx) // it has compiled nothing
	}
	g.newRuntime(ctx, nil)
	if g.compiled, err = compileSafely(ctx, g.runtime, wasm); err == nil {
		g.warnCache(cacheErr)
	}
	return err
}

func (g *generation) warnCache(err error) {
	g.log.Warn("compilation cache cannot be used: the module was compiled anew; removing the directory clears a damaged cache",
		"dir", g.cfg.CacheDir, "error", err)
}

func (g *generation) newRuntime(ctx context.Context, cache wazero.CompilationCache) {
	// The memory limit is linearMemory's: one of the runtime would hide from
	// the host that a guest ran into it.
	rc := wazero.NewRuntimeConfig().WithCloseOnContextDone(true)
	if cache != nil {
		rc = rc.WithCompilationCache(cache)
	}
	g.cache, g.runtime = cache, wazero.NewRuntimeWithConfig(ctx, rc)
}

// linkImports makes the host modules that the guest imports from.
func (g *generation) linkImports(ctx context.Context, bin *binaryModule) error {
	b := g.runtime.NewHostModuleBuilder(abi.ImportModule)
	seen := map[string]bool{}
	wasi := false
	for _, imp := range bin.imports {
		switch {
		case imp.module == wasi_snapshot_preview1.ModuleName:
			wasi = true
		case !seen[imp.name]:
			seen[imp.name] = true
			b.NewFunctionBuilder().
				WithGoModuleFunction(hostFunc(imp.name), valueTypes(imp.typ.Params), valueTypes(imp.typ.Results)).
				Export(imp.name)
		}
	}
	if wasi {
		if _, err := wasi_snapshot_preview1.Instantiate(ctx, g.runtime); err != nil {
			return err
		}
	}
	if len(seen) == 0 {
		return nil
	}
	_, err := b.Instantiate(ctx)
	return err
}

func valueTypes(ts []abi.ValType) []byte {
	out := make([]byte, len(ts))
	for i, t := range ts {
		out[i] = byte(t)
	}
	return out
}

// configure sets what depends on the manifest, which is nil before it is
// known. No guest may be acquired yet.
func (g *generation) configure(m *abi.Manifest) {
	g.manifest = m
	g.name = g.cfg.NameFor(m)
	g.limits = g.cfg.limits(m)
	g.settings.Store(newSettings(1, g.cfg.settings(m)))
	g.caps = capNames(g.cfg.API != nil)
	g.slots = make(slots, g.cfg.concurrency(m))
	g.log = g.cfg.Logger.With("controller", g.name, "generation", g.number)
}

// hook reports whether an optional export is there and real.
func (g *generation) hook(name string) bool { return g.manifest.Hook(name, g.hooks[name]) }

// retain takes a reference, unless the generation is closed.
func (g *generation) retain() bool {
	for {
		n := g.refs.Load()
		if n == 0 {
			return false
		}
		if g.refs.CompareAndSwap(n, n+1) {
			return true
		}
	}
}

// release gives a reference back; the last one closes the generation.
func (g *generation) release() {
	if g.refs.Add(-1) == 0 {
		g.close(context.Background())
	}
}

// retire gives back the reference of being current and wakes who waits for an
// instance.
func (g *generation) retire() {
	close(g.retired)
	g.release()
}

// close returns everything. Nobody holds a reference any more.
func (g *generation) close(ctx context.Context) {
	for in := g.popIdle(); in != nil; in = g.popIdle() {
		in.close(ctx)
	}
	g.cfg.Budget.leave(g)
	g.closeErr = g.closeRuntime(ctx)
	close(g.closed)
}

func (g *generation) closeRuntime(ctx context.Context) error {
	if g.runtime == nil {
		return nil
	}
	err := g.runtime.Close(ctx)
	if g.cache != nil {
		if cerr := g.cache.Close(ctx); err == nil {
			err = cerr
		}
	}
	g.runtime, g.cache = nil, nil
	return err
}
