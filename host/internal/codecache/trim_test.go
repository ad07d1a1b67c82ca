// SPDX-License-Identifier: Apache-2.0

package codecache

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// Only what wazero has written is removed: the oldest code beyond the limit, and
// what was not finished long ago.
func TestTrim_RemovesTheOldestCodeAndNothingElse(t *testing.T) {
	dir, now := t.TempDir(), time.Now()
	hash := func(n int) string { return strings.Repeat(fmt.Sprint(n), 64) }
	for path, age := range map[string]time.Duration{
		"wazero-v1/" + hash(1):              time.Hour,
		"wazero-v1/" + hash(2):              2 * time.Hour,
		"wazero-v0/" + hash(3):              3 * time.Hour,
		"wazero-v1/" + hash(4) + ".123.tmp": time.Minute,
		"wazero-v1/" + hash(5) + ".123.tmp": 2 * time.Hour,
		"wasmctl-1/" + hash(8):              4 * time.Hour,
		"wazero-v1/thesis.txt":              1000 * time.Hour,
		"thesis/" + hash(6):                 1000 * time.Hour,
		hash(7):                             1000 * time.Hour,
	} {
		path = filepath.Join(dir, path)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, make([]byte, 100), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(path, now.Add(-age), now.Add(-age)); err != nil {
			t.Fatal(err)
		}
	}
	before := tree(t, dir)
	trim(dir, 200, now)
	gone := slices.DeleteFunc(before, func(path string) bool { return slices.Contains(tree(t, dir), path) })
	if diff := cmp.Diff([]string{"wasmctl-1/" + hash(8), "wazero-v0/" + hash(3), "wazero-v1/" + hash(5) + ".123.tmp"}, gone); diff != "" {
		t.Error(diff)
	}
	trim(filepath.Join(dir, "not there"), 0, now)
}

// tree lists the files below a directory.
func tree(t *testing.T, dir string) (out []string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			path, err = filepath.Rel(dir, path)
			out = append(out, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}
