// SPDX-License-Identifier: Apache-2.0

package memapi

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// parse parses a request. found is the answer to a discovery request.
func (s *Server) parse(r *http.Request) (req *Request, found any, err error) {
	path := strings.Split(strings.Trim(r.URL.Path, "/"), "/")
	if found = s.discover(path); found != nil {
		return nil, found, nil
	}
	req = &Request{Query: r.URL.Query(), contentType: r.Header.Get("Content-Type")}
	if err := s.parsePath(req, path); err != nil {
		return nil, nil, err
	}
	if r.Body != nil {
		if req.body, err = io.ReadAll(r.Body); err != nil {
			return nil, nil, err
		}
	}
	q := req.Query
	req.manager, req.dryRun, req.force = q.Get("fieldManager"), q.Get("dryRun") == "All", q.Get("force") == "true"
	switch req.Verb = verbOf[r.Method]; {
	case req.Verb == "get" && req.Name == "":
		req.Verb = "list"
		if on, err := strconv.ParseBool(q.Get("watch")); err == nil && on {
			req.Verb = "watch"
		}
	case req.Verb == "patch" && req.contentType == string(types.ApplyYAMLPatchType):
		req.Verb = "apply"
	}
	if err := req.check(); err != nil {
		return nil, nil, err
	}
	if req.Verb == "create" {
		req.Name = nameIn(req.body)
	}
	return req, nil, nil
}

var verbOf = map[string]string{
	http.MethodGet: "get", http.MethodPost: "create", http.MethodPut: "update", http.MethodDelete: "delete", http.MethodPatch: "patch",
}

// nameIn returns the name of the object in a body, or "" if there is none.
func nameIn(body []byte) string {
	var o metav1.PartialObjectMetadata
	if err := json.Unmarshal(body, &o); err != nil {
		return "" // serve reports the error
	}
	return o.Name
}

// check returns an error for a request that no resource supports.
func (r *Request) check() error {
	gr := r.Kind.GVR().GroupResource()
	named := r.Verb != "list" && r.Verb != "create" && r.Verb != "watch"
	switch {
	case r.Verb == "" || named != (r.Name != ""):
		return apierrors.NewMethodNotSupported(gr, r.Verb)
	case r.Subresource != "" && (r.Subresource != "status" || !r.Kind.Status):
		return apierrors.NewGenericServerResponse(http.StatusNotFound, r.Verb, gr, r.Name, "the in-memory API server has no subresource "+r.Subresource+" of "+gr.String(), 0, false)
	case r.Subresource != "" && (r.Verb == "create" || r.Verb == "delete"):
		return apierrors.NewMethodNotSupported(gr, r.Verb)
	}
	return nil
}

// parsePath parses
// "/apis/GROUP/VERSION/[namespaces/NAMESPACE/]RESOURCE[/NAME[/SUBRESOURCE]]", or the same
// under /api/VERSION.
func (s *Server) parsePath(req *Request, path []string) error {
	var group, version string
	switch {
	case path[0] == "api" && len(path) > 2:
		version, path = path[1], path[2:]
	case path[0] == "apis" && len(path) > 3:
		group, version, path = path[1], path[2], path[3:]
	default:
		return errNoPage
	}
	if path[0] == "namespaces" && len(path) > 2 && path[2] != "status" {
		req.Namespace, path = path[1], path[2:]
	}
	for i := range s.kinds {
		k := &s.kinds[i]
		if k.Group != group || k.Version != version || k.Resource != path[0] {
			continue
		}
		req.Kind = *k
		if len(path) > 1 {
			req.Name = path[1]
		}
		if len(path) > 2 {
			req.Subresource = strings.Join(path[2:], "/")
		}
		if !k.Namespaced && req.Namespace != "" {
			return errNoPage
		}
		return nil
	}
	return errNoPage
}

// errNoPage is the error for a path without a resource. The API server answers it without a
// Status.
var errNoPage = errors.New("404 page not found")

// fail answers with a fault: with a Status if it is one, and otherwise by breaking the
// connection.
func fail(r *http.Request, err error) (*http.Response, error) {
	if status := apierrors.APIStatus(nil); errors.As(err, &status) {
		return Refuse(r, err), nil
	}
	return nil, err
}

// StatusOf returns the Status with which the API server reports an error.
func StatusOf(err error) *metav1.Status {
	status := metav1.Status{Status: metav1.StatusFailure, Code: http.StatusInternalServerError, Reason: metav1.StatusReasonInternalError, Message: err.Error()}
	if e := apierrors.APIStatus(nil); errors.As(err, &e) {
		status = e.Status()
	}
	status.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}
	return &status
}

// Refuse answers with the Status of err.
func Refuse(r *http.Request, err error) *http.Response {
	if errors.Is(err, errNoPage) {
		res := respond(r, http.StatusNotFound, io.NopCloser(strings.NewReader(err.Error()+"\n")))
		res.Header.Set("Content-Type", "text/plain; charset=utf-8")
		return res
	}
	status := StatusOf(err)
	res := reply(r, int(status.Code), status)
	if status.Details != nil && status.Details.RetryAfterSeconds > 0 {
		res.Header.Set("Retry-After", strconv.Itoa(int(status.Details.RetryAfterSeconds)))
	}
	return res
}

func reply(r *http.Request, code int, body any) *http.Response {
	js := encode(body)
	res := respond(r, code, io.NopCloser(bytes.NewReader(js)))
	res.ContentLength = int64(len(js))
	return res
}

// respond returns a response with a JSON body of any length.
func respond(r *http.Request, code int, body io.ReadCloser) *http.Response {
	return &http.Response{
		StatusCode: code, Status: fmt.Sprintf("%d %s", code, http.StatusText(code)), Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: http.Header{"Content-Type": {"application/json"}}, Body: body, ContentLength: -1, Request: r,
	}
}
