package host

import (
	"context"
	"sync"

	"github.com/tetratelabs/wazero"
)

// wazeroMu is held while a runtime or a cache of wazero is made: wazero 1.12
// finds out its own version when the first one is, and remembers it without a
// lock.
var wazeroMu sync.Mutex

func newWazero(ctx context.Context, config wazero.RuntimeConfig) wazero.Runtime {
	wazeroMu.Lock()
	defer wazeroMu.Unlock()
	return wazero.NewRuntimeWithConfig(ctx, config)
}

func newWazeroCache(dir string) (wazero.CompilationCache, error) {
	wazeroMu.Lock()
	defer wazeroMu.Unlock()
	return wazero.NewCompilationCacheWithDir(dir)
}
