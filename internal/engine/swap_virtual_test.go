// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/client-go/rest"

	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/api/v1alpha1"
	"github.com/wasmctl/wasmctl/internal/enginetest"
	"github.com/wasmctl/wasmctl/internal/memapi"
	"github.com/wasmctl/wasmctl/runtime/watcher"
)

// virtually runs a Controller on ConfigMaps in memory, in virtual time.
func virtually(t *testing.T, module []byte, objects int, test func(w *swapping)) {
	synctest.Test(t, func(t *testing.T) {
		api := memapi.New(memapi.Config{})
		w := &swapping{t: t, ns: "shop", watches: watcher.NewTenant(0, 2, nil)}
		for i := range objects {
			err := api.Put(map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{
				"name": enginetest.ObjectName(i), "namespace": w.ns, "labels": map[string]any{"object": enginetest.ObjectName(i)},
			}, "spec": map[string]any{"text": fmt.Sprint("1-", i)}})
			if err != nil {
				t.Fatal(err)
			}
		}
		opts := swapOptions()
		opts.config = &rest.Config{Host: "http://memory", Transport: api}
		opts.For, opts.shared.CacheDir, opts.Rollout.Probation = v1alpha1.KindOf("configmaps"), "", "1m"
		defer w.run(module, opts)()
		test(w)
	})
}

// lastBy returns the revision of an object's last successful run.
func (w *swapping) lastBy(i int) uint64 {
	w.observer.mu.Lock()
	defer w.observer.mu.Unlock()
	return w.observer.by[w.key(i)]
}

// passes lets virtual time pass, and waits until everything that is due has happened.
func passes(d time.Duration) {
	<-time.After(d)
	synctest.Wait()
}

func (w *swapping) wantState(when string, number uint64, want string) {
	w.t.Helper()
	if got := w.stateOf(number); got != want {
		w.t.Errorf("%s revision %d is %q, want %q", when, number, got, want)
	}
}

// TestSwap_InVirtualTime checks the times of probation, canary and rollback to the second,
// with real guests and a complete Controller.
func TestSwap_InVirtualTime(t *testing.T) {
	const objects = 6
	virtually(t, enginetest.Worse(enginetest.Good, 0), objects, func(w *swapping) {
		all := func(revision uint64) {
			w.t.Helper()
			for i := range objects {
				if got := w.lastBy(i); got != revision {
					w.t.Errorf("o%d was last run by revision %d, want %d", i, got, revision)
				}
			}
		}
		passes(time.Second)
		all(1)

		second := w.mustSwap(enginetest.Worse(enginetest.Good, 1))
		passes(59 * time.Second)
		all(second)
		w.wantState("before the end of its probation", second, "probation")
		passes(2 * time.Second)
		w.wantState("after its probation", second, "live")

		options := w.bySelector(1, 3)
		options.Time = 5 * time.Minute
		third := w.canary(enginetest.Worse(enginetest.Good, 2), options)
		passes(5*time.Minute - time.Second)
		w.wantState("before the end of its time", third, "canary")
		for i, want := range []uint64{second, third, second, third} {
			if got := w.lastBy(i); got != want {
				w.t.Errorf("with a canary o%d was last run by revision %d, want %d", i, got, want)
			}
		}
		passes(2 * time.Second)
		w.wantState("promoted", third, "probation")
		all(third)
		passes(time.Minute)
		w.wantState("in the end", third, "live")

		bad := w.mustSwap(enginetest.Worse(enginetest.Traps, 3))
		passes(2 * time.Second)
		w.wantState("one that traps", bad, "failed")
		all(bad + 1)
		passes(host15)
		if n := len(w.engine.Module.Revisions()); n != 1 {
			w.t.Errorf("%d revisions are kept after their time", n)
		}
		w.wantNoFaults()
	})
}

// host15 is more than host.DefaultKeepFor.
const host15 = 16 * time.Minute

