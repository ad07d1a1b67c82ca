package main

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/devcluster/devclustertest"
	"github.com/wasmctl/wasmctl/host"
	"github.com/wasmctl/wasmctl/runtime/admin"
)

// waiting is a module that watches a kind that is not there yet.
func (w *swapping) waiting(version string) []byte {
	w.t.Helper()
	return withManifest(w.t, modeGood, &abi.Manifest{
		Version: version, Watches: []abi.Watch{{Group: w.group, Version: "v1", Kind: "Gadget", Map: "label:swap"}},
	})
}

// beginSwap begins a swap to a module that waits, and returns its end once
// wasmctl status says so.
func (w *swapping) beginSwap(module []byte) <-chan error {
	w.t.Helper()
	until(w.t, "the controller is known", func() bool { _, err := w.session.session(w.session.name); return err == nil })
	ended := make(chan error, 1)
	ctx := w.t.Context()
	go func() {
		_, err := w.session.Swap(ctx, w.session.name, module, admin.SwapHow{})
		ended <- err
	}()
	w.awaitLoading()
	return ended
}

// awaitLoading waits until a module is shown that waits for its kind.
func (w *swapping) awaitLoading() {
	w.t.Helper()
	until(w.t, "status says what the module waits for", func() bool {
		for _, g := range w.session.trials.generations() {
			if g.State == "loading" && strings.Contains(g.Reason, "Gadget") {
				return true
			}
		}
		return false
	})
}

// TestSwap_NothingWaitsForOneThatIsPrepared: while a module waits for a kind that
// is not there, settings change, a generation on probation is judged and taken
// back, and the module waits on; another module that is asked for is swapped in
// at once, and the one that waits gives way to it.
func TestSwap_NothingWaitsForOneThatIsPrepared(t *testing.T) {
	w := newSwapping(t, worse(modeGood, 0), swapOptions())
	w.onProbation(time.Hour)
	bad := w.mustSwap(worse(modeTraps, 1))
	ended := w.beginSwap(w.waiting("1"))

	value := "blue"
	if _, err := w.session.Configure(t.Context(), w.session.name, map[string]*string{"color": &value}); err != nil {
		t.Errorf("settings do not change: %v", err)
	}
	w.awaitLoading()
	for i := range 4 {
		if err := w.put(t.Context(), i, 1); err != nil {
			t.Fatal(err)
		}
	}
	if g := w.verdict(bad); g.State != "failed" {
		t.Errorf("generation %d: %+v", bad, g)
	}
	until(t, "all objects are reconciled by the first module", func() bool { return w.observer.behind() == 0 })
	w.awaitLoading()
	select {
	case err := <-ended:
		t.Fatalf("the module waits no more: %v", err)
	default:
	}

	number := w.mustSwap(worse(modeGood, 2))
	if err := <-ended; err == nil || !strings.Contains(err.Error(), errGaveWay.Error()) || !errors.Is(err, admin.ErrRefused) {
		t.Errorf("the module that waited: %v", err)
	}
	if got := w.session.module.Generation(); got != number {
		t.Errorf("generation %d is live, want %d", got, number)
	}
	w.wantNoFaults()
}

// A module that waits for a kind is live once the kind is there, though it was
// cut short before.
func TestSwap_PreparedOnceItsKindIsThere(t *testing.T) {
	w := newSwapping(t, worse(modeGood, 0), swapOptions())
	ended := w.beginSwap(w.waiting("1"))
	if err := w.session.do(t.Context(), func(context.Context) error { return nil }); err != nil {
		t.Fatal(err)
	}
	devclustertest.Apply(t, w.cluster, []byte(strings.ReplaceAll(`
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: gadgets.GROUP}
spec:
  group: GROUP
  scope: Namespaced
  names: {plural: gadgets, singular: gadget, kind: Gadget}
  versions:
  - {name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}
`, "GROUP", w.group)))
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	if got := w.sources(); got != "swaps gadgets" {
		t.Errorf("watches %s", got)
	}
}

