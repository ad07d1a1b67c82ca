// SPDX-License-Identifier: Apache-2.0

package events

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// store is an API server that can be down or unwilling.
type store struct {
	mu      sync.Mutex
	down    bool                       // guarded by mu
	refuse  error                      // guarded by mu
	hang    bool                       // guarded by mu
	tries   int                        // guarded by mu
	created map[string]*eventsv1.Event // guarded by mu
	patched int                        // guarded by mu
	atOnce  int                        // guarded by mu
	most    int                        // guarded by mu
}

// pass advances virtual time and lets due work happen.
func pass(d time.Duration) {
	<-time.After(d)
	synctest.Wait()
}

func (s *store) with(f func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f()
}

func (s *store) do(ctx context.Context, f func() error) (err error) {
	hang := false
	s.with(func() {
		s.tries++
		s.atOnce++
		s.most = max(s.most, s.atOnce)
		hang = s.hang
	})
	if hang {
		<-ctx.Done()
	} else {
		<-time.After(time.Millisecond)
	}
	s.with(func() {
		s.atOnce--
		switch {
		case ctx.Err() != nil:
			err = ctx.Err()
		case s.down:
			err = errors.New("connection refused")
		case s.refuse != nil:
			err = s.refuse
		default:
			err = f()
		}
	})
	return err
}

// Create implements EventSink.
func (s *store) Create(ctx context.Context, e *eventsv1.Event) (*eventsv1.Event, error) {
	return e, s.do(ctx, func() error { s.created[e.Name+e.Reason] = e; return nil })
}

// Update implements EventSink.
func (s *store) Update(ctx context.Context, e *eventsv1.Event) (*eventsv1.Event, error) {
	return s.Create(ctx, e)
}

// Patch implements EventSink.
func (s *store) Patch(ctx context.Context, e *eventsv1.Event, _ []byte) (*eventsv1.Event, error) {
	return e, s.do(ctx, func() error {
		if s.created[e.Name+e.Reason] == nil {
			return apierrors.NewNotFound(schema.GroupResource{Resource: "events"}, e.Name)
		}
		s.patched++
		return nil
	})
}

// run runs a recorder over a store in virtual time. When test returns the
// recorder is stopped; the bubble ends only if it has left nothing behind.
func run(t *testing.T, test func(r *Recorder, s *store, log *strings.Builder)) {
	synctest.Test(t, func(t *testing.T) {
		s := &store{created: map[string]*eventsv1.Event{}}
		var log strings.Builder
		r := New(Config{Sink: s, Controller: "test", Logger: slog.New(slog.NewTextHandler(&log, nil))})
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- r.Run(ctx) }()
		test(r, s, &log)
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
		s.with(func() {
			if s.atOnce != 0 {
				t.Errorf("%d requests are under way after the end", s.atOnce)
			}
		})
	})
}

func event(object, reason string) Event {
	return Event{
		Type: corev1.EventTypeNormal, Reason: reason, Action: "A", Note: "n",
		Regarding: corev1.ObjectReference{APIVersion: "v1", Kind: "ConfigMap", Namespace: "a", Name: object},
	}
}

// TestRecorder_EventsOfASeriesCostTwoRequests, whatever their notes.
func TestRecorder_EventsOfASeriesCostTwoRequests(t *testing.T) {
	run(t, func(r *Recorder, s *store, _ *strings.Builder) {
		for i := range 500 {
			e := event("x", "R")
			e.Note = fmt.Sprint(i)
			if !r.Record(e) {
				t.Fatalf("event %d was dropped", i)
			}
			if i == 0 {
				pass(time.Second)
			}
		}
		pass(time.Minute)
		if s.tries != 2 || len(s.created) != 1 || s.patched != 1 {
			t.Errorf("%d requests: %d created, %d patched", s.tries, len(s.created), s.patched)
		}
		if c := r.Counts(); c != (Counts{Recorded: 2}) {
			t.Errorf("%+v", c)
		}
	})
}

