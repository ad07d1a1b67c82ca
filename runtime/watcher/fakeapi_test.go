// SPDX-License-Identifier: Apache-2.0

package watcher_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"path"
	"slices"
	"strconv"
	"sync"
	"syscall"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"

	"github.com/wasmctl/wasmctl/runtime/watcher"
)

var configMaps = schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}

// fakeAPI is a small API server in memory: one numbered history per resource, watches that start anywhere in it,
// streamed lists, compaction, and faults on request. It simulates behavior that cannot be provoked in a real server at
// a given moment; the real one is in real_test.go.
type fakeAPI struct {
	mu        sync.Mutex
	resources map[string]*fakeResource // guarded by mu
}

func newFakeAPI() *fakeAPI { return &fakeAPI{resources: map[string]*fakeResource{}} }

// set returns a Set whose client uses the fake.
func (f *fakeAPI) set(cfg watcher.Config) *watcher.Set {
	client, err := watcher.NewClient(&rest.Config{Host: "http://fake", Transport: f})
	if err != nil {
		panic(err)
	}
	return watcher.NewSet(client, cfg)
}

// RoundTrip implements http.RoundTripper.
func (f *fakeAPI) RoundTrip(req *http.Request) (*http.Response, error) {
	if req.URL.Path == "/version" { // it has no version
		return &http.Response{StatusCode: http.StatusNotFound, Body: http.NoBody, Request: req}, nil
	}
	r := f.of(schema.GroupVersionResource{Resource: path.Base(req.URL.Path)})
	res := &http.Response{StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {"application/json"}}, Request: req}
	var err error
	if req.URL.Query().Get("watch") != "" {
		res.Body, err = r.watch(req)
	} else {
		var list *unstructured.UnstructuredList
		if list, err = r.list(req); err == nil {
			res.Body = jsonBody(list)
		}
	}
	if refused, ok := errors.AsType[*apierrors.StatusError](err); ok {
		res.StatusCode = int(refused.ErrStatus.Code)
		res.Body, err = jsonBody(statusOf(refused)), nil
	}
	if err != nil {
		return nil, err
	}
	return res, nil
}

func jsonBody(v any) io.ReadCloser {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return io.NopCloser(bytes.NewReader(b))
}

func (f *fakeAPI) of(gvr schema.GroupVersionResource) *fakeResource {
	f.mu.Lock()
	defer f.mu.Unlock()
	r := f.resources[gvr.Resource]
	if r == nil {
		r = &fakeResource{objects: map[string]*unstructured.Unstructured{}, rv: 10}
		f.resources[gvr.Resource] = r
	}
	return r
}

type fakeResource struct {
	mu        sync.Mutex
	rv        int
	uids      int
	objects   map[string]*unstructured.Unstructured
	history   []change
	compacted int // changes up to this one are forgotten
	streams   []*fakeStream
	requests  []string
	// fault, if set, returns the fault of each request: "list", "watch" or "stream".
	fault func(verb string) error
	// closeAtOnce ends each watch as soon as it is opened.
	closeAtOnce bool
	// cutLists ends streamed lists before the bookmark that completes them.
	cutLists bool
	// listsExpire rejects lists from a resourceVersion.
	listsExpire bool
	// stall makes watches silent from now on: they send not even their end, but are not closed.
	stall bool
	// hang is how long list requests take to notice that they are canceled.
	hang time.Duration
}

type change struct {
	rv int
	ev watch.Event
}

// fakeStream is the response body of a watch.
type fakeStream struct {
	r      *fakeResource
	result chan watch.Event
	gone   <-chan struct{} // the request was canceled
	closed bool            // guarded by r.mu
	end    *time.Timer     // ends the watch gracefully after the requested time
	rest   []byte          // unread part of the current event
}

