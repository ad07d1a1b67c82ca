// SPDX-License-Identifier: Apache-2.0

package memapi

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"syscall"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// bookmarkEvery is the interval of bookmarks of an idle watch.
const bookmarkEvery = time.Minute

// stream is the response body of one watch. Its content is produced when it is read, so it
// needs no goroutine. Server.mu guards everything except the channels.
type stream struct {
	s     *Server
	r     *Request
	t     *table
	scope scope
	fault Fault
	done  <-chan struct{} // closed when the request is canceled
	shut  chan struct{}   // closed by Close
	once  sync.Once

	buf       []byte
	err       error     // follows buf; nil if the stream continues
	listing   []*state  // the unsent part of a streamed list
	initial   bool      // the bookmark that ends the list has not been sent yet
	next      int       // index in the table's log
	sent      int64     // the version that the client has reached
	events    int       // number of events sent
	bookmarks bool      // bookmarks are requested
	bookmark  time.Time // when the next one is due
	endAt     time.Time // set by the fault; zero means never
	timeout   time.Time // requested by the client
	stalled   bool
}

// newStream returns the response to a watch. The caller must hold mu.
func (s *Server) newStream(ctx context.Context, r *Request, sc scope, fault *Fault) (*stream, error) {
	now := s.cfg.Now()
	w := &stream{
		s: s, r: r, t: s.table(&r.Kind), scope: sc, fault: *fault, done: ctx.Done(), shut: make(chan struct{}),
		bookmarks: r.Query.Get("allowWatchBookmarks") == "true", bookmark: now.Add(bookmarkEvery), timeout: now.Add(time.Hour),
	}
	if seconds, err := strconv.Atoi(r.Query.Get("timeoutSeconds")); err == nil && seconds > 0 {
		w.timeout = now.Add(time.Duration(seconds) * time.Second)
	}
	if fault.EndAfter > 0 {
		w.endAt = now.Add(fault.EndAfter)
	}
	switch version := r.Query.Get("resourceVersion"); {
	case r.Query.Get("sendInitialEvents") == "true", version == "", version == "0":
		w.initial, w.sent = r.Query.Get("sendInitialEvents") == "true", s.version
		w.listing = slices.DeleteFunc(w.t.at(s.version, s.version), func(st *state) bool { return !sc.has(st) })
	default:
		from, err := strconv.ParseInt(version, 10, 64)
		if err != nil {
			return nil, apierrors.NewBadRequest("resourceVersion: " + err.Error())
		}
		if w.sent = from; from < s.compacted {
			w.finish(Expired)
		}
	}
	w.next = len(w.t.log)
	for w.next > 0 && w.t.log[w.next-1].version > w.sent {
		w.next--
	}
	return w, nil
}

// Read implements io.Reader.
func (w *stream) Read(p []byte) (int, error) {
	for {
		n, wait, err := w.step(p)
		if n > 0 || err != nil {
			return n, err
		}
		timer := time.NewTimer(wait.until.Sub(w.s.cfg.Now()))
		select {
		case <-wait.changed:
		case <-timer.C:
		case <-w.done:
			err = io.ErrUnexpectedEOF
		case <-w.shut:
			err = http.ErrBodyReadAfterClose
		}
		timer.Stop()
		if err != nil {
			return 0, err
		}
	}
}

// pause is the condition that an idle stream waits for.
type pause struct {
	changed <-chan struct{}
	until   time.Time
}

// step returns the available data, or the condition to wait for.
func (w *stream) step(p []byte) (n int, wait pause, err error) {
	w.s.mu.Lock()
	defer w.s.mu.Unlock()
	for len(w.buf) == 0 && w.err == nil {
		if wait = w.fill(w.s.cfg.Now()); !wait.until.IsZero() {
			return 0, wait, nil
		}
	}
	if len(w.buf) == 0 {
		return 0, wait, w.err
	}
	n = copy(p, w.buf)
	w.buf = w.buf[n:]
	return n, wait, nil
}

