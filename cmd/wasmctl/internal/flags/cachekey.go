// SPDX-License-Identifier: Apache-2.0

package flags

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// keySize is the size of a key for HMAC-SHA256, in bytes.
const keySize = 32

// CacheKey returns the user's key for compiled modules, in <config>/wasmctl/cache.key. It creates a
// missing key. With an error, it returns a key for this process only.
func CacheKey() ([]byte, error) {
	dir, err := os.UserConfigDir()
	if err == nil {
		var key []byte
		if key, err = keyIn(filepath.Join(dir, "wasmctl")); err == nil {
			return key, nil
		}
	}
	return newKey(), fmt.Errorf("key of the compilation cache: %w; set a directory with XDG_CONFIG_HOME", err)
}

func newKey() []byte {
	key := make([]byte, keySize)
	_, _ = rand.Read(key) // never fails
	return key
}

// keyIn returns the key in a directory, and creates it if it is missing. Processes that create it at
// the same time all get the same key.
func keyIn(dir string) ([]byte, error) {
	path := filepath.Join(dir, "cache.key")
	key, err := readKey(path)
	if !errors.Is(err, fs.ErrNotExist) {
		return key, err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	f, err := os.CreateTemp(dir, "cache.key.*.tmp") // of mode 0600
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.Remove(f.Name()) }()
	_, err = f.Write(newKey())
	if err = errors.Join(err, f.Close()); err != nil {
		return nil, err
	}
	if err := os.Link(f.Name(), path); err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, err
	}
	return readKey(path)
}

func readKey(path string) ([]byte, error) {
	info, err := os.Lstat(path)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() || info.Mode().Perm()&0o077 != 0 {
		return nil, fmt.Errorf("%s: mode %v lets others read it: remove it", path, info.Mode())
	}
	key, err := os.ReadFile(path) //nolint:gosec // of the user
	if err == nil && len(key) != keySize {
		err = fmt.Errorf("%s: has %d bytes, want %d: remove it", path, len(key), keySize)
	}
	return key, err
}
