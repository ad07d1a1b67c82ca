// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"

	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/internal/memapi"
	"github.com/wasmctl/wasmctl/runtime/applier"
	"github.com/wasmctl/wasmctl/runtime/controller"
	"github.com/wasmctl/wasmctl/runtime/watcher"
)

const (
	ownFinalizer = group + "/own"
	longBackoff  = time.Hour
)

// finalizing is a controller of widgets that has a finalizer and whose runs all fail, so that only a change may lead to
// another run within longBackoff.
type finalizing struct {
	t   *testing.T
	api *memapi.Server

	latency         time.Duration // of events
	request, answer time.Duration // the delays of a patch and of its response
	refuse          error         // the error of the API server, if any

	mu  sync.Mutex
	saw []int64 // guarded by mu; spec.value of each run
}

// startFinalizing starts the controller, and returns it once it watches.
func startFinalizing(t *testing.T, f *finalizing, change func(*controller.Config)) *controller.Controller {
	t.Helper()
	f.t, f.api = t, memapi.New(memapi.Config{
		Kinds: kinds, Untracked: true, Intercept: func(*memapi.Request) memapi.Fault { return memapi.Fault{Latency: f.latency} },
	})
	client, err := watcher.NewClient(&rest.Config{Host: "http://sim", Transport: f.api})
	if err != nil {
		t.Fatal(err)
	}
	cfg := controller.Config{
		Config: applier.Config{
			Controller: "own", Module: f, Cluster: f, Finalizer: ownFinalizer, Backoff: applier.Backoff{Initial: longBackoff, Max: longBackoff, Jitter: -1},
		},
		Watches: watcher.NewSet(client, watcher.Config{}), For: controller.Watch{Kind: gvk(widgets.Kind), Resource: widgets.GVR()},
	}
	change(&cfg)
	c, err := controller.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- c.Run(ctx, nil) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	f.settle(time.Second)
	return c
}

func (f *finalizing) settle(d time.Duration) {
	sleep(d)
	synctest.Wait()
}

var widget = abi.Key{Namespace: "ns", Name: "w"}

// set creates or changes the object like a user.
func (f *finalizing) set(value int64, finalizers ...string) {
	_, err := f.api.Change(widgets, widget, true, func(o *unstructured.Unstructured) error {
		if len(finalizers) > 0 {
			o.SetFinalizers(finalizers)
		}
		return unstructured.SetNestedField(o.Object, value, "spec", "value")
	})
	if err != nil {
		f.t.Error(err)
	}
}

// runs returns the values that the runs so far have seen.
func (f *finalizing) runs() []int64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.saw)
}

// Acquire implements applier.Module; the guest is f.
func (f *finalizing) Acquire(context.Context) (abi.Guest, func(), error) { return f, func() {}, nil }

// Revision, Fuel, Reconcile, Finalize and ErrorPolicy implement abi.Guest.
func (f *finalizing) Revision() uint64 { return 1 }
func (f *finalizing) Fuel() int64      { return 0 }

func (f *finalizing) Reconcile(_ context.Context, req *abi.Request) (abi.Result, error) {
	value, _, err := unstructured.NestedInt64(decode(req.Object).Object, "spec", "value")
	f.mu.Lock()
	defer f.mu.Unlock()
	f.saw = append(f.saw, value)
	return abi.Result{}, errors.Join(errors.New("fails"), err)
}

func (f *finalizing) Finalize(context.Context, *abi.Request) (abi.Result, error) {
	return abi.Result{}, errors.New("is not deleted")
}

func (f *finalizing) ErrorPolicy(context.Context, *abi.Failure) (abi.Result, error) {
	return abi.Result{}, abi.ErrNoErrorPolicy
}

// AddFinalizer implements applier.Cluster.
func (f *finalizing) AddFinalizer(ctx context.Context, object []byte, finalizer string) ([]byte, error) {
	o := decode(object)
	sleep(f.request)
	if f.refuse != nil {
		sleep(f.answer)
		return nil, f.refuse
	}
	updated, err := f.api.Change(widgets, keyOf(o), false, func(now *unstructured.Unstructured) error {
		if !slices.Equal(now.GetFinalizers(), o.GetFinalizers()) {
			return apierrors.NewConflict(widgets.GVR().GroupResource(), o.GetName(), errors.New("a test of the patch does not hold"))
		}
		now.SetFinalizers(append(now.GetFinalizers(), finalizer))
		return nil
	})
	sleep(f.answer)
	if err != nil {
		return nil, result(err)
	}
	abi.RunFrom(ctx).Wrote(abi.Write{ // so that the next run does not see the previous state (rule 22)
		Op: abi.OpAPIPatch, Group: group, Version: "v1", Resource: widgets.Resource, Key: widget,
		UID: string(updated.GetUID()), ResourceVersion: updated.GetResourceVersion(),
	})
	return encode(updated), nil
}