// fill produces the next data, or returns the condition to wait for.
func (w *stream) fill(now time.Time) pause {
	wait := pause{w.s.changed, now.Add(time.Hour)}
	if w.stalled {
		return wait
	}
	if w.due(now) {
		return pause{}
	}
	if len(w.listing) > 0 {
		w.event("ADDED", w.listing[0])
		w.listing = w.listing[1:]
		return pause{}
	}
	if w.initial {
		w.initial, w.s.listed[w.r.scopeID()] = false, true
		w.send("BOOKMARK", w.mark(true))
		return pause{}
	}
	if w.next < len(w.t.log) {
		st := w.t.log[w.next]
		if st.version <= w.sent { // the client asked for later versions than those of a restored server
			w.next++
			return pause{}
		}
		at := st.at.Add(w.fault.Latency)
		if !at.After(now) {
			w.next++
			w.sent = st.version
			w.change(st)
			return pause{}
		}
		wait.until = at
	} else if w.bookmarks && !w.bookmark.After(now) {
		w.sent = w.s.version
		w.send("BOOKMARK", w.mark(false))
		return pause{}
	}
	for _, t := range []time.Time{w.endAt, w.timeout, w.bookmark} {
		if t.After(now) && t.Before(wait.until) {
			wait.until = t
		}
	}
	return wait
}

// due ends the stream if its time or its number of events has been reached.
func (w *stream) due(now time.Time) bool {
	switch {
	case !w.endAt.IsZero() && !w.endAt.After(now), w.fault.EndEvents > 0 && w.events >= w.fault.EndEvents:
		w.finish(w.fault.End)
	case !w.timeout.After(now):
		w.finish(InOrder)
	default:
		return false
	}
	return true
}

// finish ends the stream.
func (w *stream) finish(how End) {
	w.fault.EndEvents, w.endAt = 0, time.Time{}
	w.err = io.EOF
	switch how {
	case InOrder:
	case Reset:
		w.err = fmt.Errorf("read tcp 127.0.0.1:6443: %w", syscall.ECONNRESET)
	case Cut:
		w.buf = append(w.buf, `{"type":"MODIFIED","object":{"apiVersion"`...)
	case Expired:
		w.send("ERROR", encode(StatusOf(apierrors.NewResourceExpired("too old resource version"))))
	case Failed:
		w.send("ERROR", encode(StatusOf(apierrors.NewInternalError(fmt.Errorf("planned")))))
	case Stalled:
		w.err, w.stalled = nil, true
	}
}

// change sends a state to a client that sees only a part of the objects. If the object no
// longer matches, the client receives a deletion.
func (w *stream) change(st *state) {
	had, has := w.scope.has(st.before), w.scope.has(st)
	switch {
	case had && has:
		w.event("MODIFIED", st)
	case has:
		w.event("ADDED", st)
	case had: // with the last state that matched
		o := st.before.unstructured().DeepCopy()
		o.SetResourceVersion(strconv.FormatInt(st.version, 10))
		w.event("DELETED", &state{object: o.Object})
	}
}

func (w *stream) event(kind string, st *state) {
	w.events++
	js := encode(w.r.versioned(st.object))
	w.send(kind, js)
	if w.fault.Twice > 0 && w.events%w.fault.Twice == 0 {
		w.send(kind, js)
	}
	w.bookmark = w.s.cfg.Now().Add(bookmarkEvery)
}

func (w *stream) send(kind string, object []byte) {
	w.buf = fmt.Appendf(w.buf, `{"type":%q,"object":%s}`+"\n", kind, object)
}

func (w *stream) mark(endsList bool) []byte {
	w.bookmark = w.s.cfg.Now().Add(bookmarkEvery)
	o := w.r.basis(nil)
	o.SetResourceVersion(strconv.FormatInt(w.sent, 10))
	if endsList {
		o.SetAnnotations(map[string]string{metav1.InitialEventsAnnotationKey: "true"})
	}
	return encode(o.Object)
}

// Close implements io.Closer.
func (w *stream) Close() error {
	w.once.Do(func() {
		close(w.shut)
		w.s.mu.Lock()
		defer w.s.mu.Unlock()
		w.s.streams = slices.DeleteFunc(w.s.streams, func(v *stream) bool { return v == w })
	})
	return nil
}

// EndStreams ends every n-th open watch, beginning with the first.
func (s *Server) EndStreams(n int, how End) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, w := range s.streams {
		if i%n == 0 && w.err == nil && !w.stalled {
			w.finish(how)
		}
	}
	s.wake()
}

// Open returns the number of open watches.
func (s *Server) Open() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.streams)
}

// wake makes all streams check for new data. The caller holds mu.
func (s *Server) wake() {
	close(s.changed)
	s.changed = make(chan struct{})
}

func encode(v any) []byte {
	js, err := json.Marshal(v)
	if err != nil {
		panic("BUG: memapi: " + err.Error()) // it consists of JSON values
	}
	return js
}
