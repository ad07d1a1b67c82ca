// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"context"
	"net/http"
	"sync/atomic"
	"time"
)

// gate bounds the requests that one backend judges at a time. More requests wait for their turn, in their order. A request that would wait
// until its deadline is refused at once, so that the API server learns the reason, and earlier. It is safe for concurrent use.
type gate struct {
	slots   chan struct{} // one token for each request in progress
	queue   int64         // the maximum of waiting
	waiting atomic.Int64
	mean    atomic.Int64 // moving average of the duration of a request, in nanoseconds
}

func newGate(concurrency, queue int) *gate {
	return &gate{slots: make(chan struct{}, concurrency), queue: int64(queue)}
}

// enter waits for the turn of a request, at most until the deadline of ctx. The request calls leave when it is done.
func (g *gate) enter(ctx context.Context) (leave func(), err error) {
	select {
	case g.slots <- struct{}{}:
		return g.begin(time.Now()), nil
	default:
	}
	now := time.Now()
	ahead := g.waiting.Add(1)
	defer g.waiting.Add(-1)
	deadline, _ := ctx.Deadline()
	if wait := g.wait(ahead); ahead > g.queue || now.Add(wait).After(deadline) {
		return nil, refuse(http.StatusServiceUnavailable, "too many requests: %d requests are ahead, which takes about %s", ahead-1+int64(cap(g.slots)), wait.Round(time.Millisecond))
	}
	select {
	case g.slots <- struct{}{}:
		return g.begin(time.Now()), nil
	case <-ctx.Done():
		return nil, refuse(http.StatusServiceUnavailable, "too many requests: this one waited for %s, and its deadline is near", time.Since(now).Round(time.Millisecond))
	}
}

// wait estimates how long the request at a place of the queue waits and takes. The requests in progress are half done on average.
func (g *gate) wait(place int64) time.Duration {
	slots := int64(cap(g.slots))
	return time.Duration(g.mean.Load() * (2*((place+slots-1)/slots) + 1) / 2)
}

func (g *gate) begin(start time.Time) (leave func()) {
	return func() {
		const weight = 8 // of the past
		mean := g.mean.Load()
		g.mean.CompareAndSwap(mean, mean+(int64(time.Since(start))-mean)/weight) // one that another request changes at the same time may be lost
		<-g.slots
	}
}
