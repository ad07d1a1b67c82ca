package enginetest

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"sync"
	"time"

	"github.com/wasmctl/wasmctl/internal/memapi"
)

// APIServer is an API server in memory with watches, which look again after each
// write. It implements http.RoundTripper.
type APIServer struct {
	*memapi.Server

	mu    sync.Mutex
	wrote chan struct{} // closed by the next write; guarded by mu
}

// NewAPIServer returns an APIServer without objects.
func NewAPIServer() *APIServer {
	return &APIServer{Server: memapi.New(memapi.Config{}), wrote: make(chan struct{})}
}

// RoundTrip implements http.RoundTripper.
func (s *APIServer) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.URL.Query().Get("watch") == "" {
		res, err := s.Server.RoundTrip(r)
		if r.Method != http.MethodGet {
			s.wake()
		}
		return res, err
	}
	body, stream := io.Pipe()
	go func() { _ = stream.CloseWithError(s.stream(r, json.NewEncoder(stream))) }()
	return &http.Response{
		StatusCode: http.StatusOK, Status: "200 OK", Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: http.Header{"Content-Type": {"application/json"}}, Body: body, Request: r,
	}, nil
}

// Put creates or replaces an object, as memapi.Server does.
func (s *APIServer) Put(object map[string]any) error {
	defer s.wake()
	return s.Server.Put(object)
}

// wake has watches look again.
func (s *APIServer) wake() {
	s.mu.Lock()
	defer s.mu.Unlock()
	close(s.wrote)
	s.wrote = make(chan struct{})
}

type watchLine struct {
	Type   string         `json:"type"`
	Object map[string]any `json:"object"`
}

// stream writes the events of one watch until its time is over.
func (s *APIServer) stream(r *http.Request, out *json.Encoder) error {
	q := r.URL.Query()
	seconds, err := strconv.Atoi(q.Get("timeoutSeconds"))
	if err != nil {
		seconds = 300
	}
	over := time.After(time.Duration(seconds) * time.Second)
	since, _ := strconv.Atoi(q.Get("resourceVersion")) // none: 0
	initial := q.Get("sendInitialEvents") == "true"
	seen := map[string]map[string]any{}
	for first := true; ; first = false {
		s.mu.Lock()
		wrote := s.wrote
		s.mu.Unlock()
		items, version, err := s.list(r)
		if err != nil {
			return err
		}
		for _, line := range changes(seen, items, first && !initial, since) {
			if err := out.Encode(line); err != nil {
				return err
			}
		}
		if first && initial {
			if err := out.Encode(bookmark(items, version)); err != nil {
				return err
			}
		}
		select {
		case <-wrote:
		case <-over:
			return io.EOF
		case <-r.Context().Done():
			return r.Context().Err()
		}
	}
}

// bookmark ends the objects that were there before.
func bookmark(items []map[string]any, version string) watchLine {
	kind := map[string]any{"apiVersion": "v1", "kind": "ConfigMap"}
	if len(items) > 0 {
		kind = items[0]
	}
	return watchLine{"BOOKMARK", map[string]any{"apiVersion": kind["apiVersion"], "kind": kind["kind"], "metadata": map[string]any{
		"resourceVersion": version, "annotations": map[string]any{"k8s.io/initial-events-end": "true"},
	}}}
}

// changes says what is new, and notes it. What is not newer than since, at first,
// is known already.
func changes(seen map[string]map[string]any, items []map[string]any, known bool, since int) (lines []watchLine) {
	there := map[string]bool{}
	for _, o := range items {
		meta := o["metadata"].(map[string]any)
		name := fmt.Sprint(meta["namespace"], "/", meta["name"])
		there[name] = true
		version, _ := strconv.Atoi(fmt.Sprint(meta["resourceVersion"]))
		old, had := seen[name]
		seen[name] = o
		switch {
		case known && version <= since:
		case !had:
			lines = append(lines, watchLine{"ADDED", o})
		case old["metadata"].(map[string]any)["resourceVersion"] != meta["resourceVersion"]:
			lines = append(lines, watchLine{"MODIFIED", o})
		}
	}
	for name, o := range seen {
		if !there[name] {
			delete(seen, name)
			lines = append(lines, watchLine{"DELETED", o})
		}
	}
	return lines
}

func (s *APIServer) list(r *http.Request) (items []map[string]any, version string, err error) {
	req := r.Clone(r.Context())
	q := url.Values{"labelSelector": {r.URL.Query().Get("labelSelector")}}
	req.URL.RawQuery = q.Encode()
	res, err := s.Server.RoundTrip(req)
	if err != nil {
		return nil, "", err
	}
	defer func() { _ = res.Body.Close() }()
	var list struct {
		APIVersion, Kind string
		Metadata         struct{ ResourceVersion string }
		Items            []map[string]any
	}
	if err := json.NewDecoder(res.Body).Decode(&list); err != nil {
		return nil, "", err
	}
	for _, o := range list.Items { // a list's items need not say what they are
		if o["kind"] == nil {
			o["apiVersion"], o["kind"] = list.APIVersion, list.Kind[:len(list.Kind)-len("List")]
		}
	}
	return list.Items, list.Metadata.ResourceVersion, nil
}
