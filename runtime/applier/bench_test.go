// SPDX-License-Identifier: Apache-2.0

package applier

import (
	"context"
	"testing"
	"time"

	"github.com/wasmctl/wasmctl/abi"
)

// idle is a guest that does nothing.
type idle struct{ busy }

func (i *idle) Acquire(context.Context) (abi.Guest, func(), error) { return i, func() {}, nil }
func (i *idle) Reconcile(context.Context, *abi.Request) (abi.Result, error) {
	return abi.Result{}, nil
}

// BenchmarkApply is the cost of a run without its guest: one guest does nothing, another writes (so that the next run
// uses the cache), for a plain object of a few hundred bytes.
func BenchmarkApply(b *testing.B) {
	object := (&cluster{t: b, finalizers: []any{finalizerName}}).object()
	for name, module := range map[string]Module{"idle": &idle{}, "writing": &busy{}} {
		b.Run(name, func(b *testing.B) {
			a, err := New(Config{
				Controller: "test", Module: module, Cache: instant{}, Cluster: &cluster{t: b}, Finalizer: finalizerName, Observer: EndedFunc(func(*Outcome) {}),
				Lookup: func(abi.Key) Object { return raw(object) },
			})
			if err != nil {
				b.Fatal(err)
			}
			b.ReportAllocs()
			for b.Loop() {
				a.Apply(b.Context(), testKey, testReason, time.Time{})
			}
		})
	}
}

// BenchmarkReadHead is the cost of reading an object's metadata.
func BenchmarkReadHead(b *testing.B) {
	object := (&cluster{t: b, finalizers: []any{finalizerName}}).object()
	b.ReportAllocs()
	for b.Loop() {
		if _, err := readHead(object, finalizerName); err != nil {
			b.Fatal(err)
		}
	}
}
