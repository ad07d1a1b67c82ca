// SPDX-License-Identifier: Apache-2.0

package atomicfile_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/wasmctl/wasmctl/internal/atomicfile"
)

// TestReplace_LeavesOneFile: the new content has the mode, and nothing else remains, whether or not the file could be written.
func TestReplace_LeavesOneFile(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "a")
	for _, content := range []string{"old", "new"} {
		if err := atomicfile.Replace(path, []byte(content), 0o640); err != nil {
			t.Fatal(err)
		}
		info, err := os.Stat(path)
		got, readErr := os.ReadFile(path) //nolint:gosec // of the test
		if err != nil || readErr != nil || string(got) != content || info.Mode() != 0o640 {
			t.Errorf("%q of mode %v, %v, %v", got, info.Mode(), err, readErr)
		}
	}
	folder := filepath.Join(dir, "b")
	if err := os.MkdirAll(filepath.Join(folder, "full"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := atomicfile.Replace(folder, nil, 0o600); err == nil {
		t.Error("a folder is replaced")
	}
	if atomicfile.Check(folder) == nil || atomicfile.Check(path) != nil || atomicfile.Check(filepath.Join(dir, "none", "c")) == nil {
		t.Error("only the file can be replaced")
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 2 {
		t.Errorf("%v, %v", left, err)
	}
}
