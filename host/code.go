package host

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"

	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/host/internal/linear"
	"github.com/wasmctl/wasmctl/host/internal/vm"
	"github.com/wasmctl/wasmctl/host/internal/wasi"
)

// code is a module's bytes, compiled: what the instances of a revision are
// made of. It owns a wazero runtime, or is one of several users of the same: closing
// one code cannot touch another. A rollback makes a new revision of code that was kept.
type code struct {
	// info is what Inspect would say; its manifest is that of describe where there
	// is no section, once describe was asked.
	info *Info
	// files are what the guest can read.
	files *wasi.Files
	// hooks are the exports that are there.
	hooks map[string]bool
	// several says that the module has several controllers.
	several bool
	// startSize is the memory that an instance starts with, in bytes.
	startSize int64

	runtime  vm.Runtime
	cache    vm.Cache // nil where there is none
	compiled vm.Compiled
	inFile   []byte        // the machine code, where a file has it; else nil
	base     *linear.Image // that memory starts with; nil where wazero sets it up
	shared   *sharedCode   // whose these four are; nil where they are its own

	// work estimates what compiling takes, in instructions of simple code.
	work int64
	// remote is the code where guest processes load it, in the place of runtime,
	// cache and compiled.
	remote *remoteCode

	// maxStack is how many bytes of stack a call may use.
	maxStack int64
	// globals is how many globals an instance has that the host can set, where they and
	// the memory are all of its state; else -1. See image.
	globals int

	// refs is 1 per revision and 1 for being kept; at 0 everything is closed and
	// it never rises again.
	refs atomic.Int64
}

// compiler is what compiling needs to know.
type compiler struct {
	cfg  Config // with defaults
	name string // of the module
	log  *slog.Logger
	// workers bounds the CPUs that compiling takes; yield says that guests
	// run meanwhile.
	workers int
	yield   bool
}

// compile makes code of bytes that passed all checks, with one reference.
func (c compiler) compile(ctx context.Context, wasm []byte, bin *binaryModule) (*code, error) {
	code := &code{info: newInfo(wasm, bin), files: bin.files, hooks: map[string]bool{}, several: len(bin.manifestSections()) > 1}
	code.refs.Store(1)
	if mem := bin.memory(); mem != nil {
		code.startSize = mem.Min
	}
	for _, e := range abi.Exports {
		code.hooks[e.Name] = bin.exportsFunc(e.Name)
	}
	code.globals = -1
	err := c.share(ctx, code, &source{wasm: wasm, bin: bin, id: c.codeID(code.info, bin.codeDigestOf(wasm))})
	if err == nil {
		return code, nil
	}
	_ = code.release(ctx)
	if ctx.Err() != nil {
		return nil, fmt.Errorf("module[%s]: compile: %w", c.name, ctx.Err())
	}
	if module, ok := errors.AsType[uncompiled](err); ok {
		return nil, invalid(c.name, blame(ctx, wasm, module.error))
	}
	return nil, fmt.Errorf("module[%s]: host functions: %w", c.name, err)
}

// uncompiled is an error that is the module's fault.
type uncompiled struct{ error }

// build compiles, and makes what the guest imports from.
func (c compiler) build(ctx context.Context, code *code, src *source) error {
	if err := c.compileForm(ctx, code, src); err != nil {
		return uncompiled{err}
	}
	if code.remote != nil {
		return nil
	}
	return code.linkImports(ctx, src.bin.imports)
}

// compileForm takes code from the cache, or compiles by the first way that works. A
// directory that cannot be used, and a Compiler that does not start, cost time and
// never the module.
func (c compiler) compileForm(ctx context.Context, code *code, src *source) (err error) {
	if c.cfg.Isolation == nil && c.fromStore(ctx, code, src) {
		return nil
	}
	if err = c.form(code, src); err != nil {
		return err
	}
	if c.cfg.Isolation != nil {
		return c.isolated(ctx, code, src)
	}
	var trouble error
	for _, way := range c.ways(code, src) {
		if err = way(ctx, code, src); err == nil {
			if trouble != nil {
				c.warn(trouble)
			}
			return nil
		}
		if ctx.Err() != nil || errors.Is(err, ErrInvalidModule) {
			return err
		}
		if trouble == nil {
			trouble = err
		}
		_ = code.close(ctx) // it has compiled nothing
	}
	return err
}

