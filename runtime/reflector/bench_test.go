// SPDX-License-Identifier: Apache-2.0

package reflector_test

import (
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"iter"
	goruntime "runtime"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/runtime/reflector"
)

// podTemplate is a running pod of a Deployment as an API server returns it: 4.4 KB of JSON, a quarter of it
// managedFields.
//
//go:embed testdata/pod.json
var podTemplate string

// pod returns the JSON of the i-th of many pods, compact as on the wire: names, uid, IPs and resourceVersion differ,
// everything else is the same.
func pod(tb testing.TB, i int) []byte {
	tb.Helper()
	text := strings.NewReplacer(
		"NUMBER", fmt.Sprintf("%05d", i),
		"UID", fmt.Sprintf("7c3e9a10-%04x-4b1f-9d2e-0123456789ab", i),
		"RESOURCEVERSION", fmt.Sprint(100000+i),
		"REPLICASET", fmt.Sprintf("%03d", i/10),
	).Replace(podTemplate)
	var v any
	if err := json.Unmarshal([]byte(text), &v); err != nil {
		tb.Fatal(err)
	}
	b, err := json.Marshal(v)
	if err != nil {
		tb.Fatal(err)
	}
	return b
}

func decodePod(tb testing.TB, i int) *unstructured.Unstructured {
	tb.Helper()
	u := &unstructured.Unstructured{}
	if err := u.UnmarshalJSON(pod(tb, i)); err != nil {
		tb.Fatal(err)
	}
	return u
}

func heap() uint64 {
	goruntime.GC()
	goruntime.GC()
	var m goruntime.MemStats
	goruntime.ReadMemStats(&m)
	return m.HeapAlloc
}

func fillStore(tb testing.TB, n int) *reflector.Writer {
	tb.Helper()
	w := reflector.NewWriter()
	for i := range n {
		o, err := reflector.PackJSON(pod(tb, i), reflector.Options{})
		if err != nil {
			tb.Fatal(err)
		}
		w.Apply(o, func(reflector.Event) {})
	}
	return w
}

// heapPerPod returns the total heap of n pods in a store, in bytes per pod, and the mean length of a pod's JSON and
// msgpack.
func heapPerPod(tb testing.TB, n int) (perPod, jsonBytes, msgpackBytes float64) {
	tb.Helper()
	before := heap()
	w := fillStore(tb, n)
	perPod = float64(heap()-before) / float64(n)
	msgpackBytes = float64(w.Store().Bytes()) / float64(n)
	return perPod, float64(len(pod(tb, 0))), msgpackBytes
}

// The goal of the cache: a pod of 4 KiB of JSON takes at most 4 KiB of heap.
func TestStore_PodOf4KiBTakesAtMost4KiB(t *testing.T) {
	perPod, jsonBytes, msgpackBytes := heapPerPod(t, 2000)
	if jsonBytes < 4096 {
		t.Fatalf("the pod has %.0f B of JSON: too small for this test", jsonBytes)
	}
	if perPod > 4096 {
		t.Errorf("%.0f B of heap a pod (JSON %.0f B, msgpack %.0f B), want at most 4096", perPod, jsonBytes, msgpackBytes)
	}
}

func BenchmarkStore_BytesPerPod(b *testing.B) {
	for b.Loop() {
		perPod, jsonBytes, msgpackBytes := heapPerPod(b, 10_000)
		b.ReportMetric(perPod, "B/object")
		b.ReportMetric(jsonBytes, "json-B/object")
		b.ReportMetric(msgpackBytes, "msgpack-B/object")
	}
}

