// SPDX-License-Identifier: Apache-2.0

package predicate_test

import (
	"strings"
	"testing"
	"time"

	"github.com/wasmctl/wasmctl/runtime/reflector"
)

// BenchmarkFilter is the cost of one status change, which a controller of Deployments receives often.
func BenchmarkFilter(b *testing.B) {
	labels := map[string]any{"app": "web", "app.kubernetes.io/name": "web", "app.kubernetes.io/instance": "web-1"}
	fields := meta{
		"labels": labels, "finalizers": []any{"example.com/finalizer"},
		"annotations": map[string]any{"deployment.kubernetes.io/revision": "1", "note": strings.Repeat("x", 1000)},
	}
	old, now := pack(b, fields), pack(b, fields, meta{"resourceVersion": "2"})
	for _, element := range []string{"generation", "labels", "annotations", "finalizers", "deletion", "any(generation, labels, deletion)"} {
		b.Run(element, func(b *testing.B) {
			f := filter(b, element)
			at := time.Now()
			f.Check(at, reflector.Event{Type: reflector.Listed, New: old})
			b.ReportAllocs()
			for b.Loop() {
				f.Check(at, changed(old, now))
			}
		})
	}
}

func TestFilter_AllocatesNothing(t *testing.T) {
	old, now := pack(t, meta{"labels": map[string]any{"a": "b"}}), pack(t, meta{"labels": map[string]any{"a": "b"}, "resourceVersion": "2"})
	f := filter(t, "generation", "all(labels, deletion)")
	at := time.Unix(0, 0)
	f.Check(at, reflector.Event{Type: reflector.Listed, New: old})
	if n := testing.AllocsPerRun(100, func() { f.Check(at, changed(old, now)) }); n != 0 {
		t.Errorf("%v allocations, want none", n)
	}
}
