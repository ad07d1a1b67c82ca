package wasmctl

import (
	"math"
	"time"

	"github.com/wasmctl/wasmctl/guest-sdk/go/internal/wire"
)

// Action is what a run asks for next. The zero value is AwaitChange. Actions
// can be compared with ==.
type Action struct {
	requeue bool
	after   time.Duration
}

// AwaitChange waits until the object, or one that it owns, changes.
func AwaitChange() Action { return Action{} }

// Requeue asks for another run after the given time from the end of this one;
// 0 is at once. A change that comes first absorbs it. The time is rounded up to
// milliseconds; a negative one is 0.
func Requeue(after time.Duration) Action {
	return Action{requeue: true, after: time.Duration(millis(after)) * time.Millisecond}
}

// Requeued returns the time until the next run, and whether there is one to be
// without a change.
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

// appendAction writes a Result without an error (abi/ABI.md, section 4).
func appendAction(dst []byte, a Action) []byte {
	if !a.requeue {
		return wire.AppendString(wire.AppendString(wire.AppendMap(dst, 1), "action"), "await")
	}
	dst = wire.AppendString(wire.AppendString(wire.AppendMap(dst, 2), "action"), "requeue")
	return wire.AppendInt(wire.AppendString(dst, "after_ms"), millis(a.after))
}
