package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/wasmctl/wasmctl/host"
)

// readModule reads a module's file, and no more of it than a module may have.
func readModule(path string) ([]byte, error) {
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return nil, withCode(exitModule, fmt.Errorf("module: %w", err))
	case info.IsDir():
		return nil, withCode(exitModule, fmt.Errorf("module[%s]: is a directory; name the .wasm file", path))
	case info.Size() > host.DefaultMaxModuleSize:
		return nil, withCode(exitModule, fmt.Errorf("module[%s]: %d bytes are more than a module may have (%d)", path, info.Size(), host.DefaultMaxModuleSize))
	}
	wasm, err := os.ReadFile(path)
	if err != nil {
		return nil, withCode(exitModule, fmt.Errorf("module: %w", err))
	}
	return wasm, nil
}

// moduleName is the name of a module that has no other: its file's, without
// extension.
func moduleName(path string) string {
	base := filepath.Base(path)
	return strings.TrimSuffix(base, filepath.Ext(base))
}