// Read implements io.Reader.
func (s *fakeStream) Read(p []byte) (int, error) {
	if len(s.rest) == 0 {
		select {
		case ev, ok := <-s.result:
			if !ok {
				return 0, io.EOF
			}
			b, err := json.Marshal(map[string]any{"type": ev.Type, "object": ev.Object})
			if err != nil {
				panic(err)
			}
			s.rest = append(b, '\n')
		case <-s.gone:
			_ = s.Close()
			return 0, context.Canceled
		}
	}
	n := copy(p, s.rest)
	s.rest = s.rest[n:]
	return n, nil
}

// Close implements io.Closer.
func (s *fakeStream) Close() error {
	s.r.mu.Lock()
	defer s.r.mu.Unlock()
	s.r.end(s)
	return nil
}

func (s *fakeStream) timeout() {
	s.r.mu.Lock()
	defer s.r.mu.Unlock()
	if !s.r.stall {
		s.r.end(s)
	}
}

// end closes a stream. The caller must hold mu.
func (r *fakeResource) end(s *fakeStream) {
	if !s.closed {
		s.closed = true
		s.end.Stop()
		close(s.result)
		r.streams = slices.DeleteFunc(r.streams, func(t *fakeStream) bool { return t == s })
	}
}

// list responds to a list.
func (r *fakeResource) list(req *http.Request) (*unstructured.UnstructuredList, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if hang := r.hang; hang > 0 {
		r.mu.Unlock()
		<-req.Context().Done()
		pass(hang)
		r.mu.Lock()
	}
	version := req.URL.Query().Get("resourceVersion")
	verb := "list"
	if req.URL.Query().Get("limit") == "1" {
		verb = "version" // all that such a list is for
	}
	if err := r.begin(req.Context(), verb, version); err != nil {
		return nil, err
	}
	if r.listsExpire && version != "" && version != "0" {
		return nil, apierrors.NewResourceExpired("too old resource version")
	}
	list := &unstructured.UnstructuredList{Object: map[string]any{"apiVersion": "v1", "kind": "XList"}}
	list.SetResourceVersion(strconv.Itoa(r.rv))
	for _, o := range r.objects {
		list.Items = append(list.Items, *o.DeepCopy())
	}
	return list, nil
}

// watch responds to a watch.
func (r *fakeResource) watch(req *http.Request) (io.ReadCloser, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	opts := req.URL.Query()
	streaming := opts.Get("sendInitialEvents") == "true"
	verb := "watch"
	if streaming {
		verb = "stream"
	}
	if err := r.begin(req.Context(), verb, opts.Get("resourceVersion")); err != nil {
		return nil, err
	}
	s := &fakeStream{r: r, result: make(chan watch.Event, 10_000), gone: req.Context().Done()}
	seconds, err := strconv.Atoi(opts.Get("timeoutSeconds"))
	if err != nil {
		panic(err)
	}
	s.end = time.AfterFunc(time.Duration(seconds)*time.Second, s.timeout)
	r.streams = append(r.streams, s)
	from, _ := strconv.Atoi(opts.Get("resourceVersion"))
	switch {
	case streaming:
		for _, o := range r.objects {
			s.result <- watch.Event{Type: watch.Added, Object: o.DeepCopy()}
			if r.cutLists {
				r.end(s)
				return s, nil
			}
		}
		s.result <- r.bookmark(map[string]string{metav1.InitialEventsAnnotationKey: "true"})
	case from < r.compacted:
		s.result <- watch.Event{Type: watch.Error, Object: expired()}
		r.end(s)
	default:
		for _, c := range r.history {
			if c.rv > from {
				s.result <- c.ev
			}
		}
	}
	if r.closeAtOnce {
		r.end(s)
	}
	return s, nil
}

func expired() *metav1.Status {
	return statusOf(apierrors.NewResourceExpired("too old resource version"))
}

// statusOf returns an error in the format of API servers.
func statusOf(err *apierrors.StatusError) *metav1.Status {
	st := err.Status()
	st.APIVersion, st.Kind = "v1", "Status"
	return &st
}