// TestRecorder_LimitsEachObject to a burst and a trickle, and no other object
// with it.
func TestRecorder_LimitsEachObject(t *testing.T) {
	run(t, func(r *Recorder, s *store, _ *strings.Builder) {
		flood := func(object, prefix string) (passed int) {
			for i := range 100 {
				if r.Record(event(object, fmt.Sprint(prefix, i))) {
					passed++
				}
			}
			return passed
		}
		if n := flood("x", "a"); n != burst {
			t.Errorf("%d events at once, want %d", n, burst)
		}
		if n := flood("y", "a"); n != burst {
			t.Errorf("another object: %d events", n)
		}
		pass(601 * time.Second)
		if n := flood("x", "b"); n != 2 {
			t.Errorf("%d events after ten minutes, want 2", n)
		}
		pass(time.Minute)
		if c := r.Counts(); c.Limited != 75+75+98 || c.Recorded != 52 || len(s.created) != 52 || c.Dropped != 0 {
			t.Errorf("%+v, %d created", c, len(s.created))
		}
		if s.most > maxAtOnce {
			t.Errorf("%d requests at once", s.most)
		}
	})
}

// TestRecorder_LimitsEachNamespace, if it is to: the objects of one cannot use up what the others have.
func TestRecorder_LimitsEachNamespace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := New(Config{Sink: &store{}, Controller: "test", PerNamespace: true})
		flood := func(ns string) (passed int) {
			for i := range 30 {
				for j := range 20 {
					e := event(fmt.Sprint("x", i), fmt.Sprint("R", j))
					if e.Regarding.Namespace = ns; r.Record(e) {
						passed++
					}
				}
			}
			return passed
		}
		if n := flood("bad"); n != namespaceBurst {
			t.Errorf("%d events of a namespace, want %d", n, namespaceBurst)
		}
		if n := flood("good"); n != namespaceBurst {
			t.Errorf("%d events of another namespace", n)
		}
		if c := r.Counts(); c.Limited != 2*(600-namespaceBurst) || c.Dropped != 0 {
			t.Errorf("%+v", c)
		}
	})
}

// TestRecorder_TriesAgainWhileTheAPIServerIsDown, within bounds.
func TestRecorder_TriesAgainWhileTheAPIServerIsDown(t *testing.T) {
	run(t, func(r *Recorder, s *store, _ *strings.Builder) {
		s.with(func() { s.down = true })
		for i := range 900 {
			r.Record(event(fmt.Sprint("x", i), "R"))
		}
		pass(25 * time.Second)
		for i := range 900 {
			r.Record(event(fmt.Sprint("y", i), "R"))
		}
		pass(5 * time.Second)
		if c := r.Counts(); c.Dropped != 800 || c.Recorded != 0 {
			t.Errorf("while it is down: %+v", c)
		}
		s.with(func() { s.down = false })
		pass(30 * time.Second)
		if c := r.Counts(); c.Recorded != 1000 || len(s.created) != 1000 {
			t.Errorf("afterwards: %+v", c)
		}
	})
}

// TestRecorder_GivesUpInTheEnd, and counts it.
func TestRecorder_GivesUpInTheEnd(t *testing.T) {
	run(t, func(r *Recorder, s *store, _ *strings.Builder) {
		s.with(func() { s.down = true })
		r.Record(event("x", "R"))
		pass(5 * time.Minute)
		if c := r.Counts(); c.Dropped != 1 || s.tries != maxTries {
			t.Errorf("%+v after %d tries", c, s.tries)
		}
	})
}

// TestRecorder_SaysWhyEventsAreRefused, once.
func TestRecorder_SaysWhyEventsAreRefused(t *testing.T) {
	run(t, func(r *Recorder, s *store, log *strings.Builder) {
		s.with(func() {
			s.refuse = apierrors.NewForbidden(schema.GroupResource{Resource: "events"}, "", errors.New("no rights"))
		})
		for i := range 10 {
			r.Record(event(fmt.Sprint("x", i), "R"))
		}
		pass(time.Minute)
		if c := r.Counts(); c.Refused != 10 || s.tries != 10 {
			t.Errorf("%+v after %d tries", c, s.tries)
		}
		if n := strings.Count(log.String(), "no rights"); n != 1 {
			t.Errorf("said %d times:\n%s", n, log)
		}
	})
}

