package main

import (
	"strings"
	"testing"
	"time"

	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/runtime/admin"
)

// status is the controller's part of the status.
func (w *swapping) status() admin.Controller { return w.session.status() }

// TestQuarantine_OnePoisonedObject: with a module that traps on one of its
// objects, that one is quarantined and shown with the guest's stack while the
// others go on; trigger tries it again, a change of the object, and another
// module, end it.
func TestQuarantine_OnePoisonedObject(t *testing.T) {
	w := newSwapping(t, worse(modeTrapsOnTenth, 0), swapOptions())
	for i := range 3 {
		if err := w.put(t.Context(), i, 1); err != nil {
			t.Fatal(err)
		}
	}
	poisoned := w.key(0).String()
	until(t, "the object is quarantined", func() bool { return w.status().Quarantined == 1 })
	c := w.status()
	q := c.Quarantine[0]
	if q.Object != poisoned || q.Kind != "trap" || q.Runs != 5 || !strings.Contains(q.Error, "wasm stack trace") || q.Until.Sub(q.Since) < 45*time.Second {
		t.Errorf("quarantine %+v", q)
	}
	text := string(statusText(&admin.Status{Controllers: []admin.Controller{c}}, screen{}))
	if !strings.Contains(text, "QUARANTINED") || !strings.Contains(text, poisoned) || strings.Contains(text, "wasm stack trace") {
		t.Errorf("status:\n%s", text)
	}
	runs := func() int {
		q := w.status().Quarantine
		if len(q) == 0 {
			return 0
		}
		return q[0].Runs
	}
	for i := range 3 { // the others go on
		if err := w.put(t.Context(), 1+i%2, 2+i); err != nil {
			t.Fatal(err)
		}
	}
	until(t, "the others are reconciled", func() bool { return w.observer.behind() == 1 })
	if n := runs(); n != 5 {
		t.Errorf("%d runs of the object in quarantine, want 5", n)
	}
	if _, err := w.session.Trigger(t.Context(), w.session.name, []abi.Key{w.key(0)}); err != nil {
		t.Fatal(err)
	}
	until(t, "the object is tried again when it is named", func() bool { return runs() == 6 })
	if err := w.put(t.Context(), 0, 9); err != nil {
		t.Fatal(err)
	}
	until(t, "a change of the object counts anew", func() bool { return runs() == 0 })
	w.mustSwap(worse(modeGood, 1))
	until(t, "the new module runs it", func() bool { return w.status().Quarantined == 0 && w.observer.behind() == 0 })
}
