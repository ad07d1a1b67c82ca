package memapi

import (
	"context"
	"time"
)

// Fault is what goes wrong with one request. The zero value is nothing.
type Fault struct {
	// Err is the answer in place of the right one: an error of package
	// k8s.io/apimachinery/pkg/api/errors, or, for a connection that breaks, any
	// other.
	Err error
	// After reports that the request is carried out all the same, and only its
	// answer is lost.
	After bool
	// Delay passes before the request is carried out.
	Delay time.Duration

	// Lag is how many versions a list that may be of any age (resourceVersion 0)
	// is behind.
	Lag int64
	// PageSize is the maximum number of objects of a page; 0 is what the client
	// asks for.
	PageSize int

	// Latency is how late each event of a watch is.
	Latency time.Duration
	// Twice sends every n-th event a second time; 0 none.
	Twice int
	// A watch ends with End: after EndAfter, or after EndEvents events, if these are
	// not 0.
	End       End
	EndAfter  time.Duration
	EndEvents int
}

// End is how a watch ends.
type End uint8

// The ends of a watch.
const (
	// InOrder is the end of the answer.
	InOrder End = iota
	// Reset is a connection that is reset.
	Reset
	// Cut is the end in the middle of an event.
	Cut
	// Expired is an event that says 410.
	Expired
	// Failed is an event that says 500.
	Failed
	// Stalled is no end: nothing comes anymore, whatever happens.
	Stalled
)

// pass waits, and reports that ctx has not ended.
func pass(ctx context.Context, d time.Duration) bool {
	if d <= 0 {
		return true
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
