package flags

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// keySize is that of HMAC-SHA256.
const keySize = 32

// CacheKey returns the user's key for compiled modules, which is made where there
// is none: <config>/wasmctl/cache.key. With an error it is a key for this process
// alone.
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

// keyIn returns the key in a folder. Of several processes that make one at a time
// all get the same.
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