// TestSwap_HammerInVirtualTime: objects are triggered all the time, while modules are
// swapped in on some or all objects, promoted, aborted, rolled back and given settings. No
// object runs in two revisions at once, and the last request takes effect.
func TestSwap_HammerInVirtualTime(t *testing.T) {
	const objects, rounds = 8, 30
	virtually(t, enginetest.Worse(enginetest.Good, 0), objects, func(w *swapping) {
		passes(time.Second)
		ctx, stop := context.WithCancel(w.t.Context())
		var wg sync.WaitGroup
		for i := range objects {
			wg.Go(func() {
				for ctx.Err() == nil {
					if _, err := w.engine.Trigger(ctx, []abi.Key{w.key(i)}, false); err != nil && ctx.Err() == nil {
						w.t.Error(err)
						return
					}
					<-time.After(time.Duration(37+i) * time.Millisecond)
				}
			})
		}
		w.onProbation(time.Second)
		for round := range rounds {
			options := w.bySelector(round%objects, (round+3)%objects)
			switch round % 6 {
			case 0:
				w.mustSwap(enginetest.Worse(enginetest.Good, 100+round))
			case 1:
				w.canary(enginetest.Worse(enginetest.Good, 100+round), options)
			case 2:
				w.steerCanary(true)
			case 3:
				w.canary(enginetest.Worse(enginetest.Traps, 100+round), options)
			case 4:
				if _, err := w.life.Override(w.t.Context(), map[string]*string{"round": new(fmt.Sprint(round))}); err != nil {
					w.t.Error(err)
				}
				w.canary(enginetest.Worse(enginetest.Good, 100+round), options)
				w.steerCanary(false)
			case 5:
				if _, _, err := w.life.Rollback(w.t.Context(), 0, "test"); err != nil {
					w.t.Error(err)
				}
			}
			passes(time.Duration(round%4) * 700 * time.Millisecond)
		}
		stop()
		wg.Wait()
		passes(time.Hour) // retries of runs that trapped
		live := w.engine.Module.Revision()
		if _, err := w.engine.Trigger(w.t.Context(), nil, false); err != nil {
			w.t.Error(err)
		}
		passes(time.Minute)
		for i := range objects {
			if got := w.lastBy(i); got != live {
				w.t.Errorf("o%d was last run by revision %d, want %d", i, got, live)
			}
		}
		if n := len(w.engine.Module.Revisions()); n != 1 {
			w.t.Errorf("%d revisions are left", n)
		}
		w.wantNoFaults()
	})
}

// TestSwap_TheBoundOfWatchesHoldsForBothModules: a watch that both modules need counts once. If the watches of both exceed the bound of the
// tenant, the swap is refused with the reason, and the live module goes on.
func TestSwap_TheBoundOfWatchesHoldsForBothModules(t *testing.T) {
	manifest := func(version string, kinds ...string) []byte {
		m := &abi.Manifest{Version: version, Capabilities: []abi.Capability{{Resource: "serviceaccounts", Verbs: []string{"list", "watch"}}}}
		for _, kind := range kinds {
			m.Watches = append(m.Watches, watchOf(kind, "label:swap"))
		}
		return enginetest.WithManifest(t, enginetest.Good, m)
	}
	virtually(t, manifest("1", "Secret"), 1, func(w *swapping) {
		passes(time.Second)
		w.mustSwap(manifest("2", "Secret"))
		passes(time.Hour)
		began := time.Now()
		_, err := w.swap(manifest("3", "ServiceAccount"))
		if err == nil || !enginetest.ContainsAll(err.Error(), "serviceaccounts", "2 watches", "--max-watches") {
			w.t.Errorf("%v, want the bound", err)
		}
		if d := time.Since(began); d > 2*time.Minute {
			w.t.Errorf("the swap was refused after %v", d)
		}
		w.mustSwap(manifest("4"))
		passes(time.Hour) // until no rollback needs the watch of Secrets
		w.mustSwap(manifest("5", "ServiceAccount"))
		if got := w.sources(); got != "configmaps serviceaccounts" {
			w.t.Errorf("watches %s", got)
		}
		w.wantNoFaults()
	})
}
