package apisim

import (
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"sync"
	"syscall"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/internal/memapi"
)

// bookmarkEvery is how often a quiet watch gets a bookmark.
const bookmarkEvery = time.Minute

// stream is the response body of one watch. Its content is produced when it is read, so it needs no goroutine. Everything except the
// channels is guarded by Server.mu.
type stream struct {
	s     *Server
	t     *table
	scope scope
	plan  Plan
	done  <-chan struct{} // closed when the request is canceled
	shut  chan struct{}   // closed by Close
	once  sync.Once

	buf       []byte
	err       error     // follows buf; nil if the stream continues
	listing   []*state  // the unsent part of a streamed list
	initial   bool      // the bookmark that ends the list has not been sent yet
	next      int       // in the table's history
	sent      int64     // the version that the client has reached
	events    int       // sent
	bookmarks bool      // bookmarks are requested
	bookmark  time.Time // when the next is due
	endAt     time.Time // set by the plan; zero means never
	timeout   time.Time // requested by the client
	stalled   bool
}

// watch responds with a stream of events.
func (s *Server) watch(r *http.Request, t *table, sc scope, q url.Values, plan *Plan) *http.Response {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	w := &stream{
		s: s, t: t, scope: sc, plan: *plan, done: r.Context().Done(), shut: make(chan struct{}),
		bookmarks: q.Get("allowWatchBookmarks") == "true", bookmark: now.Add(bookmarkEvery), timeout: now.Add(time.Hour),
	}
	if seconds, err := strconv.Atoi(q.Get("timeoutSeconds")); err == nil {
		w.timeout = now.Add(time.Duration(seconds) * time.Second)
	}
	if plan.EndAfter > 0 {
		w.endAt = now.Add(plan.EndAfter)
	}
	from, _ := strconv.ParseInt(q.Get("resourceVersion"), 10, 64) // 0 if there is none
	switch {
	case q.Get("sendInitialEvents") == "true":
		w.initial, w.sent = true, s.version
		w.listing = slices.DeleteFunc(t.at(s.version), func(st *state) bool { return !sc.has(st) })
	case from < s.compacted:
		w.finish(Expired)
	default:
		w.sent = from
	}
	w.next = len(t.history)
	for w.next > 0 && t.history[w.next-1].version > w.sent {
		w.next--
	}
	s.streams = append(s.streams, w)
	return memapi.Respond(r, http.StatusOK, w)
}

// Read implements io.Reader.
func (w *stream) Read(p []byte) (int, error) {
	for {
		n, wait, err := w.step(p)
		if n > 0 || err != nil {
			return n, err
		}
		timer := time.NewTimer(time.Until(wait.until))
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

// pause is what an idle stream waits for.
type pause struct {
	changed <-chan struct{}
	until   time.Time
}

// step returns the available data, or what to wait for.
func (w *stream) step(p []byte) (n int, wait pause, err error) {
	w.s.mu.Lock()
	defer w.s.mu.Unlock()
	for len(w.buf) == 0 && w.err == nil {
		if wait = w.fill(time.Now()); !wait.until.IsZero() {
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

// fill produces the next data, or returns what to wait for.
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
		w.initial, w.s.listed[w.scope.id] = false, true
		w.send("BOOKMARK", w.mark(true))
		return pause{}
	}
	if w.next < len(w.t.history) {
		st := w.t.history[w.next]
		at := st.at.Add(w.plan.Latency)
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
	case !w.endAt.IsZero() && !w.endAt.After(now), w.plan.EndEvents > 0 && w.events >= w.plan.EndEvents:
		w.finish(w.plan.End)
	case !w.timeout.After(now):
		w.finish(InOrder)
	default:
		return false
	}
	return true
}

// finish ends the stream.
func (w *stream) finish(how End) {
	w.plan.EndEvents, w.endAt = 0, time.Time{}
	w.err = io.EOF
	switch how {
	case InOrder:
	case Reset:
		w.err = fmt.Errorf("read tcp 127.0.0.1:6443: %w", syscall.ECONNRESET)
	case Cut:
		w.buf = append(w.buf, `{"type":"MODIFIED","object":{"apiVersion"`...)
	case Expired:
		w.send("ERROR", encode(memapi.StatusOf(apierrors.NewResourceExpired("too old resource version"))))
	case Failed:
		w.send("ERROR", encode(memapi.StatusOf(apierrors.NewInternalError(fmt.Errorf("planned")))))
	case Stalled:
		w.err, w.stalled = nil, true
	}
}

// change sends a state to a client that sees only a part of the objects: an object that no longer matches is deleted for it.
func (w *stream) change(st *state) {
	had, has := st.before != nil && w.scope.has(st.before), w.scope.has(st)
	switch {
	case had && has:
		w.event("MODIFIED", st)
	case has:
		w.event("ADDED", st)
	case had:
		w.event("DELETED", st)
	}
}

func (w *stream) event(kind string, st *state) {
	w.events++
	w.send(kind, st.encoded())
	if w.plan.Twice > 0 && w.events%w.plan.Twice == 0 {
		w.send(kind, st.encoded())
	}
	w.bookmark = time.Now().Add(bookmarkEvery)
}

func (w *stream) send(kind string, object []byte) {
	w.buf = fmt.Appendf(w.buf, `{"type":%q,"object":%s}`+"\n", kind, object)
}

func (w *stream) mark(endsList bool) []byte {
	w.bookmark = time.Now().Add(bookmarkEvery)
	o := w.t.empty(abi.Key{})
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
