// SPDX-License-Identifier: Apache-2.0

package queue_test

import (
	"context"
	"testing"

	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/runtime/queue"
	"github.com/wasmctl/wasmctl/runtime/reflector"
)

// BenchmarkMap is the cost of one event whose object changes and still affects the same one.
func BenchmarkMap(b *testing.B) {
	child := object(b, "ns", "child", owner("apps/v1", "Deployment", "a", true))
	tag := tagged(b, "ns", "s", "a")
	for _, c := range []struct {
		name   string
		mapper queue.Mapper
		object *reflector.Object
	}{
		{"self", queue.Self, child},
		{"owner", queue.Owners{Group: "apps", Kind: "Deployment"}.Map, child},
		{"label", queue.Label{Key: refKey}.Map, tag},
		{"annotation", queue.Annotation{Key: refKey}.Map, tag},
	} {
		b.Run(c.name, func(b *testing.B) {
			ev := reflector.Event{Type: reflector.Applied, Old: c.object, New: c.object}
			dst := make([]queue.Request, 0, 8)
			b.ReportAllocs()
			for b.Loop() {
				if dst = c.mapper(dst[:0], ev); len(dst) != 1 {
					b.Fatal(dst)
				}
			}
		})
	}
}

// BenchmarkMergeReasons is the cost of a trigger for an object that is queued already.
func BenchmarkMergeReasons(b *testing.B) {
	next := one(abi.ReasonObjectUpdated)
	b.Run("same", func(b *testing.B) {
		queued := one(abi.ReasonObjectUpdated)
		b.ReportAllocs()
		for b.Loop() {
			queued = queue.MergeReasons(queued, next)
		}
	})
	b.Run("requeue and update", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			queue.MergeReasons(one(abi.ReasonRequeue), next)
		}
	})
}

// BenchmarkHook is the host's part of one change that the guest maps: 1,000 objects are added, and each is mapped.
func BenchmarkHook(b *testing.B) {
	const n = 1000
	events := make([]reflector.Event, n)
	for i := range events {
		events[i] = reflector.Event{Type: reflector.Applied, New: tagged(b, "ns", "o"+string(rune('0'+i)), "a")}
	}
	keys := []abi.Key{{Namespace: "ns", Name: "x"}}
	h, err := queue.NewHook(queue.HookConfig{
		Module: guest{mapFunc: func(context.Context, *abi.Event) ([]abi.Key, error) { return keys, nil }},
		Emit:   func(context.Context, []queue.Request) {},
	})
	if err != nil {
		b.Fatal(err)
	}
	ctx, cancel := context.WithCancel(b.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = h.Run(ctx)
	}()
	b.ReportAllocs()
	for b.Loop() {
		for _, ev := range events {
			h.Handle(ev, false)
		}
		<-h.Mapped()
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/n, "ns/change")
	cancel()
	<-done
}
