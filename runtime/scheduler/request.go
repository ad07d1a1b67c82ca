package scheduler

import (
	"fmt"
	"time"
)

// MaxDelay is the longest delay: a request that asks for a later time is due MaxDelay after the time it was scheduled at (rule 8 of
// ARCHITECTURE.md). kube-rs clamps to six months too; a run that comes early is harmless, a timer that overflows is not.
const MaxDelay = 180 * 24 * time.Hour

// MaxPassedOver is how many requests of higher priority are handed out in a row while a lower priority has one ready; the next one
// is then the oldest of the lower priority (rule 4: waiting raises priority). Both sides of it are bounds:
//
//   - A Low request with n Low requests before it is handed out at the latest by the (n+1)*(MaxPassedOver+1)th Pop, even if Normal
//     requests never run dry.
//   - While Normal requests are ready, at least MaxPassedOver of any MaxPassedOver+1 pops are Normal, however long the Low ones have
//     been waiting. A first listing of 100,000 objects therefore costs the objects that change one turn in nine, not their place.
//
// It counts turns, not seconds, because a bound in seconds would give the whole machine to an old listing once that bound has passed.
const MaxPassedOver = 8

// DefaultDebounceFactor is how many times Debounce.Quiet Debounce.Max is where it is zero.
const DefaultDebounceFactor = 10

// Priority is the class that a request competes in. The zero value is Normal; a value out of range counts as the nearest one.
type Priority int8

// The priorities, lowest first.
const (
	// Low is for requests that are not urgent: the first listing and resyncs.
	Low Priority = iota - 1
	// Normal is for changes and requeues.
	Normal
)

// priorities is the number of Priority values.
const priorities = int(Normal-Low) + 1

// String returns the priority as a lower-case word.
func (p Priority) String() string {
	if p.clamp() == Low {
		return "low"
	}
	return "normal"
}

// clamp returns the nearest priority that exists.
func (p Priority) clamp() Priority { return min(max(p, Low), Normal) }

// class returns the index of a clamped priority among the ready queues.
func (p Priority) class() int { return int(p - Low) }

// Request asks for one run of a key.
type Request[K comparable, M any] struct {
	// Key is what is run; two requests with equal keys become one while neither has been handed out.
	Key K
	// Msg is handed out with the key; it takes no part in deduplication.
	Msg M
	// At is the earliest time of the run. The zero time asks for a run soon: now, or when Config.Debounce says. Any other time is kept as
	// it is: a debounce neither delays nor postpones it. A time in the past is now; a far one is clamped to MaxDelay.
	At time.Time
	// Priority is the class that the request competes in.
	Priority Priority
}

// Item is a key that is to be run now.
type Item[K comparable, M any] struct {
	Key      K
	Msg      M
	Priority Priority
	// ReadyAt is the time from which the item was due; the time of the Pop minus ReadyAt is what it waited for its turn.
	ReadyAt time.Time
}

// Config says how a Scheduler behaves. The zero value works.
type Config[M any] struct {
	// Merge returns the message of a pending request that another request for the same key has met; pending came first. It is called
	// in the order of the Schedule calls, whichever of the two is due sooner. If nil, the message of the soonest request is kept and, of two
	// for the same later time, the newer one (as in kube-rs).
	Merge func(pending, next M) M
	// Debounce gathers requests that come in bursts. The zero value does not.
	Debounce Debounce
}

// Debounce says how long requests without a time are gathered before their key is run, so that a burst of changes makes one run and that
// run sees the last of them. It is the debounce of kube-rs with a bound (rule 6).
//
// A key becomes ready when no such request has come for Quiet, and at the latest Max after the first one, however steadily they come.
// Times that were asked for are kept: a requeue or a retry is not delayed by the debounce, and one that is due before the debounce ends
// takes the gathered requests with it (rule 3). In kube-rs a change can postpone a requeue that is about to run.
type Debounce struct {
	// Quiet is how long nothing must have been asked for; zero turns the debounce off.
	Quiet time.Duration
	// Max is the longest that the first request waits; zero is DefaultDebounceFactor times Quiet, and MaxDelay is the most.
	Max time.Duration
}

// Validate returns an error that names the field with a value that cannot be used.
func (d Debounce) Validate() error {
	if d.Quiet < 0 || d.Quiet > MaxDelay {
		return fmt.Errorf("debounce: quiet %v: must be 0, which turns it off, to %v", d.Quiet, MaxDelay)
	}
	if d.Max != 0 && d.Max < d.Quiet {
		return fmt.Errorf("debounce: max %v: must not be shorter than quiet, %v; 0 is %d times that", d.Max, d.Quiet, DefaultDebounceFactor)
	}
	return nil
}

// withDefaults returns the debounce as it is used.
func (d Debounce) withDefaults() Debounce {
	d.Quiet = min(max(d.Quiet, 0), MaxDelay)
	if d.Max == 0 {
		d.Max = min(d.Quiet, MaxDelay/DefaultDebounceFactor) * DefaultDebounceFactor
	}
	d.Max = min(max(d.Max, d.Quiet), MaxDelay)
	return d
}
