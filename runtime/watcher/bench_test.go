package watcher_test

import (
	"context"
	"fmt"
	"sync"
	"testing"

	"github.com/wasmctl/wasmctl/runtime/reflector"
	"github.com/wasmctl/wasmctl/runtime/watcher"
)

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
