// SPDX-License-Identifier: Apache-2.0

package scheduler

import (
	"fmt"
	"time"
)

// MaxDelay is the longest delay. A request for a later time is due MaxDelay after it was scheduled (rule 8 of ARCHITECTURE.md). kube-rs
// clamps to six months too: an early run is harmless, an overflowing timer is not.
const MaxDelay = 180 * 24 * time.Hour

// MaxPassedOver is how many requests of higher priority are handed out in a row while a request of lower priority is ready. After them,
// the oldest request of the lower priority is next (rule 4: waiting raises priority). The number is a bound in both directions:
//
//   - A Low request with n Low requests in front of it is handed out by the (n+1)*(MaxPassedOver+1)th Pop at the latest, even if there
//     are always Normal requests.
//   - While Normal requests are ready, at least MaxPassedOver of any MaxPassedOver+1 pops are Normal, however long the Low ones have
//     waited. A first listing of 100,000 objects therefore takes one turn in nine from the objects that change.
//
// The bound is in turns, not in seconds: once a bound in seconds had passed, an old listing would get every turn.
const MaxPassedOver = 8

// DefaultDebounceFactor times Debounce.Quiet is the default of Debounce.Max.
const DefaultDebounceFactor = 10

// Priority is the class that a request competes in. The zero value is Normal; a value out of range counts as the nearest valid one.
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

// clamp returns the nearest valid priority.
func (p Priority) clamp() Priority { return min(max(p, Low), Normal) }

// class returns the index of a clamped priority among the ready queues.
func (p Priority) class() int { return int(p - Low) }

// Request asks for one run of a key.
type Request[K comparable, M any] struct {
	// Key is the key to run. Requests with equal keys are merged until the key is handed out.
	Key K
	// Msg is handed out with the key. It takes no part in deduplication.
	Msg M
	// At is the earliest time of the run. The zero time means as soon as possible: now, or when Config.Debounce allows. Any other time is
	// not affected by the debounce. A time in the past means now; a distant one is clamped to MaxDelay.
	At time.Time
	// Priority is the class that the request competes in.
	Priority Priority
}

// Next is what should happen to a key after its run. The zero value waits for the next request.
type Next[M any] struct {
	// Requeue requests another run of the key, no sooner than After from the end of this one (rule 25). A request that is due sooner
	// absorbs it (rule 3). If After is zero or less, the key is queued immediately, behind everything that is ready. A debounce does not
	// delay it.
	Requeue bool
	After   time.Duration
	// Msg and Priority are those of the requeue.
	Msg      M
	Priority Priority
	// Delay is the minimum time between the end of this run and the start of the next, whatever requests it: requests and the requeue wait
	// and are merged meanwhile. It slows down keys that would otherwise run without pause; zero or less means no delay.
	Delay time.Duration
}

// Item is a key to run now.
type Item[K comparable, M any] struct {
	Key      K
	Msg      M
	Priority Priority
	// ReadyAt is when the item became due. The time of the Pop minus ReadyAt is how long it waited for its turn.
	ReadyAt time.Time
}

// Config configures a Scheduler. The zero value works.
type Config[M any] struct {
	// Merge combines the message of the pending request, which came first, with that of another request for the same key. It is called in
	// the order of the Schedule calls, whichever request is due sooner. If nil, the message of the request that is due first is used; of
	// two requests for the same later time, the newer one wins (as in kube-rs).
	Merge func(pending, next M) M
	// Debounce merges bursts of requests. The zero value turns it off.
	Debounce Debounce
}

// Debounce configures how long requests without a time are collected before their key is run, so that a burst of changes leads to one run,
// which sees the last of them. It is the debounce of kube-rs with an upper bound (rule 6).
//
// A key becomes ready once no request without a time has come for Quiet, and at most Max after the first one. Explicit times are kept: the
// debounce does not delay a requeue or a retry, and a requeue or retry that is due before the debounce ends takes the collected requests
// with it (rule 3). In kube-rs, a change can postpone a requeue that is about to run.
type Debounce struct {
	// Quiet is how long no request must come before the key is run. Zero turns the debounce off.
	Quiet time.Duration
	// Max is the longest that the first request waits. Zero means DefaultDebounceFactor times Quiet; the maximum is MaxDelay.
	Max time.Duration
}

// Validate returns an error that names the first invalid field.
func (d Debounce) Validate() error {
	if d.Quiet < 0 || d.Quiet > MaxDelay {
		return fmt.Errorf("debounce: quiet %v: must be 0, which turns it off, to %v", d.Quiet, MaxDelay)
	}
	if d.Max != 0 && d.Max < d.Quiet {
		return fmt.Errorf("debounce: max %v: must not be shorter than quiet, %v; 0 is %d times that", d.Max, d.Quiet, DefaultDebounceFactor)
	}
	return nil
}

// withDefaults returns the debounce with its defaults filled in.
func (d Debounce) withDefaults() Debounce {
	d.Quiet = min(max(d.Quiet, 0), MaxDelay)
	if d.Max == 0 {
		d.Max = min(d.Quiet, MaxDelay/DefaultDebounceFactor) * DefaultDebounceFactor
	}
	d.Max = min(max(d.Max, d.Quiet), MaxDelay)
	return d
}
