// SPDX-License-Identifier: Apache-2.0

package filewatch

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// growing runs a Tree on a new folder and returns it with a channel that has a
// value after each change.
func growing(t *testing.T) (dir string, changed chan struct{}) {
	t.Helper()
	dir, changed = t.TempDir(), make(chan struct{}, 100)
	tree := Tree{
		Path: dir, Settle: 20 * time.Millisecond, Poll: time.Hour,
		Skip:     func(name string) bool { return strings.HasPrefix(name, ".") || strings.HasSuffix(name, ".wasm") },
		OnChange: func(context.Context) { changed <- struct{}{} },
		OnError:  func(err error) { t.Error(err) },
	}
	since, err := tree.Stamp()
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- tree.Run(ctx, since) }()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return dir, changed
}

func writeFile(t *testing.T, dir, name, text string) {
	t.Helper()
	path := filepath.Join(dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// Writing, adding in a new folder, renaming over and removing a file are changes; changes of skipped files are not.
func TestTree_TellsOfEachChange(t *testing.T) {
	dir, changed := growing(t)
	for _, step := range []struct {
		name string
		do   func()
	}{
		{"a file", func() { writeFile(t, dir, "a.go", "1") }},
		{"its content", func() { writeFile(t, dir, "a.go", "22") }},
		{"in a new folder", func() { writeFile(t, dir, "sub/deep/b.go", "1") }},
		{"in the same folder, later", func() { writeFile(t, dir, "sub/deep/b.go", "333") }},
		{"renamed over", func() {
			writeFile(t, dir, ".a.go.tmp", "4444")
			if err := os.Rename(filepath.Join(dir, ".a.go.tmp"), filepath.Join(dir, "a.go")); err != nil {
				t.Fatal(err)
			}
		}},
		{"removed", func() {
			if err := os.Remove(filepath.Join(dir, "sub/deep/b.go")); err != nil {
				t.Fatal(err)
			}
		}},
	} {
		for len(changed) > 0 {
			<-changed
		}
		step.do()
		select {
		case <-changed:
		case <-time.After(time.Minute):
			t.Fatalf("%s: nothing was told", step.name)
		}
	}
}

// Skipped files are not part of the state; all others are.
func TestTree_StampLeavesOutWhatIsSkipped(t *testing.T) {
	tree := Tree{Path: t.TempDir(), Skip: func(name string) bool { return name == "target" || strings.HasSuffix(name, ".wasm") }}
	stamp := func() Stamp {
		t.Helper()
		s, err := tree.Stamp()
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	writeFile(t, tree.Path, "main.rs", "1")
	before := stamp()
	writeFile(t, tree.Path, "target/x", "1")
	writeFile(t, tree.Path, "out.wasm", "1")
	if stamp() != before {
		t.Error("what is skipped counts")
	}
	writeFile(t, tree.Path, "lib.rs", "1")
	if stamp() == before {
		t.Error("a new file does not count")
	}
	gone := Tree{Path: filepath.Join(tree.Path, "none")}
	if err := gone.Run(t.Context(), Stamp{}); err == nil || !strings.Contains(err.Error(), "folder[") {
		t.Errorf("a folder that is not there: %v", err)
	}
}
