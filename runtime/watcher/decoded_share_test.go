// SPDX-License-Identifier: Apache-2.0

package watcher

import (
	"context"
	"sync"
	"testing"
	"time"
)

// A list that arrives before the subscription that started the watch joins counts for that one, and for no later one.
func TestShare_ListBeforeTheFirstSubscriber(t *testing.T) {
	w := &sharedWatch{join: make(chan *subscriber), leave: make(chan *subscriber)}
	w.decoded.Store(100)
	w.share() // on the list
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() { w.loop(ctx) })
	var first, second Decoded
	for _, d := range []*Decoded{&first, &second} {
		w.join <- &subscriber{decoded: d}
	}
	cancel()
	running.Wait()
	for d, want := range map[*Decoded]int64{&first: 100, &second: 0} {
		if n, _ := d.Read(time.Now()); n != want {
			t.Errorf("%d bytes, want %d", n, want)
		}
	}
}
