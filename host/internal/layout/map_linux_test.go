// SPDX-License-Identifier: Apache-2.0

package layout

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"unsafe"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/experimental"
)

// disk is a directory whose files are not in memory.
func disk(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	if err := Suits(dir, 0); errors.Is(err, ErrUnsuited) {
		t.Skipf("SKIPPED: %v: set TMPDIR to a directory on a disk", err)
	}
	return dir
}

// mapping is the line of /proc/self/maps about the page that code starts with, and how
// many bytes of the mapping are resident; "" where there is none.
func mapping(t *testing.T, code []byte) (line string, resident int) {
	t.Helper()
	smaps, err := os.ReadFile("/proc/self/smaps")
	if err != nil {
		t.Fatal(err)
	}
	start := fmt.Sprintf("%x-", uintptr(unsafe.Pointer(&code[0])))
	for l := range strings.Lines(string(smaps)) {
		switch {
		case line == "" && strings.HasPrefix(l, start):
			line = strings.TrimSpace(l)
		case line != "" && strings.HasPrefix(l, "Rss:"):
			if _, err := fmt.Sscanf(l, "Rss: %d kB", &resident); err != nil {
				t.Fatal(err)
			}
			return line, resident << 10
		}
	}
	return "", 0
}

// written is what wazero writes of a module, and the path of that below its directory.
func written(t *testing.T, module []byte) (path string, content []byte) {
	t.Helper()
	dir := t.TempDir()
	cache, err := wazero.NewCompilationCacheWithDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	r := wazero.NewRuntimeWithConfig(t.Context(), wazero.NewRuntimeConfig().WithCompilationCache(cache))
	if _, err = r.CompileModule(t.Context(), module); err == nil {
		err = errors.Join(r.Close(t.Context()), cache.Close(t.Context()))
	}
	paths, _ := filepath.Glob(filepath.Join(dir, "*", "*"))
	if err != nil || len(paths) != 1 {
		t.Fatal(paths, err)
	}
	if content, err = os.ReadFile(paths[0]); err == nil {
		path, err = filepath.Rel(dir, paths[0])
	}
	if err != nil {
		t.Fatal(err)
	}
	return path, content
}

// loaded has wazero load a module from what it is to find as written, without compiling.
func loaded(t *testing.T, module []byte, path string, content []byte) (wazero.Runtime, wazero.CompiledModule) {
	t.Helper()
	dir := t.TempDir()
	cache, err := wazero.NewCompilationCacheWithDir(dir)
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, path), content, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	r := wazero.NewRuntimeWithConfig(t.Context(), wazero.NewRuntimeConfig().WithCompilationCache(cache))
	stopped, stop := context.WithCancel(experimental.WithCompilationWorkers(t.Context(), 2))
	stop()
	compiled, err := r.CompileModule(stopped, module)
	if err != nil {
		t.Fatal(err)
	}
	return r, compiled
}

// TestInstall_IsTheSameCode: code that wazero has not loaded has the same bytes, can be
// executed and not written, does what it did, and is in memory only as far as it was
// used, where it is in a file.
func TestInstall_IsTheSameCode(t *testing.T) {
	dir := disk(t)
	for _, n := range []int{6000, 12_345} {
		module := functions(n)
		path, content := written(t, module)
		_, whole := loaded(t, module, path, content)
		want := bytes.Clone(codeOf(whole))
		for _, dirs := range [][]string{{t.TempDir() + "/none", "/dev/shm", "/proc", dir}, nil} {
			head, section := Split(bytes.NewReader(content), int64(len(content)))
			if section == nil {
				t.Fatalf("%d functions: %d bytes are not parted", n, len(content))
			}
			r, compiled := loaded(t, module, path, head)
			code, inFile, err := Map(section.Size(), section, dirs...)
			if err != nil || inFile != (dirs != nil) || !bytes.Equal(code, want) {
				t.Fatalf("%d functions in %q: in a file: %t, %v", n, dirs, inFile, err)
			}
			if err := Install(compiled, code); err != nil {
				t.Fatal(err)
			}
			if line, _ := mapping(t, code); !strings.Contains(line, " r-xp ") || inFile != strings.Contains(line, "(deleted)") {
				t.Errorf("%d functions in %q: %s", n, dirs, line)
			}
			wantSum(t, r, compiled, n)
			if inFile {
				wantRest(t, code)
				wantSum(t, r, compiled, n)
			}
			if again := codeOf(compiled); unsafe.SliceData(again) != unsafe.SliceData(code) || !bytes.Equal(again, want) {
				t.Errorf("%d functions: the code is another one", n)
			}
			if err := r.Close(context.Background()); err != nil {
				t.Error(err)
			}
		}
	}
}

