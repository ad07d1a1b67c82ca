package host

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/wasmctl/wasmctl/host/internal/shell"
	"github.com/wasmctl/wasmctl/host/internal/vm"
)

// ErrCacheDir matches the error of a Compilation whose directory cannot be read
// or written.
var ErrCacheDir = errors.New("cannot use the compilation cache")

// Compilation is a module that is to be compiled into a directory.
type Compilation struct {
	// Dir is a directory for wazero, which this compilation has for itself.
	Dir string
	// Code is the module in the form that is compiled: with what counts its work.
	Code []byte
	// Workers bounds the CPUs that are used.
	Workers int
	// Yield says that guests of the module run meanwhile, which come first.
	Yield bool
}

// Run compiles, so that the shell of the module finds the code in the directory. An
// error that does not match ErrCacheDir is the module's fault.
func (c Compilation) Run(ctx context.Context) error {
	if err := c.compile(ctx, c.Code, c.Workers); err != nil {
		return err
	}
	hollow, err := shell.Of(c.Code)
	if err != nil {
		return err
	}
	code, err := codeFile(c.Dir)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrCacheDir, err)
	}
	// The name under which wazero looks for the code of the shell is known where it
	// has written that.
	aside := filepath.Join(c.Dir, "code")
	if err := os.Rename(code, aside); err != nil {
		return fmt.Errorf("%w: %w", ErrCacheDir, err)
	}
	if err := c.compile(ctx, hollow, 1); err != nil {
		return err
	}
	if code, err = codeFile(c.Dir); err == nil {
		err = os.Rename(aside, code)
	}
	if err != nil {
		return fmt.Errorf("%w: %w", ErrCacheDir, err)
	}
	return nil
}

// compile has wazero compile a module into the directory.
func (c Compilation) compile(ctx context.Context, module []byte, workers int) (err error) {
	cache, err := vm.NewCache(c.Dir)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrCacheDir, err)
	}
	code := &code{}
	defer func() { err = errors.Join(err, code.close(ctx)) }()
	code.newRuntime(ctx, cache)
	ctx = vm.WithWorkers(ctx, workers)
	_, unsaved := compileSafely(ctx, code.runtime, module)
	if unsaved == nil || ctx.Err() != nil {
		return unsaved
	}
	// Where only writing failed, the code is in memory already.
	if _, err := compileSafely(ctx, code.runtime, module); err != nil {
		return err
	}
	return fmt.Errorf("%w: %w", ErrCacheDir, unsaved)
}

// codeFile is the one file that wazero has written below a directory.
func codeFile(dir string) (string, error) {
	paths, _ := filepath.Glob(filepath.Join(dir, "*-*", "*")) // the pattern is fine
	if len(paths) != 1 {
		return "", fmt.Errorf("%d files of code in %s, want 1", len(paths), dir)
	}
	return paths[0], nil
}

// errNotKept says that code is not where it was looked for.
var errNotKept = errors.New("compiled code missing")

// fromCache makes code of a shell and of what is in a directory for wazero. With a
// context that has ended wazero decodes, validates, looks there, and stops: a shell is
// never compiled. The error matches errNotKept where the code is not there.
func (c *code) fromCache(ctx context.Context, dir string, hollow []byte) error {
	if _, err := codeFile(dir); err != nil { // an interpreter would not look
		return fmt.Errorf("%w: %w", errNotKept, err)
	}
	cache, err := vm.NewCache(dir)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrCacheDir, err)
	}
	c.newRuntime(ctx, cache)
	stopped, stop := context.WithCancel(vm.WithWorkers(ctx, compilationWorkers))
	stop()
	c.compiled, err = compileSafely(stopped, c.runtime, hollow)
	if err == nil {
		return nil
	}
	if ctx.Err() == nil && errors.Is(err, context.Canceled) {
		err = fmt.Errorf("%w in %s", errNotKept, dir)
	}
	return errors.Join(err, c.closeLocal(ctx))
}

// throughDir compiles through a directory, in another process where that is worth it.
// It writes into a private directory, for this module alone.
func (c compiler) throughDir(ctx context.Context, code *code, src *source) error {
	job := c.job(src)
	run := func(ctx context.Context, job Compilation) error { return job.Run(ctx) }
	if c.elsewhere(code, src) {
		if err := validate(ctx, job.Code); err != nil {
			return err // no process for what is no module
		}
		run = c.cfg.Compiler
	}
	hollow, err := shell.Of(job.Code)
	if err != nil {
		return err
	}
	return inPrivate("", func(private string) error {
		job.Dir = private
		if err := run(ctx, job); err != nil {
			return err
		}
		store, err := c.keep(code, src, private, hollow)
		if err == nil {
			err = inPrivate(private, func(dir string) error { return c.take(ctx, store, code, src, dir) })
		}
		if err != nil {
			return fmt.Errorf("%w: %w", ErrCacheDir, err)
		}
		return nil
	})
}

// inPrivate calls a function with a directory that nobody else can write to, in
// another one or in that of temporary files.
func inPrivate(in string, f func(dir string) error) error {
	private, err := os.MkdirTemp(in, "wasmctl-code-")
	if err != nil {
		return fmt.Errorf("%w: %w", ErrCacheDir, err)
	}
	defer func() { _ = os.RemoveAll(private) }() // a later one has another name
	return f(private)
}
