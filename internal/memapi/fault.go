// SPDX-License-Identifier: Apache-2.0

package memapi

import (
	"context"
	"time"
)

// Fault is a failure to simulate for one request. The zero value is no failure.
type Fault struct {
	// Err replaces the answer: an error of package k8s.io/apimachinery/pkg/api/errors is
	// answered as a Status, and any other error breaks the connection.
	Err error
	// After reports that the request is carried out, and only its answer is lost.
	After bool
	// Delay is the time before the request is carried out.
	Delay time.Duration

	// Lag is how many versions a list that may be stale (resourceVersion 0) is behind.
	Lag int64
	// PageSize is the maximum number of objects of a page; 0 means that the client decides.
	PageSize int

	// Latency is the delay of each event of a watch.
	Latency time.Duration
	// Twice sends every n-th event a second time; 0 sends each event once.
	Twice int
	// End is the way in which a watch ends: after EndAfter, or after EndEvents events, if
	// these are not 0.
	End       End
	EndAfter  time.Duration
	EndEvents int
}

// End is the way in which a watch ends.
type End uint8

// The ends of a watch.
const (
	// InOrder ends the response normally.
	InOrder End = iota
	// Reset resets the connection.
	Reset
	// Cut ends the response in the middle of an event.
	Cut
	// Expired sends an event with status 410.
	Expired
	// Failed sends an event with status 500.
	Failed
	// Stalled does not end the watch, but sends no more events.
	Stalled
)

// pass waits for d, and reports whether ctx is still active.
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
