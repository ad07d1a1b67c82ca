// SPDX-License-Identifier: Apache-2.0

package kubeapi

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync/atomic"

	"k8s.io/client-go/util/flowcontrol"

	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/internal/packed"
)

// Limits limit the requests of one controller's runs. A zero field is no limit.
type Limits struct {
	// Rate is the maximum number of requests to the API server per second, including those for
	// declared results and finalizers. The requests of one second may be sent at once. InFlight is
	// the maximum number of concurrent requests. A request beyond either limit waits, which counts
	// as time of its run.
	Rate, InFlight int64
	// ListItems is the maximum number of objects in one answer of api_list or cache_list, and
	// ListBytes is its size in bytes of msgpack. A list that requests more at a time, or a page of
	// any size from the cache, gets smaller pages. A list that requests everything at once fails
	// with TOO_LARGE.
	ListItems, ListBytes int64
}

// limiter enforces Limits.
type limiter struct {
	Limits
	rate flowcontrol.RateLimiter // if nil, not limited
	free chan struct{}           // has a token for each concurrent request; if nil, not limited
	hits *limitHits
}

// limitHits counts how often each limit was reached.
type limitHits struct{ rate, inFlight, items, bytes atomic.Uint64 }

func newLimiter(l Limits, hits *limitHits) *limiter {
	out := &limiter{Limits: l, hits: hits}
	if l.Rate > 0 {
		out.rate = flowcontrol.NewTokenBucketRateLimiter(float32(l.Rate), int(l.Rate))
	}
	if l.InFlight > 0 {
		out.free = make(chan struct{}, l.InFlight)
	}
	return out
}

// WithLimits returns the same API under other limits, like WithPolicy under another policy. If the
// limits are equal, both share the rate and the concurrent requests.
func (a *API) WithLimits(l Limits) *API {
	other := *a
	if l != a.limits.Limits {
		other.limits = newLimiter(l, a.limits.hits)
	}
	return &other
}

// LimitStats returns how often each limit was reached: requests that had to wait, and lists that
// were too long.
func (a *API) LimitStats() map[abi.LimitName]uint64 {
	h := a.limits.hits
	out := map[abi.LimitName]uint64{}
	for name, n := range map[abi.LimitName]*atomic.Uint64{
		abi.LimitAPIRate: &h.rate, abi.LimitAPIInFlight: &h.inFlight, abi.LimitListItems: &h.items, abi.LimitListBytes: &h.bytes,
	} {
		if n := n.Load(); n > 0 {
			out[name] = n
		}
	}
	return out
}

// enter waits until a request may be sent. The caller must call done at its end. The error is a
// *refusal with the limit for which too little time is left.
func (l *limiter) enter(ctx context.Context) (done func(), err error) {
	done = func() {}
	if l.free != nil {
		select {
		case l.free <- struct{}{}:
		default:
			l.hits.inFlight.Add(1)
			select {
			case l.free <- struct{}{}:
			case <-ctx.Done():
				return nil, l.noTime(ctx, abi.LimitAPIInFlight, l.InFlight)
			}
		}
		done = func() { <-l.free }
	}
	if l.rate == nil || l.rate.TryAccept() {
		return done, nil
	}
	l.hits.rate.Add(1)
	if err := l.rate.Wait(ctx); err != nil { // fails at once if the deadline comes first
		done()
		return nil, l.noTime(ctx, abi.LimitAPIRate, l.Rate)
	}
	return done, nil
}

// noTime is the error of a request that waited until the end of its run. If the run was
// interrupted, the limit is not the cause.
func (l *limiter) noTime(ctx context.Context, name abi.LimitName, value int64) error {
	if errors.Is(ctx.Err(), context.Canceled) {
		return context.Cause(ctx)
	}
	return &refusal{status: abi.StatusBudget, message: limitText(name, value, "request not sent: the module exceeds its API limits, and the run has no time to wait")}
}

func limitText(name abi.LimitName, value int64, what string) string {
	return (&abi.LimitError{Limit: name, Value: fmt.Sprint(value), What: what}).Error()
}

// pageLimit returns the limit to send with a list: the request's, or one that shows whether there
// are more objects than permitted. With a limit, a list at a resourceVersion has another meaning,
// so it is not changed.
func (l *limiter) pageLimit(r *request) int64 {
	switch {
	case r.op != abi.OpAPIList || l.ListItems == 0:
		return r.Limit
	case r.Limit > 0:
		return min(r.Limit, l.ListItems)
	case r.ResourceVersion != "" || r.ResourceVersionMatch != "":
		return 0
	}
	return l.ListItems + 1
}

// checkList returns the answer of a list, or TOO_LARGE.
func (l *limiter) checkList(answer abi.Response) abi.Response {
	if answer.Status != abi.StatusOK {
		return answer
	}
	if l.ListBytes > 0 && int64(len(answer.Body)) > l.ListBytes {
		l.hits.bytes.Add(1)
		return tooLarge(limitText(abi.LimitListBytes, l.ListBytes, fmt.Sprintf("the answer has %d bytes", len(answer.Body))))
	}
	if l.ListItems > 0 && int64(countItems(answer.Body)) > l.ListItems {
		l.hits.items.Add(1)
		return tooLarge(limitText(abi.LimitListItems, l.ListItems, "the answer has too many objects"))
	}
	return answer
}

// countItems returns the number of items in a msgpack list. Its keys are sorted, so only a version
// precedes the items.
func countItems(list []byte) int {
	c := packed.At(list)
	for range c.MapLen() {
		if string(c.Text()) == "items" {
			return c.ArrayLen()
		}
		c.Skip()
	}
	return 0
}

// cachePage returns the maximum number of objects in a list from the cache.
func (l *limiter) cachePage(asked int64) int64 {
	n := cmp.Or(asked, defaultPage)
	if l.ListItems > 0 {
		n = min(n, l.ListItems)
	}
	return n
}

// pageRoom returns the maximum size of the objects in a list from the cache, in bytes.
func (l *limiter) pageRoom() int {
	whole := int64(abi.MaxBytes)
	if l.ListBytes > 0 {
		whole = min(whole, l.ListBytes)
	}
	return int(max(whole/2, whole-pageRoom))
}