// TestRecorder_DoesNotCountNamespacesThatEnd: nobody has to do anything about such a refusal.
func TestRecorder_DoesNotCountNamespacesThatEnd(t *testing.T) {
	run(t, func(r *Recorder, s *store, log *strings.Builder) {
		ending := apierrors.NewForbidden(schema.GroupResource{Resource: "events"}, "", errors.New("the namespace is being terminated"))
		ending.ErrStatus.Details.Causes = append(ending.ErrStatus.Details.Causes, metav1.StatusCause{Type: corev1.NamespaceTerminatingCause})
		s.with(func() { s.refuse = ending })
		r.Record(event("x", "R"))
		pass(time.Minute)
		if c := r.Counts(); c != (Counts{}) || s.tries != 1 || log.Len() > 0 {
			t.Errorf("%+v after %d tries: %s", c, s.tries, log)
		}
	})
}

// TestRecorder_SendsWhatWaitsAtTheEnd, but only for a bounded time.
func TestRecorder_SendsWhatWaitsAtTheEnd(t *testing.T) {
	for _, hang := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			s := &store{created: map[string]*eventsv1.Event{}, hang: hang}
			r := New(Config{Sink: s, Controller: "test", Logger: slog.New(slog.DiscardHandler)})
			for i := range 100 {
				r.Record(event(fmt.Sprint("x", i), "R"))
			}
			ctx, cancel := context.WithCancel(t.Context())
			cancel()
			began := time.Now()
			if err := r.Run(ctx); err != nil {
				t.Error(err)
			}
			if took := time.Since(began); took > flushTime {
				t.Errorf("it ended after %v", took)
			}
			if len(s.created) != 100 && !hang {
				t.Errorf("%d events were sent", len(s.created))
			}
		})
	}
}

// TestRecorder_EndsWhileRequestsHang: Run interrupts them.
func TestRecorder_EndsWhileRequestsHang(t *testing.T) {
	run(t, func(r *Recorder, s *store, _ *strings.Builder) {
		s.with(func() { s.hang = true })
		for i := range 50 {
			r.Record(event(fmt.Sprint("x", i), "R"))
		}
		synctest.Wait()
		if s.atOnce != maxAtOnce {
			t.Errorf("%d requests under way", s.atOnce)
		}
	})
}

// TestRecorder_FitsWhatTheAPIServerTakes.
func TestRecorder_FitsWhatTheAPIServerTakes(t *testing.T) {
	run(t, func(r *Recorder, s *store, _ *strings.Builder) {
		e := event("x", "R")
		e.Note = strings.Repeat("ö", 1000)
		r.Record(e)
		pass(time.Second)
		for _, made := range s.created {
			if len(made.Note) > MaxNote || !strings.HasSuffix(made.Note, "ö...") || len(made.ReportingInstance) > maxInstance {
				t.Errorf("note of %d bytes, ends with %q", len(made.Note), made.Note[len(made.Note)-5:])
			}
		}
		if len(s.created) != 1 {
			t.Error("not recorded")
		}
	})
	long := &eventsv1.Event{ReportingInstance: strings.Repeat("x", 300)}
	if fit(long); len(long.ReportingInstance) != maxInstance {
		t.Errorf("instance of %d bytes", len(long.ReportingInstance))
	}
	for controller, want := range map[string]string{
		"web": "wasmctl/web", "Web_1.x": "wasmctl/Web_1.x", "a/b c": "wasmctl/a-b-c", "-.x.-": "wasmctl/x", "///": "wasmctl/controller",
		strings.Repeat("x", 100): "wasmctl/" + strings.Repeat("x", 50),
	} {
		if got := reportingController(controller); got != want {
			t.Errorf("%s: %s, want %s", controller, got, want)
		}
	}
}

// TestRecorder_HammerRecord: any number of goroutines record at once.
func TestRecorder_HammerRecord(t *testing.T) {
	r := New(Config{Sink: &store{}, Controller: "test"})
	var wg sync.WaitGroup
	for g := range 8 {
		wg.Go(func() {
			for i := range 200 {
				r.Record(event(fmt.Sprint("x", i%5), fmt.Sprint("R", g*i%40)))
			}
		})
	}
	wg.Wait()
	if c := r.Counts(); uint64(len(r.queue))+c.Limited+c.Dropped != 1600 || len(r.queue) == 0 || c.Limited == 0 {
		t.Errorf("%d in the queue, %+v", len(r.queue), c)
	}
}
