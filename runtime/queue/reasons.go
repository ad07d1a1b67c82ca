package queue

import (
	"slices"

	"github.com/wasmctl/wasmctl/abi"
)

// MaxReasons is how many different reasons of one run are stored. If there are more, the run has the number of the others.
const MaxReasons = 8

// Reasons are the reasons for reconciling an object: those of all requests that were merged into one run. The zero value has none.
type Reasons struct {
	// First is the reason of the first request. Any other reason replaces Requeue and Retry, which move to More: a trigger absorbs the
	// timer (rule 3) and is the real cause of the run.
	First abi.Reason
	// More are the further reasons in order, without repetitions; at most MaxReasons-1.
	More []abi.Reason
	// Dropped counts reasons that did not fit. A reason that recurs is counted again.
	Dropped int
}

// MergeReasons merges the reasons of another request for the same object into those of the queued one. It allocates only if a reason is
// new.
//
// As with append, the result may share the memory of queued, which must not be used again. It never shares that of next.
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

// ofTimer reports whether the request was caused only by the passing of time.
func ofTimer(r abi.Reason) bool { return r.Type == abi.ReasonRequeue || r.Type == abi.ReasonRetry }