// Declare, RemoveFinalizer and Inspect implement applier.Cluster.
func (f *finalizing) Declare(context.Context, applier.Owner, *abi.Declared) error { return nil }

func (f *finalizing) RemoveFinalizer(context.Context, []byte, string) error { return nil }

func (f *finalizing) Inspect(context.Context, abi.Write) ([]byte, error) {
	return nil, errors.New("nothing is written")
}

// Rule 19: the run has already seen the event of the finalizer that the host adds, so the event does not cut its
// back-off short, whether it comes before the response or after it. A change by any other writer does.
func TestFinalizer_ItsEventDoesNotCutABackoffShort(t *testing.T) {
	const ms = time.Millisecond
	for _, predicates := range [][]string{nil, {"generation"}} {
		for name, latency := range map[string][3]time.Duration{ // of the patch, its response, and events
			"the event is first":  {5 * ms, 50 * ms, 5 * ms},
			"the answer is first": {5 * ms, 5 * ms, 50 * ms},
			"both at once":        {0, 0, 0},
		} {
			t.Run(fmt.Sprint(name, predicates), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					f := &finalizing{request: latency[0], answer: latency[1], latency: latency[2]}
					startFinalizing(t, f, func(cfg *controller.Config) { cfg.For.Predicates = predicates })
					f.set(1)
					f.settle(longBackoff / 2)
					if got := f.runs(); !slices.Equal(got, []int64{1}) {
						t.Fatalf("runs saw %v, want one", got)
					}
					f.set(2)
					f.settle(time.Second)
					if got := f.runs(); !slices.Equal(got, []int64{1, 2}) {
						t.Fatalf("after a change runs saw %v", got)
					}
					f.settle(longBackoff)
					if got := f.runs(); !slices.Equal(got, []int64{1, 2, 2}) {
						t.Errorf("after the back-off runs saw %v", got)
					}
				})
			})
		}
	}
}

// Rule 2: a write of another user that looks like the host's own is a change: here, the host's patch is rejected
// permanently, and a user adds the finalizer meanwhile.
func TestFinalizer_AddedBySomebodyElseIsAChange(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &finalizing{latency: time.Millisecond, request: 50 * time.Millisecond, answer: 50 * time.Millisecond, refuse: &abi.ResultError{Class: abi.ErrorPermanent, Message: "forbidden"}}
		startFinalizing(t, f, func(*controller.Config) {})
		f.set(1)
		sleep(20 * time.Millisecond)
		f.set(1, ownFinalizer)
		f.settle(time.Second)
		if got := f.runs(); !slices.Equal(got, []int64{1}) {
			t.Errorf("runs saw %v, want one: with the finalizer that is there now", got)
		}
	})
}

// Rule 2: whatever others write while the finalizer is being added, and whichever event or response is first, a run
// sees the last state. No write leads to more than one run.
func TestFinalizer_LosesNoChangeBesideIt(t *testing.T) {
	for seed := range uint64(1000) {
		synctest.Test(t, func(t *testing.T) {
			rng := rand.New(rand.NewPCG(seed, 21))
			delay := func() time.Duration { return time.Duration(rng.IntN(8)) * 5 * time.Millisecond }
			f := &finalizing{request: delay(), answer: delay(), latency: delay()}
			startFinalizing(t, f, func(*controller.Config) {})
			writes := 1 + rng.IntN(5)
			for n := range writes {
				f.set(int64(n))
				sleep(delay())
			}
			f.settle(time.Minute)
			got := f.runs()
			if len(got) == 0 || got[len(got)-1] != int64(writes-1) || len(got) > writes {
				t.Errorf("seed %d: %d writes, runs saw %v", seed, writes, got)
			}
		})
	}
}
