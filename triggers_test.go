// SPDX-License-Identifier: Apache-2.0

package wasmctl

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/wasmctl/wasmctl/abi"
)

// Each key reconciles one object, even if it is gone from the store, and values of any type
// reconcile all objects. A restart continues with the same channels, and the end of one
// does not affect the others.
func TestTriggers_Channels(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newIdle(t)
		defer func() { r.stop() }()
		r.put("o1", 1)
		keys, all := make(chan abi.Key), make(chan int)
		c, err := r.Add(t.Context(), (&counted{name: "a"}).native(), ControllerOptions{Triggers: []Trigger{{}, ReconcileOn(keys), ReconcileAllOn(all), ReconcileOnSource(hourly{})}})
		if err != nil {
			t.Fatal(err)
		}
		var mu sync.Mutex
		var got []string // guarded by mu
		go func() {
			for result := range c.Results(t.Context()) { //nolint:errcheck // yields an error with each result
				mu.Lock()
				for _, why := range result.Reasons {
					got = append(got, result.Object.Name+" "+string(why.Type))
				}
				mu.Unlock()
			}
		}()
		synctest.Wait() // it reads
		r.start()
		takes := func(want ...string) {
			t.Helper()
			passes(time.Second)
			mu.Lock()
			defer mu.Unlock()
			less := func(a, b string) bool { return a < b }
			if diff := cmp.Diff(want, got, cmpopts.SortSlices(less)); diff != "" {
				t.Error(diff)
			}
			got = nil
		}
		takes("o0 Listed", "o1 Listed")
		keys <- abi.Key{Namespace: "shop", Name: "o1"}
		takes("o1 Triggered")
		keys <- abi.Key{Namespace: "shop", Name: "gone"}
		takes("gone Triggered")
		c.Restart()
		takes("o0 Listed", "o1 Listed")
		close(keys)
		synctest.Wait()
		all <- 7
		takes("o0 Triggered", "o1 Triggered")
		passes(time.Hour)
		takes("o0 Triggered")
	})
}

// hourly requests an object every hour.
type hourly struct{}

func (hourly) Run(ctx context.Context, reconcile func(context.Context, ...abi.Key)) error {
	tick := time.NewTicker(time.Hour)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			reconcile(ctx, abi.Key{Namespace: "shop", Name: "o0"})
		case <-ctx.Done():
			return nil
		}
	}
}

func (hourly) String() string { return "hourly" }
