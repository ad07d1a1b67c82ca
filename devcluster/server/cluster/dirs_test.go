// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

func TestDataDir_SecondHolderIsToldTheFirst(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "made", "on", "the", "way")
	first, err := lockDataDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	_, err = lockDataDir(dir)
	var inUse *InUseError
	if !errors.As(err, &inUse) {
		t.Fatalf("lock of a locked dir: %v, want an InUseError", err)
	}
	if inUse.Dir != dir || inUse.PID != os.Getpid() {
		t.Errorf("InUseError %+v, want dir %s and pid %d", *inUse, dir, os.Getpid())
	}
	first.unlock()
	second, err := lockDataDir(dir)
	if err != nil {
		t.Fatalf("after unlock: %v", err)
	}
	second.unlock()
}

// When a shorter record overwrites a longer one, a reader must not read the end of the longer one as content.
func TestDataDir_RecordReplacesALongerOne(t *testing.T) {
	dir := t.TempDir()
	d, err := lockDataDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer d.unlock()
	for _, want := range []Info{
		{PID: 1, URL: "https://127.0.0.1:12345", Kubeconfig: strings.Repeat("/long", 50)},
		{PID: 2},
	} {
		if err := d.record(want); err != nil {
			t.Fatal(err)
		}
		text, err := os.ReadFile(filepath.Join(dir, "lock"))
		if err != nil {
			t.Fatal(err)
		}
		var got Info
		if err := json.Unmarshal(text, &got); err != nil || got != want {
			t.Errorf("lock holds %q (%v), want %+v alone", text, err, want)
		}
	}
}

func TestRunDir_StaleOnesAreRemovedAndLiveOnesKept(t *testing.T) {
	base := t.TempDir()
	live, err := newRunDir(base)
	if err != nil {
		t.Fatal(err)
	}
	defer live.remove()
	stale := filepath.Join(base, runDirPrefix+"1")
	other := filepath.Join(base, "someone-elses")
	outside := t.TempDir()
	for _, dir := range []string{filepath.Join(stale, "data"), other} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	link := filepath.Join(base, runDirPrefix+"link")
	if err := os.Symlink(outside, link); err != nil {
		t.Fatal(err)
	}
	removeStaleRunDirs(base)
	if _, err := os.Stat(stale); !os.IsNotExist(err) {
		t.Errorf("stale %s: %v, want it gone", stale, err)
	}
	for _, kept := range []string{live.path, other, outside, link} {
		if _, err := os.Stat(kept); err != nil {
			t.Errorf("%s is gone: %v", kept, err)
		}
	}
}

// Many processes start at the same time: none may lose its new directory to the cleanup of another.
func TestRunDir_HammeredNoneIsLost(t *testing.T) {
	base := t.TempDir()
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 50 {
				d, err := newRunDir(base)
				if err != nil {
					t.Error(err)
					return
				}
				if err := os.WriteFile(filepath.Join(d.path, "socket"), nil, 0o600); err != nil {
					t.Errorf("a live directory was taken away: %v", err)
				}
				d.remove()
			}
		})
	}
	wg.Wait()
	if left, _ := filepath.Glob(filepath.Join(base, "*")); len(left) != 0 {
		t.Errorf("left behind: %v", left)
	}
}

func TestRunDirBase_LeavesRoomForASocket(t *testing.T) {
	t.Setenv("TMPDIR", "/"+strings.Repeat("deep/", 30))
	if got := runDirBase(); got != "/tmp" {
		t.Errorf("base %q, want /tmp: a socket below the long one cannot be opened", got)
	}
}

func TestPKI_HalfWrittenIsMadeAgain(t *testing.T) {
	dir := t.TempDir()
	first, err := ensurePKI(dir)
	if err != nil {
		t.Fatal(err)
	}
	again, err := ensurePKI(dir)
	if err != nil {
		t.Fatal(err)
	}
	if string(first.adminPEM) != string(again.adminPEM) {
		t.Error("whole key material was made again")
	}
	if err := os.Remove(filepath.Join(dir, doneMark)); err != nil {
		t.Fatal(err)
	}
	if again, err = ensurePKI(dir); err != nil {
		t.Fatal(err)
	}
	if string(first.adminPEM) == string(again.adminPEM) {
		t.Error("key material without its mark was used: half of it may be missing")
	}
	info, err := os.Stat(filepath.Join(dir, caKey))
	if err != nil {
		t.Fatal(err)
	}
	if info.Mode().Perm() != 0o600 {
		t.Errorf("mode of the CA's key %v, want 0600", info.Mode().Perm())
	}
}

func TestServerLog_ErrorCarriesThisRunsLinesOnly(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "server.log"), []byte("of an earlier run\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	l, err := openServerLog(Config{DataDir: dir})
	if err != nil {
		t.Fatal(err)
	}
	defer l.close()
	if _, err := l.Write([]byte("of this run\n")); err != nil {
		t.Fatal(err)
	}
	cause := errors.New("cause")
	got := l.explain(cause)
	if !errors.Is(got, cause) || !strings.Contains(got.Error(), "of this run") || strings.Contains(got.Error(), "earlier") {
		t.Errorf("explained: %v", got)
	}
	l.written = logMax
	if _, err := l.Write([]byte("too much")); err != nil {
		t.Errorf("write beyond the bound: %v, want it dropped", err)
	}
	if text, _ := os.ReadFile(filepath.Join(dir, "server.log")); strings.Contains(string(text), "too much") {
		t.Error("the log grew beyond its bound")
	}
}
