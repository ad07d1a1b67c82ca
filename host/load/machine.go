// SPDX-License-Identifier: Apache-2.0

package load

import (
	"context"
	"errors"
	"fmt"

	"github.com/wasmctl/wasmctl/host/internal/layout"
	"github.com/wasmctl/wasmctl/host/internal/linear"
	"github.com/wasmctl/wasmctl/host/internal/vm"
)

// machine is compiled code in a wazero runtime of its own: closing one machine cannot touch
// another.
type machine struct {
	runtime  vm.Runtime
	cache    vm.Cache // nil if there is none
	compiled vm.Compiled
	shell    int64         // the length of the module that wazero has decoded, in bytes
	inFile   []byte        // the machine code, if it lies in a file; else nil
	base     *linear.Image // the memory with which instances start; nil if wazero sets it up
}

func newMachine(ctx context.Context, cache vm.Cache) *machine {
	// The runtime has no limit of memory: with one, the host would not learn that a guest
	// has reached it.
	return &machine{runtime: vm.NewRuntime(ctx, cache), cache: cache}
}

// compileHere compiles a module in this process, and stores nothing.
func compileHere(ctx context.Context, wasm []byte, workers int) (*machine, error) {
	m := newMachine(ctx, nil)
	var err error
	m.shell = int64(len(wasm))
	if m.compiled, err = compileSafely(vm.WithWorkers(ctx, workers), m.runtime, wasm); err != nil {
		return nil, errors.Join(err, m.close(ctx))
	}
	return m, nil
}

// fromCache returns a machine for a shell and the content of a directory for wazero. With a
// context that has ended, wazero decodes and validates the shell, looks into the directory,
// and stops: a shell is never compiled. The error matches errNotStored if the code is not
// there.
func fromCache(ctx context.Context, dir string, outer []byte) (*machine, error) {
	if _, err := codeFile(dir); err != nil { // an interpreter would not look
		return nil, fmt.Errorf("%w: %w", errNotStored, err)
	}
	cache, err := vm.NewCache(dir)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrCacheDir, err)
	}
	m := newMachine(ctx, cache)
	m.shell = int64(len(outer))
	stopped, stop := context.WithCancel(vm.WithWorkers(ctx, MaxWorkers))
	stop()
	if m.compiled, err = compileSafely(stopped, m.runtime, outer); err == nil {
		return m, nil
	}
	if ctx.Err() == nil && errors.Is(err, context.Canceled) {
		err = fmt.Errorf("%w in %s", errNotStored, dir)
	}
	return nil, errors.Join(err, m.close(ctx))
}

// The memory of a decoded module and of its description: that of a small module, in bytes, and
// in lengths of the shell.
const (
	moduleBytes = 256 << 10
	shellCopies = 2
)

// memory returns the memory of the code, in bytes. Machine code in a file does not count,
// because the system can free it.
func (m *machine) memory() int64 {
	n := moduleBytes + shellCopies*m.shell
	if m.base != nil {
		n += m.base.Resident()
	}
	if m.inFile == nil {
		n += layout.Size(m.compiled)
	}
	return n
}

func (m *machine) close(ctx context.Context) error {
	err := m.runtime.Close(ctx)
	if m.base != nil {
		m.base.Close()
	}
	if m.cache != nil {
		err = errors.Join(err, m.cache.Close(ctx))
	}
	return err
}

// rest releases the memory of code that was executed, above all of the start code, which
// no instance from an image runs again.
func (m *machine) rest() {
	if m.inFile != nil {
		_ = layout.Rest(m.inFile) // it stays in memory then
	}
}