func BenchmarkPack_Pod(b *testing.B) {
	content := decodePod(b, 1).Object
	b.ReportAllocs()
	for b.Loop() {
		if _, err := reflector.Pack(content, reflector.Options{}); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkStore_Get(b *testing.B) {
	s := fillStore(b, 1000).Store()
	ref := s.List()[0].Ref()
	b.ReportAllocs()
	for b.Loop() {
		if s.Get(ref) == nil {
			b.Fatal("missing")
		}
	}
}

// BenchmarkWriter_Apply is one changed object in a store of 1,000: without waiters, in a store that is scanned, and
// with four waiters.
func BenchmarkWriter_Apply(b *testing.B) {
	for _, c := range []struct {
		name    string
		prepare func(*reflector.Store)
	}{
		{"plain", func(*reflector.Store) {}},
		{"ordered", scan},
		{"awaited", func(s *reflector.Store) {
			ctx, cancel := context.WithCancel(b.Context())
			b.Cleanup(cancel)
			for range 4 {
				go func() { _ = s.AwaitVersion(ctx, name("n1"), "999999999") }()
			}
		}},
	} {
		b.Run(c.name, func(b *testing.B) {
			w := reflector.NewWriter()
			states := make([]*reflector.Object, 1000)
			w.Replace(nil, "1", func(reflector.Event) {})
			for i := range states {
				states[i] = state(b, name(fmt.Sprint("n", i)), i, 1)
				w.Apply(states[i], func(reflector.Event) {})
				states[i] = state(b, name(fmt.Sprint("n", i)), i, 2)
			}
			c.prepare(w.Store())
			ref := 0
			b.ReportAllocs()
			for b.Loop() {
				// Preceded by a deletion; otherwise, the state would be known.
				w.Delete(states[ref], func(reflector.Event) {})
				w.Apply(states[ref], func(reflector.Event) {})
				ref = (ref + 1) % len(states)
			}
		})
	}
}

// scan makes the store maintain its order.
func scan(s *reflector.Store) {
	for range s.Scan("", reflector.ObjectRef{}) {
		return
	}
}

// BenchmarkStore_Scan is one page of 500 out of 100,000 objects.
func BenchmarkStore_Scan(b *testing.B) {
	w := reflector.NewWriter()
	list := make([]*reflector.Object, 100_000)
	for i := range list {
		list[i] = state(b, reflector.ObjectRef{Namespace: fmt.Sprint("ns", i%100), Name: fmt.Sprint("n", i)}, i, 1)
	}
	w.Replace(list, "1", func(reflector.Event) {})
	after := reflector.ObjectRef{Namespace: "ns50", Name: "n5"}
	b.ReportAllocs()
	for b.Loop() {
		n := 0
		for range w.Store().Scan("", after) {
			if n++; n == 500 {
				break
			}
		}
	}
}

func BenchmarkObject_Annotation(b *testing.B) {
	o, err := reflector.Pack(decodePod(b, 1).Object, reflector.Options{})
	if err != nil {
		b.Fatal(err)
	}
	if _, ok := o.Annotation("kubernetes.io/config.source"); ok {
		b.Fatal("the pod has the annotation")
	}
	b.ReportAllocs()
	for b.Loop() {
		o.Annotation("wasmctl.dev/paused")
	}
}

// BenchmarkWriter_Replace is a relist of 10,000 unchanged objects.
func BenchmarkWriter_Replace(b *testing.B) {
	w := reflector.NewWriter()
	list := make([]*reflector.Object, 10_000)
	for i := range list {
		list[i] = state(b, name(fmt.Sprint("n", i)), i, 1)
	}
	w.Replace(list, "1", func(reflector.Event) {})
	b.ReportAllocs()
	for b.Loop() {
		w.Replace(list, "1", func(e reflector.Event) { b.Fatal(show(e)) })
	}
}

// BenchmarkStore_Indexed lists the 10 of 10,000 objects that have a value, with an index that knows the others, and by
// reading each.
func BenchmarkStore_Indexed(b *testing.B) {
	w := reflector.NewWriter()
	list := make([]*reflector.Object, 10_000)
	others := make([]abi.IndexEntry, len(list))
	for i := range list {
		list[i] = state(b, name(fmt.Sprint("n", i)), i, 1)
		others[i] = entryOf(list[i])
		others[i].Values = []string{fmt.Sprint(i % 1000)}
	}
	w.Replace(list, "1", func(reflector.Event) {})
	index := &abi.Index{Name: "x", Value: "7"}
	count := func(seq iter.Seq[*reflector.Object]) (n int) {
		for range seq {
			n++
		}
		return n
	}
	count(w.Store().Indexed(index, "", reflector.ObjectRef{}))
	w.Store().Learn(index, others)
	b.Run("index", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if n := count(w.Store().Indexed(index, "", reflector.ObjectRef{})); n != 10 {
				b.Fatal(n, "objects")
			}
		}
	})
	b.Run("scan", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			count(w.Store().Scan("", reflector.ObjectRef{}))
		}
	})
}
