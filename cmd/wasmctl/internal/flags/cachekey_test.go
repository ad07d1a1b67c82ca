// SPDX-License-Identifier: Apache-2.0

package flags

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// TestCacheKey_IsOfTheUserAlone: concurrent calls create only one key, other users cannot read it, and
// an invalid key is refused.
func TestCacheKey_IsOfTheUserAlone(t *testing.T) {
	t.Setenv("XDG_CONFIG_HOME", t.TempDir())
	keys := make([][]byte, 16)
	var wg sync.WaitGroup
	for i := range keys {
		wg.Go(func() {
			var err error
			if keys[i], err = CacheKey(); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	for _, key := range keys {
		if len(key) != keySize || !bytes.Equal(key, keys[0]) {
			t.Errorf("keys differ: %x and %x", key, keys[0])
		}
	}
	dir, err := os.UserConfigDir()
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "wasmctl", "cache.key")
	files, _ := os.ReadDir(filepath.Dir(path))
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 || len(files) != 1 {
		t.Errorf("%v, %v, files %v", info, err, files)
	}
	for what, spoil := range map[string]func() error{
		"lets others read it": func() error { return os.Chmod(path, 0o644) }, //nolint:gosec // what is refused
		"has 3 bytes":         func() error { return os.WriteFile(path, []byte("abc"), 0o600) },
	} {
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
		if _, err := CacheKey(); err != nil {
			t.Fatal(err)
		}
		if err := spoil(); err != nil {
			t.Fatal(err)
		}
		key, err := CacheKey()
		if err == nil || !strings.Contains(err.Error(), what) || len(key) != keySize {
			t.Errorf("%s: got %v", what, err)
		}
	}
}
