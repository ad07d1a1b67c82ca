// SPDX-License-Identifier: Apache-2.0

package kubeapi

import (
	"fmt"
	"log/slog"
	"maps"
	"strings"
	"testing"

	"k8s.io/client-go/rest"

	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/host/kubeapi/kinds"
)

// everything lists the rights of these tests' sessions. The policy has tests of its own.
func everything() *Policy {
	var rules []abi.Capability
	for _, gr := range []string{
		"configmaps", "secrets", "pods", "namespaces", "serviceaccounts", "endpoints", "events", "services", "deployments.apps", "statefulsets.apps", "ingresses.networking.k8s.io", "clusterroles.rbac.authorization.k8s.io",
		"sprockets.kubeapi.wasmctl.dev", "poddisruptionbudgets.policy", "selfsubjectaccessreviews.authorization.k8s.io",
	} {
		resource, group, _ := strings.Cut(gr, ".")
		rules = append(rules, abi.Capability{Group: group, Resource: resource, Verbs: []string{"*"}},
			abi.Capability{
				Group: group, Resource: resource, Verbs: []string{"*"},
				Subresources: []string{"status", "scale", "token", "eviction", "proxy", "log", "nonsense"},
			})
	}
	return NewPolicy(rules)
}

// session calls operations as a guest would.
type session struct {
	*API
	t   *testing.T
	ns  string
	log *strings.Builder
}

func newSession(t *testing.T, config *rest.Config, ns string) *session {
	t.Helper()
	client := newClient(t, config)
	var log strings.Builder
	logger := slog.New(slog.NewTextHandler(&log, nil))
	api, err := New(Config{Client: client, Resolver: kinds.NewResolver(client, logger), Controller: "tester", Policy: everything(), Logger: logger})
	if err != nil {
		t.Fatal(err)
	}
	return &session{API: api, t: t, ns: ns, log: &log}
}

// do calls an operation and decodes its answer.
func (s *session) do(op abi.Op, req map[string]any) (abi.Status, map[string]any) {
	s.t.Helper()
	got := s.Call(s.t.Context(), op, msg(s.t, req))
	body, err := abi.DecodeObject(got.Body)
	if err != nil {
		s.t.Fatalf("%s: %v: body: %v", op, got.Status, err)
	}
	return got.Status, body
}

// ok is do for what must succeed.
func (s *session) ok(op abi.Op, req map[string]any) map[string]any {
	s.t.Helper()
	status, body := s.do(op, req)
	if status != abi.StatusOK {
		s.t.Fatalf("%s: %v: %v", op, status, body["message"])
	}
	return body
}

// fails is do for what must fail with a status and a text.
func (s *session) fails(want abi.Status, text string, op abi.Op, req map[string]any) map[string]any {
	s.t.Helper()
	status, body := s.do(op, req)
	if message, _ := body["message"].(string); status != want || !strings.Contains(message, text) {
		s.t.Fatalf("%s: %v: %v\nwant %v: ...%s...", op, status, body["message"], want, text)
	}
	if want > 0 && body["kind"] != "Status" {
		s.t.Fatalf("%s: body is no Status: %v", op, body)
	}
	return body
}

// with returns a copy of m with more keys.
func with(m map[string]any, kv ...any) map[string]any {
	c := map[string]any{}
	maps.Copy(c, m)
	for i := 0; i < len(kv); i += 2 {
		c[kv[i].(string)] = kv[i+1]
	}
	return c
}

// ref names a ConfigMap of the session's namespace.
func (s *session) ref(name string) map[string]any {
	return map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "namespace": s.ns, "name": name}
}

// cm is a ConfigMap as an object.
func (s *session) cm(name string, data map[string]any) map[string]any {
	return map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": name, "namespace": s.ns}, "data": data,
	}
}

// at walks into maps and lists: at(o, "metadata", "name").
func at(v any, path ...any) any {
	for _, p := range path {
		switch p := p.(type) {
		case string:
			m, _ := v.(map[string]any)
			v = m[p]
		case int:
			l, _ := v.([]any)
			if p >= len(l) {
				return nil
			}
			v = l[p]
		}
	}
	return v
}

func managers(object map[string]any) string {
	var names []string
	for i := 0; at(object, "metadata", "managedFields", i) != nil; i++ {
		names = append(names, fmt.Sprint(at(object, "metadata", "managedFields", i, "manager")))
	}
	return strings.Join(names, ",")
}
