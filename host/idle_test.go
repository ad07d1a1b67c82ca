package host

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/wasmctl/wasmctl/testdata/wasm"
)

// An instance that nothing runs in is closed in time, each after its own last run,
// and the next run gets a fresh one.
func TestIdle_InstancesAreClosedInTime(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		b := NewBudget(pages(100))
		m := load(t, wasm.Calls, Config{Budget: b, Concurrency: 2, KeepIdle: time.Minute})
		idle := func() int { synctest.Wait(); return len(m.last.Load().idle) }
		run := func() {
			guest, release, err := m.Acquire(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			defer release()
			if _, err := guest.Reconcile(t.Context(), request(0)); err != nil {
				t.Fatal(err)
			}
		}
		_, releaseOne, err := m.Acquire(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		run() // the other instance
		time.Sleep(30 * time.Second)
		releaseOne()
		if n := idle(); n != 2 {
			t.Fatalf("%d instances are idle, want 2", n)
		}
		time.Sleep(29 * time.Second)
		if n := idle(); n != 2 {
			t.Errorf("%d instances are idle after 59 s, want 2", n)
		}
		time.Sleep(time.Second)
		if n := idle(); n != 1 {
			t.Errorf("%d instances are idle after a minute, want 1", n)
		}
		for range 5 { // what is used stays
			time.Sleep(20 * time.Second)
			run()
		}
		if n := idle(); n != 1 {
			t.Errorf("%d instances are idle although one is used, want 1", n)
		}
		time.Sleep(time.Minute)
		if n := idle(); n != 0 {
			t.Errorf("%d instances are idle, want 0", n)
		}
		used(t, b, 0)
		run()
		if n := idle(); n != 1 {
			t.Errorf("%d instances are idle after a run, want 1", n)
		}
	})
}