// A module that is worse is taken back also while the API server is away, and so
// it is with wasmctl rollback: what was found out for a generation is known.
func TestSwap_TakenBackWithoutTheAPIServer(t *testing.T) {
	link, opts := devclustertest.Proxy(t, devclustertest.Shared(t)), swapOptions()
	opts.kubeconfig = writeKubeconfig(t, link.RESTConfig())
	w := newSwapping(t, withManifest(t, modeGood, &abi.Manifest{
		Version: "1", Owns: []abi.Watch{{Version: "v1", Kind: "ConfigMap"}},
		Watches: []abi.Watch{watchOf("Secret", "label:swap"), {Group: "absent.example.dev", Version: "v1", Kind: "Gadget", Map: "label:swap", Optional: true}},
	}), opts)
	for i := range 4 {
		if err := w.put(t.Context(), i, 1); err != nil {
			t.Fatal(err)
		}
	}
	until(t, "all objects are reconciled", func() bool { return w.observer.behind() == 0 })
	w.onProbation(time.Hour)
	// It does without the second watch, and is not asked to run anything yet.
	w.session.controller.Pause()
	bad := w.mustSwap(withManifest(t, modeTraps, &abi.Manifest{Version: "2", Watches: []abi.Watch{watchOf("Secret", "label:swap")}}))
	link.Refuse()
	link.Cut()
	w.session.controller.Resume()
	if g := w.verdict(bad); g.State != "failed" {
		t.Fatalf("generation %d: %+v", bad, g)
	}
	until(t, "the first module is live", func() bool { return w.session.module.Generation() == bad+1 })
	link.Resume()
}

// A controller of several that swaps to a module that has to wait is still there.
func TestSwap_MemberThatWaitsIsStillThere(t *testing.T) {
	w := newSwapping(t, worse(modeGood, 0), swapOptions())
	file := filepath.Join(t.TempDir(), "member.wasm")
	if err := os.WriteFile(file, worse(modeGood, 1), 0o600); err != nil {
		t.Fatal(err)
	}
	p := w.session.process
	until(t, "the first controller runs", func() bool { _, err := p.session(w.session.name); return err == nil }) // else run admits both
	opts := *w.session.opts
	opts.module, opts.name = file, "member"
	p.admit(t.Context(), p.want(&opts), func(error) {})
	until(t, "the member runs", func() bool { _, err := p.session("member"); return err == nil })
	first := w.session
	w.session, _ = p.session("member")
	ended := w.beginSwap(w.waiting("1"))
	if _, err := p.session("member"); err != nil {
		t.Errorf("while it waits: %v", err)
	}
	if _, err := w.swap(worse(modeGood, 2)); err != nil {
		t.Error(err)
	}
	if err := <-ended; err == nil {
		t.Error("the module that waited is live")
	}
	w.session = first
}

// TestSwap_SlowlyWrittenFileIsOneChange: a file that is written in pieces, with
// rests between them, is swapped in once it is whole, and no part of it is
// refused.
func TestSwap_SlowlyWrittenFileIsOneChange(t *testing.T) {
	w := newSwapping(t, worse(modeGood, 0), swapOptions())
	whole := worse(modeGood, 1)
	w.session.writeRest = time.Hour // the machine may be busy
	w.session.file.move(filepath.Join(t.TempDir(), "m.wasm"))
	ctx, stop := context.WithCancel(t.Context())
	watched := make(chan struct{})
	go func() {
		defer close(watched)
		w.session.watchModule(ctx)
	}()
	for pieces := 1; pieces <= 4; pieces++ {
		if err := os.WriteFile(w.session.file.path(), whole[:len(whole)*pieces/4], 0o600); err != nil {
			t.Fatal(err)
		}
		pause(t.Context(), 500*time.Millisecond) // longer than the watch takes for rest
	}
	until(t, "the whole module is live", func() bool { return w.session.module.Digest() == host.DigestOf(whole) })
	for _, g := range w.session.trials.generations() {
		if g.State == "refused" {
			t.Errorf("%+v", g)
		}
	}
	stop()
	<-watched
}
