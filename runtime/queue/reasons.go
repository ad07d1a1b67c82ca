package queue

import (
	"slices"

	"github.com/wasmctl/wasmctl/abi"
)

// MaxReasons is how many different reasons of one run are kept. An object that
// more than that many related objects touch before it runs learns how many more
// there were.
const MaxReasons = 8

// Reasons are why an object is to be reconciled: those of all requests that
// were merged into one run. The zero value has none.
type Reasons struct {
	// First is the reason of the first request. Any other reason replaces Requeue
	// and Retry: a trigger absorbs the timer (rule 3), so that it is what led to
	// the run, and the timer stands in More.
	First abi.Reason
	// More are the further ones in their order, without repetitions; at most
	// MaxReasons-1.
	More []abi.Reason
	// Dropped counts reasons that had no room. One that comes again counts again.
	Dropped int
}

// MergeReasons returns the reasons of a request that another one for the same
// object has met; queued came first. It allocates where a reason is new, and
// nothing where the reasons are the same.
//
// As with append, the result may use the memory of queued, which must not be
// used again. It never uses that of next.
func MergeReasons(queued, next Reasons) Reasons {
	if next.First != (abi.Reason{}) {
		queued.add(next.First)
	}
	for _, r := range next.More {
		queued.add(r)
	}
	queued.Dropped += next.Dropped
	return queued
}

func (r *Reasons) add(reason abi.Reason) {
	switch {
	case r.First == abi.Reason{}:
		r.First = reason
		return
	case r.First == reason || slices.Contains(r.More, reason):
		return
	case ofTimer(r.First) && !ofTimer(reason):
		r.First, reason = reason, r.First
	}
	if len(r.More) == MaxReasons-1 {
		r.Dropped++
		return
	}
	r.More = append(r.More, reason)
}

// ofTimer reports whether nothing but the passing of time caused the request.
func ofTimer(r abi.Reason) bool { return r.Type == abi.ReasonRequeue || r.Type == abi.ReasonRetry }
