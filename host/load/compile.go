// SPDX-License-Identifier: Apache-2.0

package load

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/wasmctl/wasmctl/host/internal/shell"
	"github.com/wasmctl/wasmctl/host/internal/vm"
)

// ErrCacheDir matches the error of a Compilation whose directory cannot be read or written.
var ErrCacheDir = errors.New("cannot use the compilation cache")

// errNotStored reports that code is not in the directory in which it was looked for.
var errNotStored = errors.New("compiled code missing")

// Compilation is a module that is to be compiled into a directory.
type Compilation struct {
	// Tenant is charged with the compilation.
	Tenant string
	// Dir is a directory for wazero, which only this compilation uses.
	Dir string
	// Code is the module in the form that is compiled, with the code that counts its work.
	Code []byte
	// Workers bounds the CPUs that are used.
	Workers int
	// Yield reports that guests of the module run meanwhile, and have priority.
	Yield bool
}

// Run compiles, so that the shell of the module finds the code in the directory. An error
// that does not match ErrCacheDir is the module's fault.
func (c Compilation) Run(ctx context.Context) error {
	if err := c.compile(ctx, c.Code, c.Workers); err != nil {
		return err
	}
	outer, err := shell.Of(c.Code)
	if err != nil {
		return err
	}
	code, err := codeFile(c.Dir)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrCacheDir, err)
	}
	// Only wazero knows the name under which it looks for the code of the shell, so wazero
	// writes that file, and the code of the module replaces it.
	moved := filepath.Join(c.Dir, "code")
	if err := os.Rename(code, moved); err != nil {
		return fmt.Errorf("%w: %w", ErrCacheDir, err)
	}
	if err := c.compile(ctx, outer, 1); err != nil {
		return err
	}
	if code, err = codeFile(c.Dir); err == nil {
		err = os.Rename(moved, code)
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
	m := newMachine(ctx, cache)
	defer func() { err = errors.Join(err, m.close(ctx)) }()
	ctx = vm.WithWorkers(ctx, workers)
	_, unsaved := compileSafely(ctx, m.runtime, module)
	if unsaved == nil || ctx.Err() != nil {
		return unsaved
	}
	// If only writing failed, the code is in memory already.
	if _, err := compileSafely(ctx, m.runtime, module); err != nil {
		return err
	}
	return fmt.Errorf("%w: %w", ErrCacheDir, unsaved)
}

// codeFile returns the one file that wazero has written below a directory.
func codeFile(dir string) (string, error) {
	paths, _ := filepath.Glob(filepath.Join(dir, "*-*", "*")) // the pattern is valid
	if len(paths) != 1 {
		return "", fmt.Errorf("%d files of code in %s, want 1", len(paths), dir)
	}
	return paths[0], nil
}

// inPrivate calls a function with a new directory below in to which no other user can
// write. If in is empty, it is below that of temporary files.
func inPrivate(in string, f func(dir string) error) error {
	private, err := os.MkdirTemp(in, "wasmctl-code-")
	if err != nil {
		return fmt.Errorf("%w: %w", ErrCacheDir, err)
	}
	defer func() { _ = os.RemoveAll(private) }() // a later directory has another name
	return f(private)
}
