// SPDX-License-Identifier: Apache-2.0

package memapi

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// send makes one request and returns its code.
func send(t *testing.T, s *Server, method, path, contentType, body string) (code int, err error) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, "http://in-memory"+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", contentType)
	res, err := s.RoundTrip(req)
	if err != nil {
		return 0, err
	}
	_, _ = io.Copy(io.Discard, res.Body)
	_ = res.Body.Close()
	return res.StatusCode, nil
}

// TestServer_NoUpdateIsLost: of concurrent updates of one version, only one succeeds.
func TestServer_NoUpdateIsLost(t *testing.T) {
	s := New(Config{})
	if err := s.Put(map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "a", "namespace": "d"}}); err != nil {
		t.Fatal(err)
	}
	const rounds, writers = 40, 4
	for range rounds {
		version := (&unstructured.Unstructured{Object: s.Objects()[0]}).GetResourceVersion()
		var wg sync.WaitGroup
		var mu sync.Mutex
		won := 0
		for i := range writers {
			wg.Go(func() {
				body := fmt.Sprintf(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a","resourceVersion":%q},"data":{"by":"%s-%d"}}`, version, version, i)
				code, err := send(t, s, http.MethodPut, "/api/v1/namespaces/d/configmaps/a", "application/json", body)
				mu.Lock()
				defer mu.Unlock()
				if err != nil || code != http.StatusOK && code != http.StatusConflict {
					t.Errorf("%d, %v", code, err)
				}
				if code == http.StatusOK {
					won++
				}
			})
		}
		wg.Wait()
		if won != 1 {
			t.Fatalf("%d of %d writers won", won, writers)
		}
	}
	if n := len(s.Changes()); n != rounds || len(s.Changes()) != 0 {
		t.Errorf("%d changes", n)
	}
}

func TestServer_FaultsAreBeforeOrAfterTheWrite(t *testing.T) {
	broken := errors.New("the connection broke")
	for name, tc := range map[string]struct {
		fault   Fault
		code    int
		written bool
	}{
		"none":         {Fault{}, http.StatusCreated, true},
		"refused":      {Fault{Err: apierrors.NewTooManyRequestsError("later")}, http.StatusTooManyRequests, false},
		"broken":       {Fault{Err: broken}, 0, false},
		"answer lost":  {Fault{Err: broken, After: true}, 0, true},
		"wrong answer": {Fault{Err: apierrors.NewInternalError(broken), After: true}, http.StatusInternalServerError, true},
	} {
		t.Run(name, func(t *testing.T) {
			var seen []string
			s := New(Config{Intercept: func(r *Request) Fault { seen = append(seen, r.String()); return tc.fault }})
			code, err := send(t, s, http.MethodPost, "/api/v1/namespaces/d/configmaps", "application/json", `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"}}`)
			if code != tc.code || (code == 0) != (err != nil) || len(s.Objects()) == 1 != tc.written {
				t.Errorf("code %d, %v; %d objects", code, err, len(s.Objects()))
			}
			if len(seen) != 1 || seen[0] != "create v1/ConfigMap d/a" {
				t.Errorf("saw %q", seen)
			}
		})
	}
}

func TestServer_PutSaysWhatIsWrong(t *testing.T) {
	s := New(Config{Kinds: []Kind{GuessKind(schema.GroupVersionKind{Group: "x.dev", Version: "v1", Kind: "Policy"}, false)}})
	object := func(apiVersion, kind string, meta map[string]any) map[string]any {
		return map[string]any{"apiVersion": apiVersion, "kind": kind, "metadata": meta}
	}
	for _, bad := range []map[string]any{
		object("x.dev/v1", "Unknown", map[string]any{"name": "a"}),
		object("v1", "ConfigMap", map[string]any{"name": "a"}),
		object("x.dev/v1", "Policy", map[string]any{"name": "a", "namespace": "d"}),
		object("x.dev/v1", "Policy", map[string]any{}),
	} {
		if s.Put(bad) == nil {
			t.Errorf("%v was taken", bad)
		}
	}
	if err := s.Put(object("x.dev/v1", "Policy", map[string]any{"name": "a"})); err != nil {
		t.Error(err)
	}
	code, err := send(t, s, http.MethodGet, "/apis/x.dev/v1/policies/a", "", "")
	if err != nil || code != http.StatusOK {
		t.Errorf("%d, %v", code, err)
	}
}

func TestBuiltIns_HaveTheirPluralsAndScopes(t *testing.T) {
	want := map[string]string{
		"/v1, Kind=Endpoints": "endpoints true false", "/v1, Kind=Namespace": "namespaces false true", "apps/v1, Kind=Deployment": "deployments true true",
		"networking.k8s.io/v1, Kind=NetworkPolicy": "networkpolicies true false", "networking.k8s.io/v1, Kind=Ingress": "ingresses true true",
		"rbac.authorization.k8s.io/v1, Kind=ClusterRole": "clusterroles false false", "/v1, Kind=ConfigMap": "configmaps true false",
	}
	for _, k := range builtIns() {
		if w, ok := want[k.String()]; ok {
			if got := fmt.Sprint(k.Resource, k.Namespaced, k.Status); strings.ReplaceAll(w, " ", "") != strings.ReplaceAll(got, " ", "") {
				t.Errorf("%v: %s, want %s", k, got, w)
			}
			delete(want, k.String())
		}
	}
	if len(want) > 0 {
		t.Errorf("not there: %v", want)
	}
}
