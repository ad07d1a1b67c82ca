// SPDX-License-Identifier: Apache-2.0

package watcher_test

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	"k8s.io/client-go/rest"

	"github.com/wasmctl/wasmctl/runtime/watcher"
)

// wire simulates an API server byte by byte, below the real client: each request gets the next reply. When they are
// used up, watches are opened and stay silent, and lists fail the test.
type wire struct {
	testing.TB
	opened chan struct{} // closed when requests are answered

	mu       sync.Mutex
	replies  []reply  // guarded by mu
	requests []string // guarded by mu; since the last call of took
}

// reply is the response to one request.
type reply struct {
	status int         // 0 means 200
	header http.Header // may be nil
	body   string
	err    error         // instead of a response or, with a body, after it
	open   bool          // the response does not end after the body
	stream io.ReadCloser // instead of body, err and open
	after  time.Duration // the time until the response
}

// openWire returns an API server that answers from the start.
func openWire(tb testing.TB) *wire {
	w := &wire{TB: tb, opened: make(chan struct{})}
	close(w.opened)
	return w
}

// RoundTrip implements http.RoundTripper.
func (w *wire) RoundTrip(r *http.Request) (*http.Response, error) {
	<-w.opened
	if r.URL.Path == "/version" { // it has no version
		return &http.Response{StatusCode: http.StatusNotFound, Body: http.NoBody, Request: r}, nil
	}
	next := w.take(r)
	pass(next.after)
	return next.response(r)
}

// take records a request, and returns the reply to it.
func (w *wire) take(r *http.Request) reply {
	w.mu.Lock()
	defer w.mu.Unlock()
	q := r.URL.Query()
	if q.Get("limit") == "1" { // asked for the version, which is far from running backwards
		return reply{body: `{"kind":"ConfigMapList","apiVersion":"v1","metadata":{"resourceVersion":"1000000"},"items":[]}`}
	}
	verb := "list"
	switch {
	case q.Get("sendInitialEvents") == "true":
		verb = "stream"
	case q.Get("watch") != "":
		verb = "watch"
	case q.Get("continue") != "":
		verb = "page " + q.Get("continue")
	}
	w.requests = append(w.requests, strings.TrimSpace(verb+" "+q.Get("resourceVersion")))
	next := reply{open: true}
	switch {
	case len(w.replies) > 0:
		next, w.replies = w.replies[0], w.replies[1:]
	case q.Get("watch") == "":
		w.Errorf("a %s too many", verb)
	}
	return next
}

// response returns the response, or the error instead of one.
func (next *reply) response(r *http.Request) (*http.Response, error) {
	if next.err != nil && next.body == "" {
		return nil, next.err
	}
	header := http.Header{"Content-Type": {"application/json"}}
	maps.Copy(header, next.header)
	answer := next.stream
	if answer == nil {
		answer = &wireBody{text: strings.NewReader(next.body), reply: *next, done: r.Context().Done(), closed: make(chan struct{})}
	}
	return &http.Response{
		StatusCode: cmp.Or(next.status, http.StatusOK), Header: header, Request: r,
		Body: answer,
	}, nil
}

// wireBody returns a reply's body and then ends, fails, or waits for the end of the request.
type wireBody struct {
	text   io.Reader
	reply  reply
	done   <-chan struct{}
	once   sync.Once
	closed chan struct{}
}

func (b *wireBody) Read(p []byte) (int, error) {
	n, err := b.text.Read(p)
	if err == nil || n > 0 {
		return n, nil
	}
	if b.reply.open {
		select {
		case <-b.done:
			return 0, io.ErrClosedPipe
		case <-b.closed:
			return 0, io.ErrClosedPipe
		}
	}
	if b.reply.err != nil {
		return 0, b.reply.err
	}
	return 0, io.EOF
}

func (b *wireBody) Close() error {
	b.once.Do(func() { close(b.closed) })
	return nil
}

