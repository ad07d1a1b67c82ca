// SPDX-License-Identifier: Apache-2.0

package wasmctl

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/runtime/applier"
)

// Values of Result.Err that are no failures, with errors.Is. The reconciler was not called, or
// its answer does not matter, and the object waits for a change.
var (
	// ErrObjectNotFound means that the object is gone.
	ErrObjectNotFound = applier.ErrObjectNotFound
	// ErrPaused means that an annotation pauses the object.
	ErrPaused = applier.ErrPaused
	// ErrDeleting means that the object is being deleted and needs no cleanup.
	ErrDeleting = applier.ErrDeleting
	// ErrInterrupted means that a stop has interrupted the run.
	ErrInterrupted = applier.ErrInterrupted
	// ErrQuarantined means that the object is quarantined, and has not changed since.
	ErrQuarantined = applier.ErrQuarantined
	// ErrUnchanged means that the run was skipped because of the spec's Memo.
	ErrUnchanged = applier.ErrUnchanged
)

// Result is the result of one run.
type Result struct {
	// Object is the object of the run, and Reasons are the different reasons for it, at most
	// eight. The first one is that of the first request.
	Object  abi.Key
	Reasons []abi.Reason
	// ID is the run's id in logs and traces. It is empty if the reconciler was not called.
	ID string
	// Revision is the revision of the module that ran: 1 for a native reconciler, and 0 if
	// none was needed.
	Revision uint64
	// Finalize means that the object is being deleted, and that the run called finalize.
	Finalize bool
	// Attempt is 1 for a first run, and increases with each failed run.
	Attempt int
	// Started and Ended are the times of the run. Queued is how long the object was ready
	// before; 0 if that is unknown.
	Started, Ended time.Time
	Queued         time.Duration
	// Action is what follows: when the object runs again without a change.
	Action Action
	// Writes counts the writes that the API server has accepted.
	Writes int
	// Err is nil after a success. Otherwise it is why the run has failed, such as an
	// *abi.ResultError or an *abi.CallError, or, if Failed is false, one of the errors of
	// this package that are no failures, such as ErrPaused.
	Err    error
	Failed bool
}

// Duration returns how long the run took.
func (r *Result) Duration() time.Duration { return r.Ended.Sub(r.Started) }

// LostError is an error of Controller.Results: its reader was too slow.
type LostError struct {
	// Count is the number of results that were lost since the previous result.
	Count uint64
}

// Error implements error.
func (e *LostError) Error() string {
	return fmt.Sprintf("the reader of the results was too slow: the %d oldest are lost", e.Count)
}

// maxUnread is the number of results that wait for one reader.
const maxUnread = 1024

// Results yields the result of each run that ends while the loop over it runs:
//
//	for r, err := range c.Results(ctx) {
//
// The error is not that of a run, which is in the Result: it is a *LostError if the reader was
// too slow and the oldest results were lost. It comes once for each gap, with an empty Result;
// then the stream continues. At most 1024 results wait for a reader.
//
// The stream survives restarts of the controller. It ends, after the last result, when the
// controller has ended, and at once when ctx has. Several loops may run at the same time, and
// each gets all results. The reconciler never waits for a reader.
func (c *Controller) Results(ctx context.Context) iter.Seq2[Result, error] {
	return c.results.stream(ctx, c.Ended())
}

// results passes the results of a controller's runs to the readers.
type results struct {
	mu      sync.Mutex                       // held to change readers
	readers atomic.Pointer[[]*resultsReader] // replaced, never modified; nil if there are none
}

// publish passes on the outcome of a run. Without a reader it neither allocates nor locks.
func (s *results) publish(out *applier.Outcome) {
	readers := s.readers.Load()
	if readers == nil {
		return
	}
	result := resultOf(out)
	for _, r := range *readers {
		r.add(result)
	}
}

func resultOf(out *applier.Outcome) Result {
	r := Result{
		Object: out.Key, ID: out.ID, Revision: out.Revision, Finalize: out.Finalize, Attempt: out.Attempt,
		Started: out.Started, Ended: out.Started.Add(out.Duration), Queued: out.Queued,
		Action: out.Action, Writes: out.Writes, Err: out.Err, Failed: out.Failed(),
	}
	if out.Reasons.First != (abi.Reason{}) { // the rest is only valid during the call
		r.Reasons = append([]abi.Reason{out.Reasons.First}, out.Reasons.More...)
	}
	return r
}

// stream yields the results until ended is closed or ctx ends.
func (s *results) stream(ctx context.Context, ended <-chan struct{}) iter.Seq2[Result, error] {
	return func(yield func(Result, error) bool) {
		r := s.subscribe()
		defer s.unsubscribe(r)
		for last := false; !last; {
			select {
			case <-r.wake:
			case <-ended:
				last = true
			case <-ctx.Done():
				return
			}
			if !r.passAll(ctx, yield) {
				return
			}
		}
	}
}

func (s *results) subscribe() *resultsReader {
	r := &resultsReader{wake: make(chan struct{}, 1)}
	s.replace(func(all []*resultsReader) []*resultsReader { return append(all, r) })
	return r
}

func (s *results) unsubscribe(r *resultsReader) {
	s.replace(func(all []*resultsReader) []*resultsReader {
		return slices.DeleteFunc(all, func(o *resultsReader) bool { return o == r })
	})
}

// replace replaces the readers by what change makes of a copy of them.
func (s *results) replace(change func([]*resultsReader) []*resultsReader) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var all []*resultsReader
	if now := s.readers.Load(); now != nil {
		all = slices.Clone(*now)
	}
	if all = change(all); len(all) == 0 {
		s.readers.Store(nil)
		return
	}
	s.readers.Store(&all)
}

// resultsReader has the results that wait for one reader.
type resultsReader struct {
	wake chan struct{} // signals, with room for one, that there may be a result

	mu    sync.Mutex
	ring  [maxUnread]Result // guarded by mu
	first int               // the index of the oldest unread result; guarded by mu
	count int               // the number of unread results; guarded by mu
	lost  uint64            // since the last call of next; guarded by mu
}

// add adds a result. If there is no room, the oldest one is lost.
func (r *resultsReader) add(result Result) {
	r.mu.Lock()
	r.ring[(r.first+r.count)%maxUnread] = result
	if r.count < maxUnread {
		r.count++
	} else { // it has replaced the oldest
		r.first = (r.first + 1) % maxUnread
		r.lost++
	}
	r.mu.Unlock()
	select {
	case r.wake <- struct{}{}:
	default:
	}
}

// passAll passes the unread results to yield. It returns false if ctx or the loop has ended.
func (r *resultsReader) passAll(ctx context.Context, yield func(Result, error) bool) bool {
	for ctx.Err() == nil {
		result, lost, ok := r.next()
		if lost > 0 && !yield(Result{}, &LostError{Count: lost}) {
			return false
		}
		if !ok {
			return true
		}
		if !yield(result, nil) {
			return false
		}
	}
	return false
}

// next returns the oldest result, if there is one, and how many were lost before it.
func (r *resultsReader) next() (result Result, lost uint64, ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	lost, r.lost = r.lost, 0
	if r.count == 0 {
		return result, lost, false
	}
	result, r.ring[r.first] = r.ring[r.first], Result{}
	r.first, r.count = (r.first+1)%maxUnread, r.count-1
	return result, lost, true
}
