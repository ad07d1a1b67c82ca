// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"bytes"
	"errors"
	"io"
	"runtime"
	"testing"

	"github.com/wasmctl/wasmctl/host/load"
	"github.com/wasmctl/wasmctl/host/share"
)

// zeros writes a module of n zeros.
func zeros(n int64) func(io.Writer) error {
	return func(w io.Writer) error {
		for block := make([]byte, 64<<10); n > 0; n -= int64(len(block)) {
			if _, err := w.Write(block[:min(n, int64(len(block)))]); err != nil {
				return err
			}
		}
		return nil
	}
}

// Modules are charged before they are stored, once for each digest, and a module that does not
// fit, or that cannot be read to its end, leaves nothing.
func TestFiles_AreChargedWhileTheyAreHeld(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	f := newFiles()
	f.budget = share.NewBudget(8<<20, 0)
	used := func(want int64) {
		t.Helper()
		if got := f.budget.Stats().Used; got != want {
			t.Errorf("%d bytes are charged, want %d", got, want)
		}
	}
	first, digest, err := f.store("a", zeros(3<<20))
	if err != nil || digest != load.DigestOf(make([]byte, 3<<20)) {
		t.Fatalf("%s, %v", digest, err)
	}
	if got, err := first.Get(); err != nil || !bytes.Equal(got, make([]byte, 3<<20)) {
		t.Errorf("%d bytes, %v", len(got), err)
	}
	used(3 << 20)
	if again, _, err := f.store("b", zeros(2<<20)); err != nil || again == first {
		t.Error(err)
	}
	if _, _, err := f.store("a", zeros(2<<20)); !errors.Is(err, share.ErrMemoryBudget) {
		t.Errorf("more than half of what is left: %v", err)
	}
	broken := errors.New("broken")
	if _, _, err := f.store("c", func(w io.Writer) error { return errors.Join(zeros(1<<20)(w), broken) }); !errors.Is(err, broken) {
		t.Error(err)
	}
	runtime.KeepAlive(first)
}

// Bytes that are in use are shared, and charged to the tenant that had them first.
func TestFiles_OfOneDigestAreChargedOnce(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	f := newFiles()
	first, _, err := f.store("a", zeros(1<<20))
	if err != nil {
		t.Fatal(err)
	}
	if again, _, err := f.store("b", zeros(1<<20)); err != nil || again != first {
		t.Errorf("the bytes are stored twice, %v", err)
	}
	if list := f.budget.Usage(); len(list) != 1 || list[0].Tenant != "a" || list[0].Memory != 1<<20 {
		t.Errorf("%+v", list)
	}
	runtime.KeepAlive(first)
}