func wantRest(t *testing.T, code []byte) {
	t.Helper()
	if err := Rest(code); err != nil {
		t.Error(err)
	}
	if line, resident := mapping(t, code); resident != 0 {
		t.Errorf("at rest, %d bytes are resident of %s", resident, line)
	}
}

// TestInstall_TakesOnlyAStub: a module that has its code keeps it.
func TestInstall_TakesOnlyAStub(t *testing.T) {
	const n = 100
	r, module := compiled(t, n)
	if err := Install(module, make([]byte, 100)); !errors.Is(err, errUnknown) {
		t.Errorf("got %v", err)
	}
	if err := Install(nil, nil); !errors.Is(err, errUnknown) {
		t.Errorf("of nothing: %v", err)
	}
	wantSum(t, r, module, n)
}

// TestInstall_LeavesNothing: neither files nor descriptors; and wazero unmaps the code of
// a module that was closed, once that is collected.
func TestInstall_LeavesNothing(t *testing.T) {
	dir := disk(t)
	lines := func(file string) int {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		return strings.Count(string(text), dir)
	}
	module := functions(6000)
	path, content := written(t, module)
	for range 20 {
		head, section := Split(bytes.NewReader(content), int64(len(content)))
		r, compiled := loaded(t, module, path, head)
		code, _, err := Map(section.Size(), section, dir)
		if err == nil {
			err = errors.Join(Install(compiled, code), r.Close(t.Context()))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if _, _, err := Map(1<<20, strings.NewReader("short"), dir); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("of less than was said: %v", err)
	}
	fds, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	for _, fd := range fds {
		if to, _ := os.Readlink("/proc/self/fd/" + fd.Name()); strings.HasPrefix(to, dir) {
			t.Errorf("a descriptor is open: %s", to)
		}
	}
	if files, err := os.ReadDir(dir); err != nil || len(files) > 0 {
		t.Errorf("files: %v, %v", files, err)
	}
	for lines("/proc/self/maps") > 0 { // a finalizer does it; the test ends in time or not at all
		runtime.GC()
	}
}

func TestSuits_NotAFullDisk(t *testing.T) {
	if err := Suits(disk(t), 1<<60); !errors.Is(err, ErrUnsuited) {
		t.Errorf("a full disk: %v", err)
	}
}

// TestSplit_LeavesWhatItDoesNotKnow: less code than is worth it, and any other bytes.
func TestSplit_LeavesWhatItDoesNotKnow(t *testing.T) {
	_, small := written(t, functions(10))
	_, content := written(t, functions(6000))
	for what, b := range map[string][]byte{"little code": small, "nothing": nil, "another magic": append([]byte("x"), content...), "no end": content[:len(content)/2]} {
		if head, code := Split(bytes.NewReader(b), int64(len(b))); head != nil || code != nil {
			t.Errorf("%s was parted", what)
		}
	}
}

// FuzzSplit: parts are of what was read, and no more than that.
func FuzzSplit(f *testing.F) {
	f.Add([]byte(magic + "\x02v1\x01\x00\x00\x00" + strings.Repeat("\x00", 16)))
	f.Fuzz(func(t *testing.T, b []byte) {
		head, code := Split(bytes.NewReader(b), int64(len(b)))
		if code != nil && int64(len(head))+code.Size() != int64(len(b))+stubSize {
			t.Errorf("%d bytes became %d and %d", len(b), len(head), code.Size())
		}
	})
}

// TestInstall_MovesTheLines: addresses that have a line in the source are those of the
// code, and no longer those of the stub.
func TestInstall_MovesTheLines(t *testing.T) {
	module := functions(6000)
	path, content := written(t, module)
	_, section := Split(bytes.NewReader(content), int64(len(content)))
	tail := bytes.LastIndex(content, []byte{0, 0, 0, 0, 0}) // no lines, nothing to catch
	lines := []byte{1}
	for _, n := range []uint64{2, 7, 16, 9, 32} { // two pairs of offsets, in the module and in the code
		lines = binary.LittleEndian.AppendUint64(lines, n)
	}
	content = slices.Concat(content[:tail], lines, content[tail+1:])
	head, _ := Split(bytes.NewReader(content), int64(len(content)))
	r, compiled := loaded(t, module, path, head)
	code, _, err := Map(section.Size(), section)
	if err == nil {
		err = Install(compiled, code)
	}
	if err != nil {
		t.Fatal(err)
	}
	base := uint64(uintptr(unsafe.Pointer(&code[0])))
	f, _ := fieldsOf(compiled)
	if f.lines.Len() != 2 || f.lines.Index(0).Uint() != base+16 || f.lines.Index(1).Uint() != base+32 {
		t.Errorf("lines at %x, the code is at %x", f.lines, base)
	}
	if err := r.Close(t.Context()); err != nil {
		t.Error(err)
	}
}
