package host

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"runtime"

	"github.com/tetratelabs/wazero/experimental"

	"github.com/wasmctl/wasmctl/host/internal/codecache"
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

// outOfProcess has a module compiled by Config.Compiler, unless it is in the cache
// already. The compiler writes into a private directory, for this module alone.
func (c compiler) outOfProcess(ctx context.Context, code *code, job Compilation) error {
	return c.inPrivate("", job, func(job Compilation) error {
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
	})
}

// cached compiles in this process, through the cache directory.
func (c compiler) cached(ctx context.Context, code *code, job Compilation) error {
	return c.inPrivate("", job, func(job Compilation) error {
		unsaved, err := code.compileInto(ctx, job)
		if err == nil && unsaved != nil {
			c.warn(unsaved)
		}
		return err
	})
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

// inPrivate compiles through a directory that nobody else can write to, in another
// one or in that of temporary files, with what the cache has for the module, and
// keeps there what is new. Trouble with the cache costs time only.
func (c compiler) inPrivate(in string, job Compilation, compile func(Compilation) error) error {
	private, err := os.MkdirTemp(in, "wasmctl-code-")
	if err != nil {
		return fmt.Errorf("%w: %w", ErrCacheDir, err)
	}
	defer func() { _ = os.RemoveAll(private) }() // a later one has another name
	store := codecache.Store{Dir: c.cfg.CacheDir, Key: c.cfg.CacheKey}
	job.Dir = private
	if store.Dir == "" {
		return compile(job)
	}
	id := codeID(job)
	taken, err := store.Take(id, private)
	if err != nil {
		c.untaken(err)
	}
	if err := compile(job); err != nil {
		return err
	}
	if err := store.Put(id, private, taken); err != nil {
		c.warn(fmt.Errorf("%w: %w", ErrCacheDir, err))
	}
	return nil
}

// codeID names the code of a module in the cache. wazero's version and the features
// of the CPU are in wazero's own name for it.
func codeID(job Compilation) codecache.ID {
	h := sha256.New()
	_, _ = fmt.Fprintf(h, "%s %s %v\n", runtime.GOOS, runtime.GOARCH, job.CloseOnDone) // a hash takes all
	h.Write(job.Code)
	return codecache.ID(h.Sum(nil))
}

// untaken reports an entry of the cache that is not used.
func (c compiler) untaken(err error) {
	if !errors.Is(err, codecache.ErrForged) {
		c.warn(fmt.Errorf("%w: %w", ErrCacheDir, err))
		return
	}
	if c.cfg.OnForged != nil {
		c.cfg.OnForged()
	}
	c.log.Warn("ignored compiled code that this user's key does not authenticate; compiling the module again", "dir", c.cfg.CacheDir, "error", err)
}
