// SPDX-License-Identifier: Apache-2.0

package restapi

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Server answers requests with a client that calls the host. The mapper maps
// resources to kinds.
type Server struct {
	Client client.Client
	Mapper meta.RESTMapper
}

// request is a parsed request.
type request struct {
	target
	gvk   schema.GroupVersionKind
	query url.Values
	body  []byte
	media string
}

// Serve answers r.
func (s Server) Serve(r *http.Request) (*http.Response, error) {
	obj, err := s.answer(r)
	code := http.StatusOK
	if err != nil {
		var status apierrors.APIStatus
		if !errors.As(err, &status) {
			return nil, err
		}
		st := status.Status()
		st.Kind, st.APIVersion = "Status", "v1"
		obj, code = &st, int(st.Code)
	}
	text, err := json.Marshal(obj)
	if err != nil {
		return nil, err
	}
	return &http.Response{
		StatusCode: code, Status: http.StatusText(code), Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Request: r,
		Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(bytes.NewReader(text)), ContentLength: int64(len(text)),
	}, nil
}

func (s Server) answer(r *http.Request) (any, error) {
	t, ok := parse(r.URL.Path)
	if !ok {
		if found := s.discover(r.URL.Path); found != nil {
			return found, nil
		}
		return nil, apierrors.NewGenericServerResponse(http.StatusNotFound, r.Method, schema.GroupResource{}, r.URL.Path,
			"a module knows the kinds of its scheme, and cannot ask the API server for more", 0, true)
	}
	req := &request{target: t, query: r.URL.Query(), media: r.Header.Get("Content-Type")}
	if w := req.query.Get("watch"); w == "true" || w == "1" {
		return nil, apierrors.NewMethodNotSupported(t.GroupResource(), "watch: name the kind by Owns or Watches of the controller's builder")
	}
	var err error
	if req.gvk, err = s.Mapper.KindFor(t.GroupVersionResource); err != nil {
		return nil, fmt.Errorf("client-go: resource[%s]: unknown in the manager's scheme: add its types to the scheme: %w", t.Resource, err)
	}
	if r.Body != nil {
		if req.body, err = io.ReadAll(r.Body); err != nil {
			return nil, err
		}
	}
	answer := s.object
	if t.name == "" && r.Method != http.MethodPost {
		answer = s.collection
	}
	obj, err := answer(r, req)
	if meta.IsNoMatchError(err) { // the error of the manager's client
		err = apierrors.NewGenericServerResponse(http.StatusNotFound, r.Method, t.GroupResource(), t.name, err.Error(), 0, true)
	}
	return obj, err
}
