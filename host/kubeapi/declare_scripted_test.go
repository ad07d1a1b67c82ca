// SPDX-License-Identifier: Apache-2.0

package kubeapi

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/host/kubeapi/kinds"
)

// fixedChildren is a cache of one child.
type fixedChildren struct {
	key                  abi.Key
	uid, resourceVersion string
}

// Children implements Children.
func (f *fixedChildren) Children(_ abi.Key, _ string, yield func(schema.GroupVersionResource, abi.Key, string, string) bool) {
	if f.uid != "" {
		yield(configMaps, f.key, f.uid, f.resourceVersion)
	}
}

// script answers the requests in order, and records them.
type script struct {
	mu      sync.Mutex
	answers []http.HandlerFunc // guarded by mu
	lines   []string           // guarded by mu
}

// ServeHTTP implements http.Handler.
func (s *script) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	s.mu.Lock()
	s.lines = append(s.lines, r.Method+" "+string(body))
	next := answer("application/json", 500, `{"kind":"Status","message":"the script has ended"}`)
	if len(s.answers) > 0 {
		next, s.answers = s.answers[0], s.answers[1:]
	}
	s.mu.Unlock()
	next(w, r)
}

func made(resourceVersion string) http.HandlerFunc {
	return answer("application/json", 200, `{"kind":"ConfigMap","metadata":{"name":"x","namespace":"a","uid":"u1","resourceVersion":"`+resourceVersion+`"}}`)
}

func status(code int, reason, more string) http.HandlerFunc {
	return answer("application/json", code, fmt.Sprintf(`{"kind":"Status","apiVersion":"v1","status":"Failure","code":%d,"reason":%q,"message":"the message"%s}`, code, reason, more))
}

// cut carries the request out and loses the answer.
func cut(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }

// scriptedOwner returns an API in front of a script and an owner.
func scriptedOwner(t *testing.T, answers ...http.HandlerFunc) (*API, Owner, *script, *fixedChildren) {
	t.Helper()
	s, cached := &script{answers: answers}, &fixedChildren{key: abi.Key{Namespace: "a", Name: "x"}}
	api := scripted(t, s.ServeHTTP)
	api.cfg.Children = cached
	owner := Owner{
		Kind:   kinds.Kind{Group: "g.dev", Version: "v1", Kind: "Owner", Resource: "owners", Namespaced: true},
		Object: msg(t, map[string]any{"metadata": map[string]any{"name": "o", "namespace": "a", "uid": "owner-uid", "resourceVersion": "1"}}),
	}
	return api, owner, s, cached
}

// TestDeclare_LostAnswers: it is unknown whether a request without an answer was carried out, so
// the next run sends it again.
func TestDeclare_LostAnswers(t *testing.T) {
	api, owner, s, cached := scriptedOwner(t, made("5"), cut, made("6"))
	one := &abi.Declared{Apply: [][]byte{msg(t, configMap("x", "1"))}}
	two := &abi.Declared{Apply: [][]byte{msg(t, configMap("x", "2"))}}
	if err := api.Declare(t.Context(), owner, one); err != nil {
		t.Fatal(err)
	}
	cached.uid, cached.resourceVersion = "u1", "5"
	if err := api.Declare(t.Context(), owner, one); err != nil || len(s.lines) != 1 {
		t.Fatalf("%v after %d requests", err, len(s.lines))
	}
	failsAs(t, api.Declare(t.Context(), owner, two), abi.ErrorTransient, "Unavailable", "child[0 ConfigMap a/x]: apply")
	// The cache still has 5, and the module changes its mind.
	if err := api.Declare(t.Context(), owner, one); err != nil || len(s.lines) != 3 {
		t.Errorf("after a lost answer: %v after %d requests", err, len(s.lines))
	}
	if s.lines[0] != s.lines[2] || s.lines[0] == s.lines[1] {
		t.Errorf("sent:\n%s", strings.Join(s.lines, "\n"))
	}
}

// TestDeclare_WhatIsSent, byte for byte.
func TestDeclare_WhatIsSent(t *testing.T) {
	api, owner, s, cached := scriptedOwner(t, made("5"), status(200, "", ""))
	cached.key.Name, cached.uid, cached.resourceVersion = "old", "u0", "3"
	if err := api.Declare(t.Context(), owner, &abi.Declared{Apply: [][]byte{msg(t, configMap("x", "1"))}, Prune: true}); err != nil {
		t.Fatal(err)
	}
	want := []string{
		`PATCH {"apiVersion":"v1","data":{"k":"1"},"kind":"ConfigMap","metadata":{"name":"x","namespace":"a","ownerReferences":[` +
			`{"apiVersion":"g.dev/v1","blockOwnerDeletion":true,"controller":true,"kind":"Owner","name":"o","uid":"owner-uid"}]}}`,
		`DELETE {"apiVersion":"v1","kind":"DeleteOptions","preconditions":{"resourceVersion":"3","uid":"u0"},"propagationPolicy":"Background"}`,
	}
	if diff := cmp.Diff(want, s.lines); diff != "" {
		t.Error(diff)
	}
}

