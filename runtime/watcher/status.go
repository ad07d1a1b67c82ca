// SPDX-License-Identifier: Apache-2.0

package watcher

import (
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/wasmctl/wasmctl/runtime/reflector"
)

// status holds the State of one watch and reports its changes. Requests, streams and the loop of the watch update it; it may be read
// concurrently.
type status struct {
	source   Source
	store    *reflector.Store
	log      *slog.Logger
	onChange func(Source, State)

	current  atomic.Pointer[State]  // get adds the state of the store and the times of progress
	saving   atomic.Pointer[saving] // of the last round of compression
	progress atomic.Int64           // time of the last progress, Unix nanoseconds; 0: never
	attempt  atomic.Int64           // time of the last request or failure, Unix nanoseconds; 0: never
	arrived  atomic.Int64           // received objects of the current list

	mu       sync.Mutex
	complete bool      // guarded by mu; the last list is in the store and has been passed to all subscribers
	opens    int       // guarded by mu; number of answered watch requests
	open     int       // guarded by mu; the number of the open one, or 0
	asOf     time.Time // guarded by mu; when the list in the store was requested; see listing.asked
	outage   time.Time // guarded by mu; when the watch last stopped being ready
}

func newStatus(source Source, store *reflector.Store, cfg Config) *status {
	s := &status{source: source, store: store, log: cfg.Log, onChange: cfg.OnChange}
	s.begin()
	return s
}

// begin records that the watch starts now.
func (s *status) begin() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.outage = time.Now()
	s.current.Store(&State{Phase: Syncing, Since: s.outage})
}

// get returns the state; it never blocks on the watch.
func (s *status) get() State {
	st := *s.current.Load()
	st.Objects, st.Bytes = s.store.Len(), s.store.Bytes()
	if saving := s.saving.Load(); saving != nil {
		st.Compressed, st.Saved = saving.objects, saving.bytes
	}
	if st.Phase == Syncing {
		st.Objects = max(st.Objects, int(s.arrived.Load()))
	}
	if t := s.progress.Load(); t != 0 {
		st.LastProgress = time.Unix(0, t)
	}
	if t := s.attempt.Load(); t != 0 {
		st.LastAttempt = time.Unix(0, t)
	}
	return st
}

// attempted records that a request is being sent, or has failed.
func (s *status) attempted() { s.attempt.Store(time.Now().UnixNano()) }

// progressed records that the API server has sent something.
func (s *status) progressed() { s.progress.Store(time.Now().UnixNano()) }

// opened records that a watch request was answered, and returns the number to pass to closed. With streaming, a new list comes first.
func (s *status) opened(streaming bool) int {
	s.progressed()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.opens++
	s.open = s.opens
	if streaming {
		s.complete = false
	}
	s.settle()
	return s.opens
}

// has reports whether the list in the store includes everything that was written before a given time.
func (s *status) has(before time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.asOf.After(before)
}

// listed records that a list is in the store and was passed to all subscribers. asked is when it was requested.
func (s *status) listed(asked time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.complete, s.asOf = true, asked
	s.settle()
}

// closed records that a watch request has ended. The next request may have been answered already, because the reflector does not wait for
// the end of a request that it has abandoned.
func (s *status) closed(number int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.open == number {
		s.open = 0
	}
}

// settle changes the phase to Ready, or from a failure that is over to Syncing. The caller must hold mu.
func (s *status) settle() {
	before := s.current.Load()
	switch {
	case s.open == 0:
	case s.complete && before.Phase != Ready:
		s.move(State{Phase: Ready})
	case !s.complete && before.Phase != Ready && before.Phase != Syncing:
		s.move(State{Phase: Syncing, Err: before.Err, Failures: before.Failures})
	}
}

// failed records a failed request and returns the resulting phase.
func (s *status) failed(err error, streaming bool) Phase {
	s.attempted()
	s.mu.Lock()
	defer s.mu.Unlock()
	before := s.current.Load()
	phase, message, ok := phaseOf(s.source, err, streaming)
	if !ok {
		return before.Phase
	}
	s.move(State{Phase: phase, Err: err, Failures: before.Failures + 1, Message: message})
	return phase
}

// refused records that the watch waits for another one to end, before its first request.
func (s *status) refused(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.move(State{Phase: Refused, Err: err, Message: err.Error()})
}

// move publishes the next state and, if the phase changes, reports it. The caller must hold mu.
func (s *status) move(next State) {
	before := s.current.Load()
	next.Since = before.Since
	if next.Phase == before.Phase {
		s.current.Store(&next)
		return
	}
	now := time.Now()
	next.Since = now
	if before.Phase == Ready {
		s.outage = now
	}
	s.current.Store(&next)
	s.report(now)
}

func (s *status) report(now time.Time) {
	st := s.get()
	switch st.Phase {
	case Syncing:
		s.log.Debug("watch syncing", "watch", s.source.String())
	case Ready:
		s.log.Info("watch ready", "watch", s.source.String(), "objects", st.Objects, "took", now.Sub(s.outage))
	default:
		s.log.Warn("watch "+st.Phase.String(), "watch", s.source.String(), "reason", st.Message)
	}
	if s.onChange != nil {
		s.onChange(s.source, st)
	}
}
