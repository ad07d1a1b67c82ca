package host

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/wasmctl/wasmctl/abi"
)

// severalGuest is the stateful guest with the controllers a, b, and so on.
func severalGuest(t *testing.T, n int, files map[string][]byte) []byte {
	t.Helper()
	guest, err := WithFiles(statefulGuest(t), files)
	if err != nil {
		t.Fatal(err)
	}
	manifests := make([]*abi.Manifest, n)
	for i := range manifests {
		manifests[i] = &abi.Manifest{Name: string(rune('a' + i))}
	}
	if guest, err = WithManifest(guest, manifests...); err != nil {
		t.Fatal(err)
	}
	return guest
}

// All instances of all controllers of a module start from one image, behave as those that
// have run the start code, know which controller they are, and draw different numbers. It
// is gone after the last controller.
func TestCommon_ControllersStartFromOneImage(t *testing.T) {
	inThisProcess(t)
	const n = 3
	guest := severalGuest(t, n, map[string][]byte{"/etc/words": []byte("aabbccdd")})
	codes, budget, dir := &Codes{}, NewBudget(1<<30), t.TempDir()
	modules := make([]*Module, n)
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() {
			var err error
			modules[i], err = Load(t.Context(), guest, Config{Controller: string(rune('a' + i)), Codes: codes, Budget: budget, CacheDir: dir})
			if err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if t.Failed() {
		return
	}
	numbers := map[string]bool{}
	for i, m := range modules {
		fresh := load(t, guest, Config{Controller: string(rune('a' + i)), CacheDir: dir})
		for range 2 {
			of, alone := anotherLease(t, m), anotherLease(t, fresh)
			for _, mode := range []byte{2, 5, 6, 7, 9, 2, 5, 6} {
				if got, want := said(of, mode), said(alone, mode); got != want {
					t.Errorf("controller %d, mode %d: %q, want %q", i, mode, got, want)
				}
			}
			for _, mode := range []byte{0, 1} {
				numbers[fmt.Sprint(mode, said(of, mode))] = true
			}
			if got := said(of, 8); !strings.Contains(got, "1ms") || !of.in.imaged {
				t.Errorf("controller %d: prepare was called %s times before", i, got)
			}
			of.in.close(context.Background())
			of.in = nil
		}
		if m.last.Load().common != modules[0].last.Load().common || m.NoImage() != nil {
			t.Errorf("controller %d has another image: %v", i, m.NoImage())
		}
	}
	if len(numbers) < 11 { // of 12, with 26 bits each
		t.Errorf("instances draw the same numbers: %v", numbers)
	}
	for _, m := range modules {
		if err := m.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if len(codes.commons.rows) != 0 || budget.Stats().Used != 0 {
		t.Errorf("%d images are left, and %d bytes", len(codes.commons.rows), budget.Stats().Used)
	}
}

// A module of the same code with other files has another image, and one whose prepare
// fails has none: its first instance runs the start code.
func TestCommon_BelongsToTheBytesOfTheModule(t *testing.T) {
	inThisProcess(t)
	codes, dir := &Codes{}, t.TempDir()
	for _, text := range []string{"aabb", "ccdd"} {
		guest := severalGuest(t, 2, map[string][]byte{"/etc/words": []byte(text)})
		of, alone := load(t, guest, Config{Controller: "a", Codes: codes, CacheDir: dir}), load(t, guest, Config{Controller: "a", CacheDir: dir})
		if got, want := said(anotherLease(t, of), 6), said(anotherLease(t, alone), 6); got != want {
			t.Errorf("the file has %s, want %s", got, want)
		}
	}
	m := load(t, severalGuest(t, 2, map[string][]byte{"/etc/trap": nil}), Config{Controller: "b", Codes: codes, CacheDir: dir})
	if got := said(anotherLease(t, m), 8); !strings.Contains(got, "0s") {
		t.Errorf("prepare was called %s times", got)
	}
	if c := m.last.Load().common; !c.never.Load() || c.made.Load() != nil {
		t.Error("there is an image of an instance that trapped")
	}
	if len(codes.list.rows) != 1 || len(codes.commons.rows) != 3 {
		t.Errorf("%d codes and %d images, want 1 and 3", len(codes.list.rows), len(codes.commons.rows))
	}
}
