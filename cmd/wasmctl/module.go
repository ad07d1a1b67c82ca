package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
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
		return nil, withCode(exitModule, fmt.Errorf("module[%s]: %w", path, withoutPath(err)))
	case info.IsDir():
		return nil, withCode(exitModule, fmt.Errorf("module[%s]: is a directory; name the .wasm file", path))
	case info.Size() > host.DefaultMaxModuleSize:
		return nil, withCode(exitModule, fmt.Errorf("module[%s]: %s is more than a module may have (%s)", path, byteSize(info.Size()), byteSize(host.DefaultMaxModuleSize)))
	}
	wasm, err := os.ReadFile(path)
	if err != nil {
		return nil, withCode(exitModule, fmt.Errorf("module[%s]: %w", path, withoutPath(err)))
	}
	return wasm, nil
}

// inspectModule says what is in a module's file, and refuses one that could not
// be loaded. Nothing of it is run.
func inspectModule(ctx context.Context, path string) (*host.Info, error) {
	wasm, err := readModule(path)
	if err != nil {
		return nil, err
	}
	info := host.Inspect(ctx, wasm)
	if len(info.Problems) > 0 {
		return nil, withCode(exitModule, fmt.Errorf("module[%s]: cannot be loaded: %s", path, strings.Join(info.Problems, "; ")))
	}
	return info, nil
}

// withoutPath is an error of a file without the file's name, which stands before
// it already.
func withoutPath(err error) error {
	if e, ok := errors.AsType[*fs.PathError](err); ok {
		return e.Err
	}
	return err
}

// moduleName is the name of a module that has no other: its file's, without
// extension.
func moduleName(path string) string {
	base := filepath.Base(path)
	return strings.TrimSuffix(base, filepath.Ext(base))
}
