// SPDX-License-Identifier: Apache-2.0

package host

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/host/internal/instance"
	"github.com/wasmctl/wasmctl/host/load"
	"github.com/wasmctl/wasmctl/host/share"
)

// severalGuest is the stateful guest with the controllers a, b, and so on.
func severalGuest(t *testing.T, n int, files map[string][]byte) []byte {
	t.Helper()
	guest, err := load.WithFiles(statefulGuest(t), files)
	if err != nil {
		t.Fatal(err)
	}
	manifests := make([]*abi.Manifest, n)
	for i := range manifests {
		manifests[i] = &abi.Manifest{Name: string(rune('a' + i))}
	}
	if guest, err = load.WithManifest(guest, manifests...); err != nil {
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
	codes, budget, dir := &Codes{}, share.NewBudget(1<<30, 0), t.TempDir()
	modules := make([]*Module, n)
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() {
			var err error
			modules[i], err = Load(t.Context(), guest, Config{Controller: string(rune('a' + i)), Process: Process{Codes: codes, Budget: budget}, Code: load.Options{CacheDir: dir}})
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
		fresh := loaded(t, guest, Config{Controller: string(rune('a' + i)), Code: load.Options{CacheDir: dir}})
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
			if got := said(of, 8); !strings.Contains(got, "1ms") || !of.in.Imaged {
				t.Errorf("controller %d: prepare was called %s times before", i, got)
			}
			of.in.Close(context.Background())
			of.in = nil
		}
		if !m.last.Load().maker.(*instance.LocalMaker).SharesImage() || m.NoImage() != nil {
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
	if codes.images.Len() != 0 || budget.Stats().Used != 0 {
		t.Errorf("%d images are left, and %d bytes", codes.images.Len(), budget.Stats().Used)
	}
}

// A module of the same code with other files has another image, and one whose prepare
// fails has none: its first instance runs the start code.
func TestCommon_BelongsToTheBytesOfTheModule(t *testing.T) {
	inThisProcess(t)
	codes, dir := &Codes{}, t.TempDir()
	for _, text := range []string{"aabb", "ccdd"} {
		guest := severalGuest(t, 2, map[string][]byte{"/etc/words": []byte(text)})
		of, alone := loaded(t, guest, Config{Controller: "a", Process: Process{Codes: codes}, Code: load.Options{CacheDir: dir}}), loaded(t, guest, Config{Controller: "a", Code: load.Options{CacheDir: dir}})
		if got, want := said(anotherLease(t, of), 6), said(anotherLease(t, alone), 6); got != want {
			t.Errorf("the file has %s, want %s", got, want)
		}
	}
	m := loaded(t, severalGuest(t, 2, map[string][]byte{"/etc/trap": nil}), Config{Controller: "b", Process: Process{Codes: codes}, Code: load.Options{CacheDir: dir}})
	if got := said(anotherLease(t, m), 8); !strings.Contains(got, "0s") {
		t.Errorf("prepare was called %s times", got)
	}
	if m.last.Load().maker.(*instance.LocalMaker).SharesImage() {
		t.Error("there is an image of an instance that trapped")
	}
	if codes.codes.Len() != 1 || codes.images.Len() != 3 {
		t.Errorf("%d codes and %d images, want 1 and 3", codes.codes.Len(), codes.images.Len())
	}
}

// Tenants have images of their own, even of the same module: a number that start code has
// drawn is not that of another tenant. Random bytes that prepare_controllers has drawn are in
// no image at all.
func TestCommon_TenantsDoNotShare(t *testing.T) {
	inThisProcess(t)
	codes, dir, guest := &Codes{}, t.TempDir(), severalGuest(t, 2, nil)
	load := func(module []byte, tenant, controller string) *Module {
		return loaded(t, module, Config{Controller: controller, Process: Process{Codes: codes, Tenant: tenant}, Code: load.Options{CacheDir: dir}})
	}
	lot := func(m *Module) string { return said(anotherLease(t, m), 11) }
	one, same, other := lot(load(guest, "one", "a")), lot(load(guest, "one", "b")), lot(load(guest, "other", "a"))
	if one != same || one == other || codes.images.Len() != 2 {
		t.Errorf("one tenant has %s and %s, the other %s; %d images", one, same, other, codes.images.Len())
	}
	for _, entry := range "ip" {
		drawing, shown := (&randomGuest{module: guest}).drawing(entry), map[string]bool{}
		for _, m := range []*Module{load(drawing, "one", "a"), load(drawing, "one", "b")} {
			for range 3 {
				shown[said(anotherLease(t, m), 10)] = true
			}
			if m.last.Load().maker.(*instance.LocalMaker).SharesImage() {
				t.Errorf("%c: there is an image with random bytes", entry)
			}
		}
		if entry == 'i' && len(shown) != 6 { // without the image, prepare_controllers is not called
			t.Errorf("two instances show the same bytes: %v", shown)
		}
	}
}