// TestDeclare_ClassesOfRefusals of the API server.
func TestDeclare_ClassesOfRefusals(t *testing.T) {
	const html = "text/html"
	for name, tt := range map[string]struct {
		answer http.HandlerFunc
		class  abi.ErrorClass
		reason string
	}{
		"a conflict":          {status(409, "Conflict", ""), abi.ErrorConflict, "Conflict"},
		"a field conflict":    {status(409, "Conflict", `,"details":{"causes":[{"reason":"FieldManagerConflict","message":"odd","field":".a"}]}`), abi.ErrorConflict, ReasonFieldConflict},
		"invalid":             {status(422, "Invalid", ""), abi.ErrorTransient, "Invalid"},
		"bad":                 {status(400, "BadRequest", ""), abi.ErrorTransient, "BadRequest"},
		"too large":           {status(413, "RequestEntityTooLarge", ""), abi.ErrorPermanent, "RequestEntityTooLarge"},
		"no such method":      {status(405, "MethodNotAllowed", ""), abi.ErrorPermanent, "MethodNotAllowed"},
		"forbidden":           {status(403, "Forbidden", ""), abi.ErrorTransient, "Forbidden"},
		"unauthorized":        {status(401, "Unauthorized", ""), abi.ErrorTransient, "Unauthorized"},
		"no namespace":        {status(404, "NotFound", ""), abi.ErrorTransient, "NotFound"},
		"a fault":             {status(500, "InternalError", ""), abi.ErrorTransient, "InternalError"},
		"a proxy's":           {answer(html, 502, "<html>"), abi.ErrorTransient, "InternalError"},
		"no JSON":             {answer(html, 200, "<html>"), abi.ErrorTransient, "BadRequest"},
		"an answer cut short": {cut, abi.ErrorTransient, "Unavailable"},
	} {
		t.Run(name, func(t *testing.T) {
			api, owner, s, _ := scriptedOwner(t, tt.answer)
			e := failsAs(t, api.Declare(t.Context(), owner, &abi.Declared{Apply: [][]byte{msg(t, configMap("x", "1"))}}), tt.class, tt.reason, "child[0 ConfigMap a/x]: apply: ")
			if len(s.lines) != 1 {
				t.Errorf("sent %d requests", len(s.lines))
			}
			if e.Reason == ReasonFieldConflict && e.Conflicts[0].Manager != "odd" {
				t.Errorf("%+v", e.Conflicts)
			}
		})
	}
}

// TestPrune_GivesUpOnWhatKeepsChanging, as a conflict.
func TestPrune_GivesUpOnWhatKeepsChanging(t *testing.T) {
	controlled := answer("application/json", 200, `{"kind":"ConfigMap","metadata":{"uid":"u0","resourceVersion":"4","ownerReferences":[{"uid":"owner-uid","controller":true}]}}`)
	conflict := status(409, "Conflict", "")
	api, owner, s, cached := scriptedOwner(t, conflict, controlled, conflict, controlled, conflict, controlled)
	cached.uid, cached.resourceVersion = "u0", "3"
	failsAs(t, api.Declare(t.Context(), owner, &abi.Declared{Prune: true}), abi.ErrorConflict, "Conflict", "object[configmaps a/x]: prune")
	if n := len(s.lines); n != 2*pruneTries || !strings.Contains(s.lines[2], `"resourceVersion":"4"`) {
		t.Errorf("%d requests: %v", n, s.lines)
	}
	api, owner, s, cached = scriptedOwner(t, conflict, status(403, "Forbidden", ""))
	cached.uid, cached.resourceVersion = "u0", "3"
	failsAs(t, api.Declare(t.Context(), owner, &abi.Declared{Prune: true}), abi.ErrorConflict, "Conflict", "prune")
	if len(s.lines) != 2 {
		t.Errorf("where it may not be read: %v", s.lines)
	}
}

// TestInspect_ReturnsTheAnswer as it came, and asks no policy.
func TestInspect_ReturnsTheAnswer(t *testing.T) {
	const js = `{"kind":"ConfigMap", "metadata":{"managedFields":[]}}`
	api, _, s, _ := scriptedOwner(t, answer("application/json", 200, js), status(404, "NotFound", ""))
	api.cfg.Policy = NewPolicy(nil)
	got, err := api.Inspect(t.Context(), configMaps, abi.Key{Namespace: "a", Name: "x"})
	if err != nil || string(got) != js {
		t.Errorf("%s, %v", got, err)
	}
	_, err = api.Inspect(t.Context(), configMaps, abi.Key{Namespace: "a", Name: "x"})
	failsAs(t, err, abi.ErrorTransient, "NotFound", "object[configmaps a/x]: inspect: the message")
	if len(s.lines) != 2 {
		t.Errorf("sent %v", s.lines)
	}
}
