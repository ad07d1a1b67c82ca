package apisim

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/internal/memapi"
)

// Transport lets clients use a Server as their HTTP transport.
type Transport struct {
	Server *Server
	// NoStreams refuses streamed lists, like API servers before 1.32.
	NoStreams bool

	numbers map[string]int // guarded by Server.mu
}

// RoundTrip implements http.RoundTripper.
func (t *Transport) RoundTrip(r *http.Request) (*http.Response, error) {
	q := r.URL.Query()
	req, table, err := t.parse(r.URL.Path, q)
	if err != nil {
		return memapi.Refuse(r, err), nil
	}
	plan := t.Server.plan(req)
	if plan.Delay > 0 && !pass(r.Context(), plan.Delay) {
		return nil, r.Context().Err()
	}
	switch {
	case plan.Err != nil:
		return nil, plan.Err
	case plan.Code != 0:
		return planned(r, req, table, &plan), nil
	case req.Verb == Stream && t.NoStreams:
		return memapi.Refuse(r, apierrors.NewInvalid(metav1.SchemeGroupVersion.WithKind("ListOptions").GroupKind(), "", nil)), nil
	}
	selector, err := labels.Parse(req.Selector)
	if err != nil {
		return memapi.Refuse(r, apierrors.NewBadRequest(err.Error())), nil
	}
	sc := scope{scopeID(req.Resource, req.Namespace, req.Selector), req.Namespace, selector}
	if req.Verb == List {
		return t.Server.list(r, table, sc, q, &plan), nil
	}
	return t.Server.watch(r, table, sc, q, &plan), nil
}

// parse parses "/apis/GROUP/VERSION/[namespaces/NAMESPACE/]RESOURCE".
func (t *Transport) parse(path string, q url.Values) (*Request, *table, error) {
	parts := strings.Split(strings.Trim(path, "/"), "/")
	req := &Request{Verb: List, Selector: q.Get("labelSelector"), Version: q.Get("resourceVersion"), Continue: q.Get("continue") != ""}
	if len(parts) == 6 && parts[3] == "namespaces" {
		req.Namespace = parts[4]
	}
	req.Resource = parts[len(parts)-1]
	switch {
	case q.Get("sendInitialEvents") == "true":
		req.Verb = Stream
	case q.Get("watch") == "true" || q.Get("watch") == "1":
		req.Verb = Watch
	}
	tb := t.Server.tables[req.Resource]
	if tb == nil || len(parts) < 4 || parts[1] != tb.Group || parts[2] != tb.Version {
		return nil, nil, apierrors.NewGenericServerResponse(http.StatusNotFound, "get", metav1.SchemeGroupVersion.WithResource(path).GroupResource(), "", "", 0, false)
	}
	t.Server.mu.Lock()
	defer t.Server.mu.Unlock()
	if t.numbers == nil {
		t.numbers = map[string]int{}
	}
	id := scopeID(req.Resource, req.Namespace, req.Selector)
	t.numbers[id]++
	req.Number = t.numbers[id]
	return req, tb, nil
}

// pass waits, and reports whether ctx has not ended.
func pass(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// planned returns the error response of a plan.
func planned(r *http.Request, req *Request, t *table, plan *Plan) *http.Response {
	var err error
	switch plan.Code {
	case http.StatusGone:
		err = apierrors.NewResourceExpired("too old resource version")
	case http.StatusForbidden:
		err = apierrors.NewForbidden(t.GroupResource(), "", fmt.Errorf("cannot %s", req.Verb))
	default:
		err = apierrors.NewGenericServerResponse(plan.Code, string(req.Verb), t.GroupResource(), "", "planned", plan.RetryAfter, true)
	}
	return memapi.Refuse(r, err)
}

// list responds with a page, or with the complete list.
func (s *Server) list(r *http.Request, t *table, sc scope, q url.Values, plan *Plan) *http.Response {
	s.mu.Lock()
	defer s.mu.Unlock()
	version, after := s.version, abi.Key{}
	switch more := q.Get("continue"); {
	case more != "":
		if _, err := fmt.Sscanf(more, "%d %s %s", &version, &after.Namespace, &after.Name); err != nil {
			return memapi.Refuse(r, apierrors.NewBadRequest("continue: "+err.Error()))
		}
		after.Namespace = strings.TrimSuffix(after.Namespace, "/")
		if version < s.compacted {
			return memapi.Refuse(r, apierrors.NewResourceExpired("the provided continue parameter is too old"))
		}
	case q.Get("resourceVersion") == "0":
		version = max(version-plan.Lag, min(s.compacted, version))
	}
	limit, _ := strconv.Atoi(q.Get("limit")) // 0 if there is none
	if plan.PageSize > 0 && limit > 0 {
		limit = min(limit, plan.PageSize)
	}
	page, more := t.page(sc, version, after, limit)
	s.listed[sc.id] = s.listed[sc.id] || !more
	return memapi.Respond(r, http.StatusOK, io.NopCloser(bytes.NewReader(page)))
}

// page encodes a list as of a version: up to limit objects after a key; 0 means all. The caller must hold Server.mu.
func (t *table) page(sc scope, version int64, after abi.Key, limit int) (body []byte, more bool) {
	states := slices.DeleteFunc(t.at(version), func(st *state) bool { return !sc.has(st) || st.key.Compare(after) <= 0 })
	next := ""
	if limit > 0 && len(states) > limit {
		states = states[:limit]
		last := states[limit-1].key
		next = fmt.Sprintf("%d %s/ %s", version, last.Namespace, last.Name)
	}
	var b bytes.Buffer
	fmt.Fprintf(&b, `{"apiVersion":%q,"kind":%q,"metadata":{"resourceVersion":"%d","continue":%q},"items":[`, t.GroupVersion(), t.Kind+"List", version, next)
	for i, st := range states {
		if i > 0 {
			b.WriteByte(',')
		}
		b.Write(st.encoded())
	}
	b.WriteString("]}")
	return b.Bytes(), next != ""
}
