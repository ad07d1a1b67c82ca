// SPDX-License-Identifier: Apache-2.0

package events

import (
	"context"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

const (
	// maxAtOnce is the maximum number of concurrent requests.
	maxAtOnce = 4
	// maxPending is the maximum number of events that wait for their turn or their next try. While
	// the API server is down, client-go tries each event twelve times, ten seconds apart.
	maxPending = 1000
	maxTries   = 12
	// maxReasons is the maximum number of different refusals in the log.
	maxReasons = 64
)

// sink is the API server for client-go's broadcaster. It limits the waiting events, and can be
// stopped.
type sink struct {
	*Recorder

	slots chan struct{} // a token for each concurrent request; permanently full after the end of Run

	pendingMu sync.Mutex
	pending   map[string]int  // number of tries by name; guarded by pendingMu
	logged    map[string]bool // reasons of refusals; guarded by pendingMu
}

// Create implements EventSink.
func (s *sink) Create(ctx context.Context, e *eventsv1.Event) (*eventsv1.Event, error) {
	fit(e)
	return s.send(ctx, e, func(ctx context.Context) (*eventsv1.Event, error) { return s.config.Sink.Create(ctx, e) })
}

// Update implements EventSink.
func (s *sink) Update(ctx context.Context, e *eventsv1.Event) (*eventsv1.Event, error) {
	return s.send(ctx, e, func(ctx context.Context) (*eventsv1.Event, error) { return s.config.Sink.Update(ctx, e) })
}

// Patch implements EventSink.
func (s *sink) Patch(ctx context.Context, e *eventsv1.Event, data []byte) (*eventsv1.Event, error) {
	return s.send(ctx, e, func(ctx context.Context) (*eventsv1.Event, error) { return s.config.Sink.Patch(ctx, e, data) })
}

// flush waits until no event waits, for at most flushTime. last is the time of the last event.
func (s *sink) flush(last time.Time) {
	look := time.NewTicker(flushLook)
	defer look.Stop()
	for end := time.Now().Add(flushTime); time.Now().Before(end) && (time.Since(last) < handOff || s.waiting() > 0); {
		<-look.C
	}
}

func (s *sink) waiting() int {
	s.pendingMu.Lock()
	defer s.pendingMu.Unlock()
	return len(s.pending)
}

// givenUp returns an error after which client-go does not retry.
func givenUp() error {
	return apierrors.NewServiceUnavailable("event dropped after retries")
}

func (s *sink) send(ctx context.Context, e *eventsv1.Event, do func(context.Context) (*eventsv1.Event, error)) (*eventsv1.Event, error) {
	name := e.Namespace + "/" + e.Name
	if !s.enqueue(name) {
		s.dropped.Add(1)
		return nil, givenUp()
	}
	select {
	case s.slots <- struct{}{}:
	case <-ctx.Done():
		return nil, givenUp()
	}
	defer func() { <-s.slots }()
	made, err := do(ctx)
	return made, s.finish(name, err)
}

// enqueue counts a try, and reports whether there is room for it.
func (s *sink) enqueue(name string) bool {
	s.pendingMu.Lock()
	defer s.pendingMu.Unlock()
	if _, again := s.pending[name]; !again && len(s.pending) >= maxPending {
		return false
	}
	s.pending[name]++
	return true
}

// finish counts the result of a try. client-go's next step depends on the error: it gives up after
// an answer of the API server (but recreates an event whose series is gone), and retries after any
// other error.
func (s *sink) finish(name string, err error) error {
	s.pendingMu.Lock()
	defer s.pendingMu.Unlock()
	status, answered := err.(*apierrors.StatusError) //nolint:errorlint // client-go too checks the error itself
	switch {
	case err == nil:
		s.recorded.Add(1)
	case answered && (apierrors.IsNotFound(status) || apierrors.IsAlreadyExists(status)):
	case apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause): // such a namespace takes no events
	case answered:
		s.refused.Add(1)
		s.log(status)
	case s.pending[name] < maxTries:
		return err
	default:
		s.dropped.Add(1)
	}
	delete(s.pending, name)
	return err
}

// log logs the API server's reason for a refusal, once per reason. The caller must hold pendingMu.
func (s *sink) log(status *apierrors.StatusError) {
	reason := string(status.ErrStatus.Reason)
	if s.logged[reason] || len(s.logged) >= maxReasons {
		return
	}
	s.logged[reason] = true
	s.config.Logger.Warn("the API server refused an event; further refusals with this reason are only counted",
		"error", status.Error(), "reason", reason)
}
