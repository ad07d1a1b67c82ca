// SPDX-License-Identifier: Apache-2.0

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

	"k8s.io/client-go/rest"

	"github.com/wasmctl/wasmctl/runtime/reflector"
	"github.com/wasmctl/wasmctl/runtime/watcher"
)

// BenchmarkSync100k is a watch of 100,000 small objects, from Run to Synced, from the bytes of a streamed list and of a
// plain one: its cost, and the memory of the store.
func BenchmarkSync100k(b *testing.B) {
	const size = 100_000
	var stream, items bytes.Buffer
	for i := range size {
		o := fmt.Sprintf(`{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"n%d","namespace":"ns","uid":"u%d","resourceVersion":"%d"},"data":{"k":"%d"}}`, i, i, i, i)
		stream.WriteString(`{"type":"ADDED","object":` + o + "}\n")
		if i > 0 {
			items.WriteByte(',')
		}
		items.WriteString(o)
	}
	stream.WriteString(bookmark("200000", true))
	plain := fmt.Sprintf(`{"kind":"ConfigMapList","apiVersion":"v1","metadata":{"resourceVersion":"200000"},"items":[%s]}`, items.Bytes())
	for name, replies := range map[string][]reply{
		"stream": {{body: stream.String(), open: true}},
		"list":   {refusal(422, "Invalid"), {body: plain}, {open: true}},
	} {
		b.Run(name, func(b *testing.B) { benchmarkSync(b, size, replies) })
	}
}

func benchmarkSync(b *testing.B, size int, replies []reply) {
	before := heap()
	b.ReportAllocs()
	for b.Loop() {
		w := openWire(b)
		w.then(replies...)
		client, err := watcher.NewClient(&rest.Config{Host: "http://wire", Transport: w})
		if err != nil {
			b.Fatal(err)
		}
		listed := 0
		sub := watcher.NewSet(client, watcher.Config{}).Acquire(watcher.Source{Resource: configMaps},
			func(context.Context, reflector.Event) { listed++ })
		ctx, cancel := context.WithCancel(b.Context())
		var running sync.WaitGroup
		running.Go(func() { _ = sub.Run(ctx) })
		<-sub.Synced()
		b.StopTimer()
		if listed != size || sub.Store().Len() != size {
			b.Fatalf("%d listed, %d stored", listed, sub.Store().Len())
		}
		b.ReportMetric(float64(heap()-before)/float64(size), "B/object")
		b.ReportMetric(float64(sub.Store().Bytes())/float64(size), "msgpack-B/object")
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

// BenchmarkWire_Event is one change from the API server's bytes to the handler's return: a pod of 4.4 KB, through the
// client, decoded, packed, stored and delivered.
func BenchmarkWire_Event(b *testing.B) {
	w := openWire(b)
	feed, body := io.Pipe()
	w.then(reply{stream: feed})
	client, err := watcher.NewClient(&rest.Config{Host: "http://wire", Transport: w})
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

// compactPod is the event of a running pod, in the format of an API server.
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
