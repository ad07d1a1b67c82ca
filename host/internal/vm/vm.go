// SPDX-License-Identifier: Apache-2.0

// Package vm is what executes WebAssembly: wazero. No other package imports that outside
// of tests, so another engine with the same methods takes a change of this file. Package
// layout leaves code to an engine whose files and fields are not those of wazero.
package vm

import (
	"context"
	"crypto/rand"
	"sync"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/experimental"
	"github.com/tetratelabs/wazero/sys"
)

// The types are the engine's own, so that a call costs nothing more.
type (
	// Runtime compiles modules, and has their instances.
	Runtime = wazero.Runtime
	// Cache has compiled code in a directory.
	Cache = wazero.CompilationCache
	// Compiled is a module that was compiled.
	Compiled = wazero.CompiledModule
	// Config is how a module is instantiated.
	Config = wazero.ModuleConfig
	// Module is an instance.
	Module = api.Module
	// Memory is the linear memory of an instance.
	Memory = api.Memory
	// Function is one that an instance exports.
	Function = api.Function
	// Global is one of an instance that can be set.
	Global = api.MutableGlobal
	// HostFunc is a function that guests import.
	HostFunc = api.GoModuleFunc
	// LinearMemory has the bytes of a Memory.
	LinearMemory = experimental.LinearMemory
	// Allocator makes the LinearMemory of an instance.
	Allocator = experimental.MemoryAllocator
	// ExitError ends the call of a guest that has called proc_exit.
	ExitError = sys.ExitError
)

// mu is held while a runtime or a cache is made: wazero 1.12 finds out its own version
// when the first one is, and remembers it without a lock.
var mu sync.Mutex

// NewRuntime returns a runtime, with a cache if that is not nil.
func NewRuntime(ctx context.Context, cache Cache) Runtime {
	mu.Lock()
	defer mu.Unlock()
	config := wazero.NewRuntimeConfig()
	if cache != nil {
		config = config.WithCompilationCache(cache)
	}
	return wazero.NewRuntimeWithConfig(ctx, config)
}

// NewCache returns a cache in a directory.
func NewCache(dir string) (Cache, error) {
	mu.Lock()
	defer mu.Unlock()
	return wazero.NewCompilationCacheWithDir(dir)
}

// NewConfig is for instances without a name, which call the start functions that they
// export. Nothing reads the random numbers: without some, each instance seeds a
// generator, a fifth of the time of its start.
func NewConfig(start ...string) Config {
	return wazero.NewModuleConfig().WithName("").WithStartFunctions(start...).WithRandSource(rand.Reader)
}

// WithWorkers bounds the CPUs that compile.
func WithWorkers(ctx context.Context, n int) context.Context {
	return experimental.WithCompilationWorkers(ctx, n)
}

// WithAllocator gives memory to what is instantiated.
func WithAllocator(ctx context.Context, a Allocator) context.Context {
	return experimental.WithMemoryAllocator(ctx, a)
}

// NewExitError is for a host function that ends the guest.
func NewExitError(code uint32) *ExitError { return sys.NewExitError(code) }