// job is what is to be compiled of a module.
func (c compiler) job(src *source) Compilation {
	return Compilation{Code: src.form, Workers: c.workers, Yield: c.yield}
}

// maxHere is the code, in bytes, that is always compiled in this process, and
// maxWorkHere what compiling it may take: less than another process.
const (
	maxHere     = 8 << 10
	maxWorkHere = 100_000
)

// elsewhere reports whether another process is asked to compile.
func (c compiler) elsewhere(code *code, src *source) bool {
	return c.cfg.Compiler != nil && (len(src.form) > maxHere || code.work > maxWorkHere)
}

// ways are how a module may be compiled, the best first.
func (c compiler) ways(code *code, src *source) (ways []func(context.Context, *code, *source) error) {
	if c.cfg.CacheDir != "" || c.elsewhere(code, src) {
		ways = append(ways, c.throughDir)
	}
	return append(ways, c.here)
}

// here compiles in this process, and keeps nothing.
func (c compiler) here(ctx context.Context, code *code, src *source) (err error) {
	job := c.job(src)
	code.newRuntime(ctx, nil)
	code.compiled, err = compileSafely(vm.WithWorkers(ctx, job.Workers), code.runtime, job.Code)
	if err == nil {
		err = code.setBase(src.data)
	}
	return err
}

func (c compiler) warn(trouble error) {
	if c.cfg.Compiler != nil && !errors.Is(trouble, ErrCacheDir) {
		c.log.Warn("cannot start the compiler process; compiled the module in this process without --compile-memory and --compile-time", "error", trouble)
		return
	}
	c.log.Warn("cannot use the compilation cache; compiled the module again; make the directory that the error names writable, or set --cache-dir",
		"dir", c.cfg.CacheDir, "error", trouble)
}

func (c *code) newRuntime(ctx context.Context, cache vm.Cache) {
	// The memory limit is linearMemory's: one of the runtime would hide from
	// the host that a guest ran into it.
	c.cache, c.runtime = cache, vm.NewRuntime(ctx, cache)
}

// linkImports makes the host modules that the guest imports from.
func (c *code) linkImports(ctx context.Context, imports []wasmImport) error {
	if err := c.linkMeter(ctx); err != nil {
		return err
	}
	for module, f := range map[string]func(name string) vm.HostFunc{abi.ImportModule: hostFunc, wasi.Module: wasiFunc} {
		b := c.runtime.NewHostModuleBuilder(module)
		seen := map[string]bool{}
		for _, imp := range imports {
			if imp.module != module || seen[imp.name] {
				continue
			}
			seen[imp.name] = true
			b.NewFunctionBuilder().
				WithGoModuleFunction(f(imp.name), valueTypes(imp.typ.Params), valueTypes(imp.typ.Results)).
				Export(imp.name)
		}
		if len(seen) == 0 {
			continue
		}
		if _, err := b.Instantiate(ctx); err != nil {
			return err
		}
	}
	return nil
}

func valueTypes(ts []abi.ValType) []byte {
	out := make([]byte, len(ts))
	for i, t := range ts {
		out[i] = byte(t)
	}
	return out
}

// retain takes a reference for another revision, or for being kept. The
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
	c.remote.leave()
	return c.closeLocal(ctx)
}

// closeLocal closes what is in this process.
func (c *code) closeLocal(ctx context.Context) error {
	if c.runtime == nil {
		return nil
	}
	var err error
	if c.shared != nil {
		err = c.shared.leave(ctx)
	} else {
		err = closeCode(ctx, c.runtime, c.cache, c.base)
	}
	c.runtime, c.cache, c.compiled, c.inFile, c.base, c.shared = nil, nil, nil, nil, nil, nil
	return err
}