// begin records a request and applies the fault. The caller must hold mu.
func (r *fakeResource) begin(ctx context.Context, verb, rv string) error {
	if verb == "version" {
		r.requests = append(r.requests, verb)
	} else {
		r.requests = append(r.requests, verb+" "+rv)
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	if r.fault != nil {
		return r.fault(verb)
	}
	return nil
}

func (r *fakeResource) bookmark(annotations map[string]string) watch.Event {
	u := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "X"}}
	u.SetResourceVersion(strconv.Itoa(r.rv))
	u.SetAnnotations(annotations)
	return watch.Event{Type: watch.Bookmark, Object: u}
}

// set creates or changes an object; remove deletes one.
func (r *fakeResource) set(name string, data any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.rv++
	t := watch.Modified
	o := r.objects[name]
	if o == nil {
		t = watch.Added
		r.uids++
		o = &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "X", "metadata": map[string]any{
			"name": name, "namespace": "ns", "uid": fmt.Sprint("u", r.uids),
		}}}
	}
	if n, ok := data.(int); ok {
		data = int64(n)
	}
	o = o.DeepCopy()
	o.Object["data"] = data
	o.SetResourceVersion(strconv.Itoa(r.rv))
	r.objects[name] = o
	r.send(watch.Event{Type: t, Object: o})
}

func (r *fakeResource) remove(name string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.rv++
	o := r.objects[name].DeepCopy()
	o.SetResourceVersion(strconv.Itoa(r.rv))
	delete(r.objects, name)
	r.send(watch.Event{Type: watch.Deleted, Object: o})
}

// send records an event and sends it to the open watches. The caller must hold mu.
func (r *fakeResource) send(ev watch.Event) {
	r.history = append(r.history, change{r.rv, ev})
	if r.stall {
		return
	}
	for _, s := range r.streams {
		s.result <- watch.Event{Type: ev.Type, Object: ev.Object.DeepCopyObject()}
	}
}

// cut ends all open watches gracefully, like the API server.
func (r *fakeResource) cut() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for len(r.streams) > 0 {
		r.end(r.streams[0])
	}
}

// lose makes all open watches dead: they are silent and never end.
func (r *fakeResource) lose() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, s := range r.streams {
		s.end.Stop()
	}
	r.streams = nil
}

// compact discards the server's history.
func (r *fakeResource) compact() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.rv++
	r.compacted, r.history = r.rv, nil
}

// sendBookmark sends a bookmark to all open watches.
func (r *fakeResource) sendBookmark() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.stall {
		return
	}
	for _, s := range r.streams {
		s.result <- r.bookmark(nil)
	}
}

// failWith makes every request of the verbs (all, if none is given) fail with err; nil ends the fault. Open watches
// continue.
func (r *fakeResource) failWith(err error, verbs ...string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.fault = func(verb string) error {
		if len(verbs) == 0 || slices.Contains(verbs, verb) {
			return err
		}
		return nil
	}
}

// took returns the requests since the last call.
func (r *fakeResource) took() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	requests := r.requests
	r.requests = nil
	return requests
}

// open returns the number of open watches.
func (r *fakeResource) open() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.streams)
}

// Faults.
var (
	errRefused       = fmt.Errorf("dial tcp 127.0.0.1:6443: %w", syscall.ECONNREFUSED)
	errBusy          = apierrors.NewGenericServerResponse(http.StatusTooManyRequests, "watch", schema.GroupResource{}, "", "slow down", 0, true)
	errBusyForAnHour = apierrors.NewGenericServerResponse(http.StatusTooManyRequests, "watch", schema.GroupResource{}, "", "slow down", 3600, true)
	expiredError     = apierrors.NewResourceExpired("too old resource version")
	errNotFound      = apierrors.NewGenericServerResponse(http.StatusNotFound, "list", schema.GroupResource{Resource: "widgets"}, "", "", 0, true)
	errInternal      = apierrors.NewInternalError(fmt.Errorf("etcd is gone"))
	errNoStreams     = apierrors.NewInvalid(schema.GroupKind{Kind: "ListOptions"}, "", nil)
	errForbidden     = apierrors.NewForbidden(schema.GroupResource{Resource: "configmaps"}, "", fmt.Errorf("user \"u\" cannot list"))
)
