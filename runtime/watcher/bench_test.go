package watcher_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	goruntime "runtime"
	"strconv"
	"sync"
	"testing"

	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/wasmctl/wasmctl/runtime/reflector"
	"github.com/wasmctl/wasmctl/runtime/watcher"
)

// BenchmarkSync100k is a watch of 100,000 small objects, from Run to Synced, off
// a streamed list in memory: what it costs, and what the store then holds.
func BenchmarkSync100k(b *testing.B) {
	const size = 100_000
	api := newFakeAPI()
	cm := api.of(configMaps)
	cm.buffer = size + 10
	for i := range size {
		cm.set(fmt.Sprint("n", i), i)
	}
	cm.history = nil
	before := heap()
	b.ReportAllocs()
	for b.Loop() {
		listed := 0
		sub := watcher.NewSet(api, watcher.Config{}).Acquire(watcher.Source{Resource: configMaps},
			func(context.Context, reflector.Event) { listed++ })
		ctx, cancel := context.WithCancel(b.Context())
		var running sync.WaitGroup
		running.Go(func() { _ = sub.Run(ctx) })
		<-sub.Synced()
		b.StopTimer()
		if listed != size || sub.Store().Len() != size {
			b.Fatalf("%d listed, %d stored", listed, sub.Store().Len())
		}
		b.ReportMetric(float64(heap()-before)/size, "B/object")
		b.ReportMetric(float64(sub.Store().Bytes())/size, "msgpack-B/object")
		cancel()
		running.Wait()
		b.StartTimer()
	}
}

func heap() uint64 {
	goruntime.GC()
	goruntime.GC()
	var m goruntime.MemStats
	goruntime.ReadMemStats(&m)
	return m.HeapAlloc
}

// BenchmarkWire_Event is one change from the API server's bytes to the handler's
// return: a pod of 4.4 KB, through the client, decoded, packed, stored, handed on.
func BenchmarkWire_Event(b *testing.B) {
	w := &wire{TB: b}
	feed, body := io.Pipe()
	w.then(reply{stream: feed})
	client, err := dynamic.NewForConfig(&rest.Config{Host: "http://wire", Transport: w, QPS: -1})
	if err != nil {
		b.Fatal(err)
	}
	events := make(chan struct{}, 1)
	sub := watcher.NewSet(client, watcher.Config{}).Acquire(watcher.Source{Resource: resource("pods")},
		func(context.Context, reflector.Event) { events <- struct{}{} })
	ctx, cancel := context.WithCancel(b.Context())
	var running sync.WaitGroup
	running.Go(func() { _ = sub.Run(ctx) })
	_, _ = io.WriteString(body, bookmark("10", true))
	<-sub.Synced()
	pod := compactPod(b)
	b.SetBytes(int64(len(pod)))
	b.ReportAllocs()
	for i := 11; b.Loop(); i++ {
		_, _ = body.Write(bytes.Replace(pod, []byte("RESOURCEVERSION"), strconv.AppendInt(nil, int64(i), 10), 1))
		<-events
	}
	cancel()
	_ = body.Close()
	running.Wait()
}

// compactPod is the event of a running pod, as an API server writes it.
func compactPod(b *testing.B) []byte {
	b.Helper()
	text, err := os.ReadFile("../reflector/testdata/pod.json")
	if err != nil {
		b.Fatal(err)
	}
	var object map[string]any
	if err := json.Unmarshal(text, &object); err != nil {
		b.Fatal(err)
	}
	return []byte(encodeLine("MODIFIED", object))
}

// BenchmarkWatch_Event is one small change from the client's decoded object to
// the handler's return: packed, through client-go's reflector, stored, handed on.
func BenchmarkWatch_Event(b *testing.B) {
	api := newFakeAPI()
	cm := api.of(configMaps)
	for i := range 100 {
		cm.set(fmt.Sprint("n", i), 1)
	}
	events := make(chan struct{}, 1)
	sub := watcher.NewSet(api, watcher.Config{}).Acquire(watcher.Source{Resource: configMaps},
		func(_ context.Context, ev reflector.Event) {
			if ev.Type == reflector.Applied {
				events <- struct{}{}
			}
		})
	ctx, cancel := context.WithCancel(b.Context())
	var running sync.WaitGroup
	running.Go(func() { _ = sub.Run(ctx) })
	<-sub.Synced()
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		cm.set(fmt.Sprint("n", i%100), i)
		cm.history = nil
		<-events
	}
	cancel()
	running.Wait()
}
