package host

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/tetratelabs/wazero/experimental"
)

// ErrCacheDir matches the error of a Compilation whose directory cannot be read
// or written.
var ErrCacheDir = errors.New("cannot use the compilation cache")

// Compilation is a module that is to be compiled into a directory.
type Compilation struct {
	// Dir is the directory, one as Config.CacheDir.
	Dir string
	// Code is the module in the form that is compiled: with what counts its work.
	Code []byte
	// Workers bounds the CPUs that are used.
	Workers int
	// Yield says that guests of the module run meanwhile, which come first.
	Yield bool
	// CloseOnDone says that the code is to look at its context, as with CPUClose.
	CloseOnDone bool
}

// Run compiles. An error that does not match ErrCacheDir is the module's fault.
func (c Compilation) Run(ctx context.Context) error {
	code := &code{}
	defer func() { _ = code.close(ctx) }()
	unsaved, err := code.compileInto(ctx, c)
	if err == nil {
		err = unsaved
	}
	return err
}

// compileInto compiles through a directory. unsaved is what is wrong with the
// directory, where the code is there nonetheless.
func (c *code) compileInto(ctx context.Context, job Compilation) (unsaved, err error) {
	cache, err := newWazeroCache(job.Dir)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrCacheDir, err)
	}
	c.newRuntime(ctx, cache, job.CloseOnDone)
	ctx = experimental.WithCompilationWorkers(ctx, job.Workers)
	if c.compiled, unsaved = compileSafely(ctx, c.runtime, job.Code); unsaved == nil || ctx.Err() != nil {
		return nil, unsaved
	}
	// Where only writing failed, the code is in memory already.
	if c.compiled, err = compileSafely(ctx, c.runtime, job.Code); err != nil {
		return nil, err
	}
	return fmt.Errorf("%w: %w", ErrCacheDir, unsaved), nil
}

// outOfProcess has a module compiled into a directory by Config.Compiler, unless it is
// there already, and takes it from there.
func (c compiler) outOfProcess(ctx context.Context, code *code, job Compilation) error {
	cache, err := newWazeroCache(job.Dir)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrCacheDir, err)
	}
	code.newRuntime(ctx, cache, job.CloseOnDone)
	if err = code.fromCache(ctx, job.Code); err == nil {
		return nil
	}
	if !errors.Is(err, context.Canceled) {
		return fmt.Errorf("%w: %w", ErrCacheDir, err) // or the module is invalid, which compiling says
	}
	if err = c.cfg.Compiler(ctx, job); err != nil {
		return err
	}
	if err = code.fromCache(ctx, job.Code); errors.Is(err, context.Canceled) {
		return fmt.Errorf("%w: compiled code missing in %s", ErrCacheDir, job.Dir)
	}
	return err
}

// fromCache compiles a module that is in the cache, and ends with
// context.Canceled where it is not: with a context that has ended wazero
// decodes, validates, looks there, and stops.
func (c *code) fromCache(ctx context.Context, form []byte) (err error) {
	stopped, stop := context.WithCancel(experimental.WithCompilationWorkers(ctx, compilationWorkers))
	stop()
	c.compiled, err = compileSafely(stopped, c.runtime, form)
	return err
}

// outOfProcessOnce is aside with a directory that is gone afterwards.
func (c compiler) outOfProcessOnce(ctx context.Context, code *code, job Compilation) error {
	dir, err := os.MkdirTemp("", "wasmctl-compile-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	job.Dir = dir
	return c.outOfProcess(ctx, code, job)
}
