// SPDX-License-Identifier: Apache-2.0

package watcher

import (
	"context"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/wasmctl/wasmctl/runtime/reflector"
)

// stream is the response to one watch request. It handles errors of the decoder, and reports the end of the response.
type stream struct {
	lw      *listWatcher
	source  watch.Interface
	list    *listing // comes first, up to a marked bookmark; nil if the stream has changes only
	number  int      // the number of the request, for status
	result  chan watch.Event
	stopped chan struct{}
	expired <-chan struct{} // closed when the API server should have ended it
	stop    sync.Once
}

func newStream(lw *listWatcher, source watch.Interface, number int) *stream {
	return &stream{
		lw: lw, source: source, number: number,
		result:  make(chan watch.Event),
		stopped: make(chan struct{}),
	}
}

// ResultChan implements watch.Interface.
func (s *stream) ResultChan() <-chan watch.Event { return s.result }

// Stop implements watch.Interface. It may be called more than once.
func (s *stream) Stop() {
	s.stop.Do(func() {
		close(s.stopped)
		s.source.Stop()
	})
}

// run passes events on until the source ends, an error has been passed on, or Stop is called.
func (s *stream) run(ctx context.Context) {
	defer close(s.result)
	defer s.lw.status.closed(s.number)
	defer s.source.Stop()
	end := streamEnd{opened: time.Now()}
	defer end.endList(s)
	for {
		select {
		case <-s.stopped:
			return
		case <-s.expired:
			end.overdue(ctx, s)
			return
		case ev, ok := <-s.source.ResultChan():
			if !ok || ev.Type == watch.Error && s.isExpired() { // if overdue, that is the reason for the error
				end.report(ctx, s)
				return
			}
			end.see(ctx, s, ev)
			if ev, ok = s.packed(ctx, ev, &end); !ok {
				continue
			}
			select {
			case s.result <- ev:
			case <-s.stopped:
				return
			}
			if ev.Type == watch.Error {
				return // the reflector has stopped reading
			}
		}
	}
}

// isExpired reports whether the API server should have ended the stream by now.
func (s *stream) isExpired() bool {
	select {
	case <-s.expired:
		return true
	default:
		return false
	}
}

// packed returns the event with its object packed, or false to skip it. If the tenant has no room for the object, the result is an error that
// makes the reflector list again, because the objects may be fewer then.
func (s *stream) packed(ctx context.Context, ev watch.Event, end *streamEnd) (watch.Event, bool) {
	d := s.lw.api.decoder
	var o *reflector.Object
	var err error
	switch {
	case ev.Type == watch.Error:
		return ev, true
	case ev.Type == watch.Bookmark:
		ev.Object = bookmarkOf(ev.Object)
		return ev, true
	case ev.Type == watch.Deleted:
		o = d.packed(ev.Object)
	case end.inList(s):
		o, err = d.listed(ev.Object, s.list)
	default:
		o, err = d.admitted(ev.Object)
	}
	if err != nil {
		end.fail(ctx, s, err)
		gone := apierrors.NewResourceExpired(err.Error()).Status()
		return watch.Event{Type: watch.Error, Object: &gone}, true
	}
	if o == nil {
		return ev, false
	}
	ev.Object = o
	return ev, true
}

// streamEnd determines from the events of a stream whether its end is a failure.
type streamEnd struct {
	opened   time.Time
	last     time.Time // when the last event arrived
	events   int
	complete bool // the list has ended
}

func (e *streamEnd) see(ctx context.Context, s *stream, ev watch.Event) {
	if ev.Type == watch.Error {
		e.lived(s)
		e.fail(ctx, s, apierrors.FromObject(ev.Object))
		return
	}
	s.lw.status.progressed()
	e.last = time.Now()
	e.events++
	if ev.Type == watch.Bookmark {
		e.complete = e.complete || bookmarkOf(ev.Object).Annotations[metav1.InitialEventsAnnotationKey] == "true"
	}
}

// inList reports whether the stream is in its list.
func (e *streamEnd) inList(s *stream) bool { return s.list != nil && !e.complete }

// endList ends a list that did not come to its end. Otherwise, the loop of the watch ends it.
func (e *streamEnd) endList(s *stream) {
	if e.inList(s) {
		s.list.end()
	}
}

// report reports a stream that ended too soon without reporting an error. It is not a failure if the API server ends a watch normally,
// after some minutes: the reflector resumes it at once.
func (e *streamEnd) report(ctx context.Context, s *stream) {
	if s.isExpired() { // the client noticed it first
		e.overdue(ctx, s)
		return
	}
	lived := e.lived(s)
	switch {
	case ctx.Err() != nil:
	case e.inList(s):
		e.fail(ctx, s, errCutList)
	case lived < shortWatch && e.events == 0:
		e.fail(ctx, s, errShortWatch)
	case lived < shortWatch:
		s.lw.backoff.failed(errShortWatch, Failing, false)
	}
}

// overdue reports a stream that lasts longer than it should. If events still arrive, the server merely ignores the timeout, and resuming is
// harmless.
func (e *streamEnd) overdue(ctx context.Context, s *stream) {
	if ctx.Err() == nil && time.Since(e.last) > 2*watchMargin {
		e.lived(s)
		e.fail(ctx, s, errNoAnswer)
	}
}

// fail reports that the stream has failed, and marks it as closed: the list that came on it may not be in the store yet, and must not make
// the watch look ready.
func (e *streamEnd) fail(ctx context.Context, s *stream, err error) {
	s.lw.status.closed(s.number)
	s.lw.failed(ctx, err, e.inList(s), true)
}

// lived returns how long the stream has been open. If that is long enough, the failure that ends it is not counted as part of a series.
func (e *streamEnd) lived(s *stream) time.Duration {
	d := time.Since(e.opened)
	if d >= healthyWatch {
		s.lw.backoff.reset()
	}
	return d
}
