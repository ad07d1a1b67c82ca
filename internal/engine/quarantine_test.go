// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"strings"
	"testing"
	"time"

	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/internal/enginetest"
	"github.com/wasmctl/wasmctl/runtime/applier/quarantine"
)

// quarantined returns the objects in quarantine.
func (w *swapping) quarantined() []quarantine.State {
	list, _ := w.engine.Runtime.Quarantined(20)
	return list
}

// TestQuarantine_OneObjectKeepsFailing: a module traps on one of its objects. That object
// is quarantined and shown with the guest's stack, while the others continue. A trigger
// tries it again; a change of the object or another module ends the quarantine.
func TestQuarantine_OneObjectKeepsFailing(t *testing.T) {
	w := newSwapping(t, enginetest.Worse(enginetest.TrapsOnTenth, 0), swapOptions())
	for i := range 3 {
		if err := w.put(t.Context(), i, 1); err != nil {
			t.Fatal(err)
		}
	}
	enginetest.Until(t, "the object is quarantined", func() bool { return len(w.quarantined()) == 1 })
	q := w.quarantined()[0]
	if q.Key != w.key(0) || q.Kind != abi.FailureTrap || q.Runs != 5 || !strings.Contains(q.Text, "unreachable") || q.Until.Sub(q.Since) < 45*time.Second {
		t.Errorf("quarantine %+v", q)
	}
	if n := w.engine.Runtime.Stats().Reconciles.Quarantined; n != 1 {
		t.Errorf("%d objects are counted", n)
	}
	runs := func() int {
		q := w.quarantined()
		if len(q) == 0 {
			return 0
		}
		return q[0].Runs
	}
	for i := range 3 { // the others continue
		if err := w.put(t.Context(), 1+i%2, 2+i); err != nil {
			t.Fatal(err)
		}
	}
	enginetest.Until(t, "the others are reconciled", func() bool { return w.observer.behind() == 1 })
	if n := runs(); n != 5 {
		t.Errorf("%d runs of the object in quarantine, want 5", n)
	}
	if _, err := w.engine.Trigger(t.Context(), []abi.Key{w.key(0)}, false); err != nil {
		t.Fatal(err)
	}
	enginetest.Until(t, "the object is retried when it is named", func() bool { return runs() == 6 })
	if err := w.put(t.Context(), 0, 9); err != nil {
		t.Fatal(err)
	}
	enginetest.Until(t, "a change of the object counts again", func() bool { return runs() == 0 })
	w.mustSwap(enginetest.Worse(enginetest.Good, 1))
	enginetest.Until(t, "the new module runs it", func() bool { return len(w.quarantined()) == 0 && w.observer.behind() == 0 })
}
