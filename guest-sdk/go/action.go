// SPDX-License-Identifier: Apache-2.0

package wasmctl

import (
	"math"
	"time"
)

// Action is the result of a run: whether to run again, and the desired children
// and status. The zero value is AwaitChange. Actions that declare nothing can
// be compared with ==.
type Action struct {
	requeue  bool
	after    time.Duration
	declared *declared
}

// AwaitChange returns an action that waits until the object, or an object that
// it owns, changes.
func AwaitChange() Action { return Action{} }

// Requeue returns an action that asks for another run after the given time,
// counted from the end of this run. If the time is 0, the run follows at once.
// An earlier change replaces the request. The time is rounded up to
// milliseconds; a negative time counts as 0.
func Requeue(after time.Duration) Action { return AwaitChange().Requeue(after) }

// Requeue returns a copy of the action that also asks for another run; see the
// function Requeue.
func (a Action) Requeue(after time.Duration) Action {
	a.requeue, a.after = true, time.Duration(millis(after))*time.Millisecond
	return a
}

// Requeued returns the time until the next run, and whether a next run is
// scheduled without a change.
func (a Action) Requeued() (after time.Duration, ok bool) { return a.after, a.requeue }

// String returns "await change" or "requeue after d".
func (a Action) String() string {
	if !a.requeue {
		return "await change"
	}
	return "requeue after " + a.after.String()
}

// millis rounds up, so that a short wait does not become 0.
func millis(d time.Duration) int64 {
	if d <= 0 {
		return 0
	}
	ms := int64(d / time.Millisecond)
	if d%time.Millisecond != 0 && ms < math.MaxInt64/int64(time.Millisecond) {
		ms++
	}
	return ms
}