// then adds replies.
func (w *wire) then(replies ...reply) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.replies = append(w.replies, replies...)
}

// took compares the requests since the last call.
func (w *wire) took(want ...string) {
	w.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	if diff := gocmp.Diff(want, w.requests); diff != "" {
		w.Errorf("requests: %s", diff)
	}
	w.requests = nil
	if len(w.replies) > 0 {
		w.Errorf("%d replies were not asked for", len(w.replies))
	}
}

// onWire subscribes to configmaps through the real client in a bubble. The API server answers only after the
// subscription has joined its watch: otherwise, the subscription could receive the changes of the first reply as part of
// the listed content.
func onWire(t *testing.T, f func(t *testing.T, w *wire, start func() *user)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := &wire{TB: t, opened: make(chan struct{})}
		client, err := watcher.NewClient(&rest.Config{Host: "http://wire", Transport: w})
		if err != nil {
			t.Fatal(err)
		}
		f(t, w, func() *user {
			u := subscribe(t, watcher.NewSet(client, watcher.Config{}), watcher.Source{Resource: configMaps})
			synctest.Wait()
			close(w.opened)
			return u
		})
	})
}

// line is one event of a watch: "ADDED a 5" is object a, with uid ua, at resourceVersion 5. A uid may follow.
func line(event string) string {
	f := strings.Fields(event)
	meta := map[string]any{"name": f[1], "namespace": "ns", "uid": "u" + f[1], "resourceVersion": f[2]}
	if len(f) > 3 {
		meta["uid"] = f[3]
	}
	return encodeLine(f[0], map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta})
}

func encodeLine(t string, object map[string]any) string {
	b, err := json.Marshal(object)
	if err != nil {
		panic(err)
	}
	return fmt.Sprintf("{\"type\":%q,\"object\":%s}\n", t, b)
}

func lines(events ...string) string {
	var b strings.Builder
	for _, ev := range events {
		b.WriteString(line(ev))
	}
	return b.String()
}

// bookmark ends a streamed list (initial), or only reports the server's version.
func bookmark(version string, initial bool) string {
	meta := map[string]any{"resourceVersion": version}
	if initial {
		meta["annotations"] = map[string]any{"k8s.io/initial-events-end": "true"}
	}
	return encodeLine("BOOKMARK", map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta})
}

// failure is a Status: as the body of a response, or with line as an event.
func failure(code int, reason string) map[string]any {
	return map[string]any{
		"apiVersion": "v1", "kind": "Status", "status": "Failure", "code": code, "reason": reason, "message": "for the test: " + reason,
	}
}

func refusal(code int, reason string) reply {
	b, err := json.Marshal(failure(code, reason))
	if err != nil {
		panic(err)
	}
	return reply{status: code, body: string(b)}
}

// listOf is a list response: objects as in line, without the type.
func listOf(version, more string, objects ...string) string {
	items := []any{}
	for _, o := range objects {
		var ev struct{ Object any }
		if err := json.Unmarshal([]byte(line("ADDED "+o)), &ev); err != nil {
			panic(err)
		}
		items = append(items, ev.Object)
	}
	meta := map[string]any{"resourceVersion": version}
	if more != "" {
		meta["continue"] = more
	}
	b, err := json.Marshal(map[string]any{"apiVersion": "v1", "kind": "ConfigMapList", "metadata": meta, "items": items})
	if err != nil {
		panic(err)
	}
	return string(b)
}

// streamed is a streamed list of a and b at 10, and the events that follow.
func streamed(rest string) string {
	return lines("ADDED a 5", "ADDED b 6") + bookmark("10", true) + rest
}

// content returns "a/5 b/6" of a store.
func content(u *user) string {
	var all []string
	for _, o := range u.sub.Store().List() {
		all = append(all, fmt.Sprintf("%s/%s", o.Ref().Name, o.ResourceVersion()))
	}
	slices.Sort(all)
	return strings.Join(all, " ")
}
