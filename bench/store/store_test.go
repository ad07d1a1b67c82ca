// SPDX-License-Identifier: Apache-2.0

package store

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"sigs.k8s.io/controller-runtime/pkg/log"
)

func TestMain(m *testing.M) {
	log.SetLogger(logr.Discard()) // otherwise, controller-runtime complains that it has none
	os.Exit(m.Run())
}

const (
	// objects is the number of pods.
	objects = 10_000
	// shards is the number of values of their label "shard".
	shards = 100
	// rounds is how often each peer does the same work, in turns with the others.
	rounds = 7
)

// pods returns a function that returns the JSON of one pod after the other, and finally nil: those of the store's own
// benchmarks, 4.4 KB each, a quarter of it managedFields.
func pods(tb testing.TB) func() []byte {
	tb.Helper()
	indented, err := os.ReadFile("../../runtime/reflector/testdata/pod.json")
	if err != nil {
		tb.Fatal(err)
	}
	var template bytes.Buffer
	if err := json.Compact(&template, bytes.Replace(indented, []byte(`"tier":"web"`), []byte(`"tier":"web","shard":"SHARD"`), 1)); err != nil {
		tb.Fatal(err)
	}
	i := -1
	return func() []byte {
		if i++; i == objects {
			return nil
		}
		return []byte(strings.NewReplacer(
			"NUMBER", fmt.Sprintf("%05d", i), "UID", fmt.Sprintf("7c3e9a10-%04x-4b1f-9d2e-0123456789ab", i), "SHARD", fmt.Sprint(i%shards),
			"RESOURCEVERSION", fmt.Sprint(100_000+i), "REPLICASET", fmt.Sprintf("%03d", i/10),
		).Replace(template.String()))
	}
}

// podName returns the name of the i-th pod.
func podName(i int) string { return fmt.Sprintf("storefront-6d4cf56db6-%05d", i) }

// filled is a store of one peer.
type filled struct {
	peer
	reader
	heap float64 // bytes per object, everything included
}

func fillAll(b *testing.B) []filled {
	var all []filled
	for _, p := range peers() {
		before := heapInUse()
		r := p.fill(b, pods(b))
		all = append(all, filled{p, r, float64(heapInUse()-before) / objects})
	}
	return all
}

func heapInUse() int64 {
	runtime.GC()
	runtime.GC() // the first one leaves objects with finalizers and in pools
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// BenchmarkStore compares stores of 10,000 pods.
//
// Get reads one pod after the other, as a reconcile does first. controller-runtime copies the object, wasmctl its
// bytes; decoding them is the guest's work and not included. ListSelected reads the one pod in a hundred that a label
// selects, ListAll reads all. Memory is the heap per pod.
func BenchmarkStore(b *testing.B) {
	all := fillAll(b)
	names := make([]string, objects)
	for i := range names {
		names[i] = podName((i * 7919) % objects) // in an order other than that of the store
	}
	b.Run("Get", func(b *testing.B) {
		compare(b, all, objects, func(r reader) {
			for _, name := range names {
				r.get("shop", name)
			}
		})
	})
	b.Run("ListSelected", func(b *testing.B) {
		const n = 10
		compare(b, all, n, func(r reader) {
			for i := range n {
				list(b, r, map[string]string{"shard": fmt.Sprint(i)}, objects/shards)
			}
		})
	})
	b.Run("ListAll", func(b *testing.B) {
		compare(b, all, 1, func(r reader) { list(b, r, nil, objects) })
	})
	b.Run("Memory", func(b *testing.B) {
		figures := make([]float64, len(all))
		for i := range all {
			figures[i] = all[i].heap
		}
		report(b, all, figures, "B/object")
	})
}

func list(b *testing.B, r reader, with map[string]string, want int) {
	if found := r.list(with); found != want {
		b.Fatalf("%d objects are listed, want %d", found, want)
	}
}

// compare makes the stores do the same work in turns, and reports the lowest time of each per operation.
func compare(b *testing.B, all []filled, operations int, work func(r reader)) {
	least := make([]float64, len(all))
	for i := range all {
		work(all[i].reader) // the first run has one-time costs
	}
	for n := range b.N * rounds {
		for i := range all {
			runtime.GC()
			begin := time.Now()
			work(all[i].reader)
			if took := float64(time.Since(begin).Nanoseconds()) / float64(operations); n == 0 || took < least[i] {
				least[i] = took
			}
		}
	}
	report(b, all, least, "ns")
}

// report reports a figure of each store, with its ratio to the first.
func report(b *testing.B, all []filled, figures []float64, unit string) {
	b.ReportMetric(0, "ns/op") // meaningless: it is for all rounds of all stores
	for i := range all {
		b.ReportMetric(figures[i], all[i].name+"-"+unit)
		if i > 0 {
			b.ReportMetric(figures[i]/figures[0], all[i].name+"-x")
		}
	}
}
