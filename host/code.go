package host

import (
	"context"
	"fmt"
	"log/slog"
	"sync/atomic"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/experimental"
	"github.com/tetratelabs/wazero/imports/wasi_snapshot_preview1"

	"github.com/wasmctl/wasmctl/abi"
)

// code is a module's bytes, compiled: what the instances of a generation are
// made of. It owns a wazero runtime, so that closing one code cannot touch
// another. A rollback makes a new generation of code that was kept.
type code struct {
	// info is what Inspect would say; its manifest is that of describe where there
	// is no section, once describe was asked.
	info *Info
	// hooks are the exports that are there.
	hooks map[string]bool
	// startSize is the memory that an instance starts with, in bytes.
	startSize int64

	runtime  wazero.Runtime
	cache    wazero.CompilationCache // nil where there is none
	compiled wazero.CompiledModule

	// metered says that the compiled form counts its work, and maxStack how many
	// bytes of stack it may use.
	metered  bool
	maxStack int64

	// refs is 1 per generation and 1 for being kept; at 0 everything is closed and
	// it never rises again.
	refs atomic.Int64
}

// compiler is what compiling needs to know.
type compiler struct {
	cfg  Config // with defaults
	name string // of the module
	log  *slog.Logger
	// workers bounds the processors that compiling takes from guests that run
	// meanwhile.
	workers int
}

// compile makes code of bytes that passed all checks, with one reference.
func (c compiler) compile(ctx context.Context, wasm []byte, bin *binaryModule) (*code, error) {
	code := &code{info: newInfo(wasm, bin), hooks: map[string]bool{}}
	code.refs.Store(1)
	if mem := bin.memory(); mem != nil {
		code.startSize = mem.Min
	}
	for _, e := range abi.Exports {
		code.hooks[e.Name] = bin.exportsFunc(e.Name)
	}
	ctx = experimental.WithCompilationWorkers(ctx, c.workers)
	form, err := c.form(code, wasm, bin)
	if err == nil {
		err = c.compileCached(ctx, code, form)
	}
	if err != nil {
		_ = code.release(ctx)
		if ctx.Err() != nil {
			return nil, fmt.Errorf("module[%s]: compile: %w", c.name, ctx.Err())
		}
		return nil, invalid(c.name, blame(ctx, wasm, err))
	}
	if err := code.linkImports(ctx, bin); err != nil {
		_ = code.release(ctx)
		return nil, fmt.Errorf("module[%s]: host functions: %w", c.name, err)
	}
	return code, nil
}

// compileCached compiles through the cache directory. A directory that cannot
// be read or written costs time, never the module.
func (c compiler) compileCached(ctx context.Context, code *code, wasm []byte) (err error) {
	closeOnDone := c.cfg.CPU == CPUClose
	if c.cfg.CacheDir == "" {
		code.newRuntime(ctx, nil, closeOnDone)
		code.compiled, err = compileSafely(ctx, code.runtime, wasm)
		return err
	}
	cache, cacheErr := wazero.NewCompilationCacheWithDir(c.cfg.CacheDir)
	if cacheErr == nil {
		code.newRuntime(ctx, cache, closeOnDone)
		if code.compiled, cacheErr = compileSafely(ctx, code.runtime, wasm); cacheErr == nil || ctx.Err() != nil {
			return cacheErr
		}
		// Where only writing failed, the code is in memory already.
		if code.compiled, err = compileSafely(ctx, code.runtime, wasm); err == nil {
			c.warnCache(cacheErr)
			return nil
		}
		_ = code.close(ctx) // it has compiled nothing
	}
	code.newRuntime(ctx, nil, closeOnDone)
	if code.compiled, err = compileSafely(ctx, code.runtime, wasm); err == nil {
		c.warnCache(cacheErr)
	}
	return err
}

func (c compiler) warnCache(err error) {
	c.log.Warn("compilation cache cannot be used: the module was compiled anew; removing the directory clears a damaged cache",
		"dir", c.cfg.CacheDir, "error", err)
}

func (c *code) newRuntime(ctx context.Context, cache wazero.CompilationCache, closeOnDone bool) {
	// The memory limit is linearMemory's: one of the runtime would hide from
	// the host that a guest ran into it.
	rc := wazero.NewRuntimeConfig().WithCloseOnContextDone(closeOnDone)
	if cache != nil {
		rc = rc.WithCompilationCache(cache)
	}
	c.cache, c.runtime = cache, wazero.NewRuntimeWithConfig(ctx, rc)
}

// linkImports makes the host modules that the guest imports from.
func (c *code) linkImports(ctx context.Context, bin *binaryModule) error {
	b := c.runtime.NewHostModuleBuilder(abi.ImportModule)
	seen := map[string]bool{}
	wasi := false
	if err := c.linkMeter(ctx); err != nil {
		return err
	}
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
		if _, err := wasi_snapshot_preview1.Instantiate(ctx, c.runtime); err != nil {
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

// retain takes a reference for another generation, or for being kept. The
// caller has one, or the lock under which the last is given back.
func (c *code) retain() { c.refs.Add(1) }

// release gives a reference back; the last one closes the code.
func (c *code) release(ctx context.Context) error {
	if c.refs.Add(-1) > 0 {
		return nil
	}
	return c.close(ctx)
}

func (c *code) close(ctx context.Context) error {
	if c.runtime == nil {
		return nil
	}
	err := c.runtime.Close(ctx)
	if c.cache != nil {
		if cerr := c.cache.Close(ctx); err == nil {
			err = cerr
		}
	}
	c.runtime, c.cache = nil, nil
	return err
}
