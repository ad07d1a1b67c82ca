// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/runtime/applier/guard"
	"github.com/wasmctl/wasmctl/runtime/controller"
)

// entangled is a module whose runs change another object.
type entangled struct {
	*finalizing

	next map[string]string // the object that the run of an object changes

	mu   sync.Mutex
	runs map[string]int // guarded by mu
}

func (e *entangled) Acquire(context.Context) (abi.Guest, func(), error) { return e, func() {}, nil }

func (e *entangled) Reconcile(ctx context.Context, req *abi.Request) (abi.Result, error) {
	e.mu.Lock()
	e.runs[req.Key.Name]++
	e.mu.Unlock()
	if next := e.next[req.Key.Name]; next != "" {
		w := e.raise(next)
		abi.RunFrom(ctx).Wrote(w)
	}
	return abi.Result{}, nil
}

// raise changes an object, and creates it if necessary.
func (e *entangled) raise(name string) abi.Write {
	key := abi.Key{Namespace: widget.Namespace, Name: name}
	o, err := e.api.Change(widgets, key, true, func(o *unstructured.Unstructured) error {
		value, _, _ := unstructured.NestedInt64(o.Object, "spec", "value")
		return unstructured.SetNestedField(o.Object, value+1, "spec", "value")
	})
	if err != nil {
		e.t.Error(err)
		return abi.Write{}
	}
	return abi.Write{
		Op: abi.OpAPIPatch, Group: group, Version: "v1", Resource: widgets.Resource, Key: key, UID: string(o.GetUID()), ResourceVersion: o.GetResourceVersion(),
	}
}

// count returns the number of runs since the last call.
func (e *entangled) count() map[string]int {
	e.mu.Lock()
	defer e.mu.Unlock()
	defer func() { e.runs = map[string]int{} }()
	return e.runs
}

func startEntangled(t *testing.T, next map[string]string) (*entangled, *controller.Controller) {
	t.Helper()
	e := &entangled{finalizing: &finalizing{latency: 5 * time.Millisecond}, next: next, runs: map[string]int{}}
	c := startFinalizing(t, e.finalizing, func(cfg *controller.Config) { cfg.Module, cfg.Finalizer = e, "" })
	return e, c
}

// Two objects of one controller whose runs change each other end at about a run a minute, and are named as hot.
func TestChain_ObjectsThatWakeEachOtherAreSlowed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, c := startEntangled(t, map[string]string{"a": "b", "b": "a"})
		e.raise("a")
		e.settle(time.Minute)
		for name, n := range e.count() {
			if n > 60 {
				t.Errorf("%s ran %d times in the first minute", name, n)
			}
		}
		if hot := c.Hot(5); len(hot) == 0 || hot[0].Cause != guard.CauseChain {
			t.Errorf("in hot loops: %+v", hot)
		}
		e.settle(10 * time.Minute)
		e.count()
		e.settle(10 * time.Minute)
		for name, n := range e.count() {
			if n > 25 {
				t.Errorf("%s ran %d times in ten minutes", name, n)
			}
		}
	})
}

// A chain that ends takes no time, however often another client starts it.
func TestChain_OfThreeObjectsIsNotSlowed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, c := startEntangled(t, map[string]string{"a": "b", "b": "c"})
		for i := range 100 {
			e.raise("a")
			e.settle(100 * time.Millisecond)
			if runs := e.count(); runs["a"] != 1 || runs["b"] != 1 || runs["c"] != 1 || len(c.Hot(5)) > 0 {
				t.Fatalf("change %d: %v, in hot loops: %+v", i, runs, c.Hot(5))
			}
		}
	})
}
