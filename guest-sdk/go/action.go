package wasmctl

import (
	"math"
	"time"
)

// Action says what happens after a run, and declares the desired children and
// status. The zero value is AwaitChange. Actions that declare nothing can be
// compared with ==.
type Action struct {
	requeue  bool
	after    time.Duration
	declared *declared
}

// AwaitChange waits until the object, or one that it owns, changes.
func AwaitChange() Action { return Action{} }

// Requeue asks for another run after the given time, counted from the end of
// this one; 0 is at once. An earlier change absorbs it. The time is rounded up
// to milliseconds; a negative one is 0.
func Requeue(after time.Duration) Action { return AwaitChange().Requeue(after) }

// Requeue is the action with another run after the given time; see the function
// of this name.
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

// millis rounds up, so that a short wait does not become none.
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
