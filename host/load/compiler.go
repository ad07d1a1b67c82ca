// SPDX-License-Identifier: Apache-2.0

package load

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"github.com/wasmctl/wasmctl/host/internal/codecache"
	"github.com/wasmctl/wasmctl/host/share"
)

// MaxWorkers bounds the CPUs that the first load of a module uses. With one worker, wazero
// would not look at its context.
const MaxWorkers = 2

// Options say how modules are compiled, and where their code is stored.
type Options struct {
	// CacheDir stores compiled code between runs of the process. All modules share it. If
	// empty, nothing is stored.
	CacheDir string
	// CacheKey authenticates the content of CacheDir, because it is executed: code of
	// another key is ignored and compiled again. Without a key, no other user may have
	// write access.
	CacheKey []byte
	// OnForged, if not nil, is called for each entry of CacheDir that was ignored.
	OnForged func()
	// Compiler compiles modules that are not in the cache somewhere else, because to compile
	// the module of a stranger may take minutes and gigabytes. Its error matches
	// ErrInvalidModule if the module is at fault; after any other error, the module is
	// compiled in this process. If nil, all modules are compiled in this process.
	Compiler func(context.Context, Compilation) error
}

// Compiler compiles one module.
type Compiler struct {
	Options

	Name     string         // of the module
	Tenant   string         // is charged with the compilation
	Account  *share.Account // is charged for the code; nil for modules of the operator
	Log      *slog.Logger
	Limits   share.Limits // configured
	Shared   *Shared      // may be nil
	Link     Linker
	Isolated bool // the code is for guest processes
	Workers  int  // bounds the CPUs that are used
	Yield    bool // guests of the module run meanwhile
}

// stack returns the limit of the stack for a module.
func (c *Compiler) stack(info *Info) int64 {
	limits, _ := c.Limits.For(info.Manifest)
	return limits.Stack
}

// Compile compiles a module that passed all checks.
func (c *Compiler) Compile(ctx context.Context, m *Module) (*Code, error) {
	code := newCode(m)
	code.account = c.Account
	src := &source{Module: m}
	build := func() error { return c.build(ctx, code, src) }
	var err error
	if c.Shared == nil || c.Isolated {
		if err = build(); err == nil {
			err = code.charge(&share.Bill{})
		}
	} else {
		err = c.Shared.share(ctx, c.codeID(src), code, build)
	}
	if err == nil {
		return code, nil
	}
	_ = code.Close(ctx)
	if ctx.Err() != nil {
		return nil, fmt.Errorf("module[%s]: compile: %w", c.Name, ctx.Err())
	}
	if module, ok := errors.AsType[uncompiled](err); ok {
		return nil, Invalid(c.Name, uncompiled{blame(ctx, m.wasm, module.error)})
	}
	return nil, fmt.Errorf("module[%s]: code: %w", c.Name, err)
}

// uncompiled is an error that is the module's fault. It matches ErrUncompiled.
type uncompiled struct{ error }

// Is reports whether target is ErrUncompiled.
func (uncompiled) Is(target error) bool { return target == ErrUncompiled }

// Unwrap returns the error of the compiler.
func (u uncompiled) Unwrap() error { return u.error }

// build compiles, and makes the host modules that the guest imports from.
func (c *Compiler) build(ctx context.Context, code *Code, src *source) error {
	if c.Isolated {
		if err := c.isolate(ctx, code, src); err != nil {
			return uncompiled{err}
		}
		return nil
	}
	if err := c.compileForm(ctx, code, src); err != nil {
		return uncompiled{err}
	}
	return code.machine.link(ctx, src.imports, c.Link)
}

// compileForm takes code from the cache, or compiles it in the first way that works. A
// directory that cannot be used, or a Compiler that does not start, costs time but never
// makes a module fail.
func (c *Compiler) compileForm(ctx context.Context, code *Code, src *source) (err error) {
	if c.fromStore(ctx, code, src) {
		return nil
	}
	if err = c.form(code, src); err != nil {
		return err
	}
	if c.CacheDir != "" || c.elsewhere(code, src) {
		if err = c.throughDir(ctx, code, src); err == nil || ctx.Err() != nil || errors.Is(err, ErrInvalidModule) {
			return err
		}
		_ = code.Close(ctx) // it has compiled nothing
	}
	trouble := err
	if code.machine, err = compileHere(ctx, src.form, c.Workers); err != nil {
		return err
	}
	if code.machine.base, err = baseOf(src.data, code.StartSize); err != nil {
		return err
	}
	if trouble != nil {
		c.warn(trouble)
	}
	return nil
}

// maxHere is the size of code, in bytes, that is always compiled in this process, and
// maxWorkHere the work of compiling it: less than that of starting another process.
const (
	maxHere     = 8 << 10
	maxWorkHere = 100_000
)

// elsewhere reports whether another process is asked to compile.
func (c *Compiler) elsewhere(code *Code, src *source) bool {
	return c.Compiler != nil && (len(src.form) > maxHere || code.work > maxWorkHere)
}

func (c *Compiler) warn(trouble error) {
	if c.Compiler != nil && !errors.Is(trouble, ErrCacheDir) {
		c.Log.Warn("cannot start the compiler process; compiled the module in this process without --compile-memory and --compile-time", "error", trouble)
		return
	}
	c.Log.Warn("cannot use the compilation cache; compiled the module again; make the directory that the error names writable, or set --cache-dir",
		"dir", c.CacheDir, "error", trouble)
}

// isolate sets the form that guest processes load. It is compiled beforehand if there is a
// directory for the code; otherwise each process compiles it.
func (c *Compiler) isolate(ctx context.Context, code *Code, src *source) error {
	if err := c.form(code, src); err != nil {
		return err
	}
	code.form = src.form
	if c.Compiler == nil || c.CacheDir == "" || len(src.form) <= maxHere {
		return validate(ctx, src.form)
	}
	code.stored = &stored{compiler: c, id: c.codeID(src)}
	var err error
	if !c.fromStore(ctx, code, src) {
		err = c.throughDir(ctx, code, src)
	}
	if err := code.Close(ctx); err != nil {
		return err
	}
	if err == nil || ctx.Err() != nil || errors.Is(err, ErrInvalidModule) {
		return err
	}
	c.Log.Warn("cannot compile the module beforehand; its guest process compiles it", "error", err)
	return validate(ctx, src.form)
}

// stored is the compiled form of a module in the cache.
type stored struct {
	compiler *Compiler
	id       codecache.ID
}
