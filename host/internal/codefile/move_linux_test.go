package codefile

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"strings"
	"testing"
	"unsafe"

	"github.com/tetratelabs/wazero"
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

// TestMove_IsTheSameCode: the code that was moved has the same bytes at the same
// address, can be executed and not written, does what it did, and is in memory only as
// far as it was used.
func TestMove_IsTheSameCode(t *testing.T) {
	dir := disk(t)
	for _, n := range []int{1, 70, 3000, 12_345} { // of one page, and of many with a part of the last
		r, module := compiled(t, n)
		code := Of(module)
		want := bytes.Clone(code)
		if err := Move(code, dir); err != nil {
			t.Fatal(err)
		}
		line, resident := mapping(t, code)
		if !strings.Contains(line, " r-xp ") || !strings.Contains(line, "(deleted)") || resident != 0 {
			t.Errorf("%d functions: %d bytes are resident of %s", n, resident, line)
		}
		wantSum(t, r, module, n)
		if err := Rest(code); err != nil {
			t.Error(err)
		}
		if line, resident := mapping(t, code); resident != 0 {
			t.Errorf("%d functions: at rest, %d bytes are resident of %s", n, resident, line)
		}
		wantSum(t, r, module, n)
		if again := Of(module); unsafe.SliceData(again) != unsafe.SliceData(code) || !bytes.Equal(again, want) {
			t.Errorf("%d functions: the code is another one", n)
		}
		if err := r.Close(context.Background()); err != nil {
			t.Error(err)
		}
	}
}

// TestMove_LeavesNothing: neither files nor descriptors; and wazero unmaps the code of a
// module that was closed, once that is collected.
func TestMove_LeavesNothing(t *testing.T) {
	dir := disk(t)
	lines := func(file string) int {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		return strings.Count(string(text), dir)
	}
	const n = 20
	for range n {
		r := wazero.NewRuntime(t.Context())
		module, err := r.CompileModule(t.Context(), functions(100))
		if err == nil {
			err = errors.Join(Move(Of(module), dir), r.Close(t.Context()))
		}
		if err != nil {
			t.Fatal(err)
		}
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

// TestMove_LeavesTheCodeWhereItCannot: in a directory that does not suit, or is not
// there, the code stays as good as it was.
func TestMove_LeavesTheCodeWhereItCannot(t *testing.T) {
	const n = 3000
	r, module := compiled(t, n)
	code := Of(module)
	for dir, want := range map[string]error{"/dev/shm": ErrUnsuited, "/proc": nil, t.TempDir() + "/none": os.ErrNotExist} {
		if dir == "/dev/shm" && Suits(dir, 0) == nil {
			continue // it is not in memory on this machine
		}
		err := Move(code, dir)
		if err == nil || want != nil && !errors.Is(err, want) || errors.Is(err, ErrLost) {
			t.Errorf("%s: %v", dir, err)
		}
	}
	if err := Suits(disk(t), 1<<60); !errors.Is(err, ErrUnsuited) {
		t.Errorf("a full disk: %v", err)
	}
	if err := Move(make([]byte, 100)[1:], disk(t)); err == nil || errors.Is(err, ErrLost) {
		t.Errorf("memory of Go: %v", err)
	}
	if line, _ := mapping(t, code); strings.Contains(line, "(deleted)") {
		t.Errorf("it was moved: %s", line)
	}
	wantSum(t, r, module, n)
}
