// SPDX-License-Identifier: Apache-2.0

package kubeapi

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"

	"k8s.io/client-go/util/flowcontrol"

	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/internal/packed"
)

// The fixed limits of the operations.
const (
	// MaxInFlight is the maximum number of concurrent requests of one controller's runs. A request
	// beyond it waits, which counts as time of its run.
	MaxInFlight = 64
	// MaxListItems is the maximum number of objects in one answer of api_list or cache_list. A list
	// that requests more at a time gets smaller pages. A list that requests everything at once
	// fails with TOO_LARGE.
	MaxListItems = 10_000
)

// limiter limits the requests of one controller's runs.
type limiter struct {
	perSecond int64                   // 0 is not limited, and neither are concurrent requests
	rate      flowcontrol.RateLimiter // if nil, not limited
	free      chan struct{}           // has a token for each concurrent request; if nil, not limited
	hits      *limitHits
}

// limitHits counts how often each limit was reached.
type limitHits struct{ rate, inFlight, items atomic.Uint64 }

func newLimiter(perSecond int64, hits *limitHits) *limiter {
	l := &limiter{perSecond: perSecond, hits: hits}
	if perSecond > 0 {
		l.rate = flowcontrol.NewTokenBucketRateLimiter(float32(perSecond), int(perSecond))
		l.free = make(chan struct{}, MaxInFlight)
	}
	return l
}

// WithRate returns the same API with another maximum number of requests to the API server per
// second, like WithPolicy with another policy. It includes the requests for declared results and
// finalizers. The requests of one second may be sent at once. A request beyond the rate waits,
// which counts as time of its run. If the rate is 0, neither the rate nor the number of
// concurrent requests is limited. If the rates are equal, both APIs share one limiter.
func (a *API) WithRate(perSecond int64) *API {
	other := *a
	if perSecond != a.limits.perSecond {
		other.limits = newLimiter(perSecond, a.limits.hits)
	}
	return &other
}

// LimitStats returns how often each limit was reached: requests that had to wait, and lists that
// were too long.
func (a *API) LimitStats() map[abi.LimitName]uint64 {
	h := a.limits.hits
	out := map[abi.LimitName]uint64{}
	for name, n := range map[abi.LimitName]*atomic.Uint64{
		abi.LimitAPIRate: &h.rate, abi.LimitAPIInFlight: &h.inFlight, abi.LimitListItems: &h.items,
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
				return nil, l.noTime(ctx, abi.LimitAPIInFlight, MaxInFlight)
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
		return nil, l.noTime(ctx, abi.LimitAPIRate, l.perSecond)
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
func pageLimit(r *request) int64 {
	switch {
	case r.op != abi.OpAPIList:
		return r.Limit
	case r.Limit > 0:
		return min(r.Limit, MaxListItems)
	case r.ResourceVersion != "" || r.ResourceVersionMatch != "":
		return 0
	}
	return MaxListItems + 1
}

// checkList returns the answer of a list, or TOO_LARGE.
func (l *limiter) checkList(answer abi.Response) abi.Response {
	if answer.Status != abi.StatusOK {
		return answer
	}
	if countItems(answer.Body) > MaxListItems {
		l.hits.items.Add(1)
		return tooLarge(limitText(abi.LimitListItems, MaxListItems, "the answer has too many objects"))
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
