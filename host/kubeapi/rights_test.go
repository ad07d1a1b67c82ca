// SPDX-License-Identifier: Apache-2.0

package kubeapi

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"k8s.io/client-go/rest"

	"github.com/wasmctl/wasmctl/abi"
)

// under returns the session under other rights.
func (s *session) under(rules ...abi.Capability) *session {
	return &session{API: s.WithPolicy(NewPolicy(rules)), t: s.t, ns: s.ns}
}

// admin returns the session with every right.
func (s *session) admin() *session {
	return &session{API: s.WithPolicy(Everything()), t: s.t, ns: s.ns}
}

// object is one of a kind in the session's namespace.
func (s *session) object(apiVersion, kind, name string, kv ...any) map[string]any {
	return with(map[string]any{"apiVersion": apiVersion, "kind": kind, "metadata": map[string]any{"name": name, "namespace": s.ns}}, kv...)
}

// stateOf is an object without its version and managers, "" if it is not there.
func (s *session) stateOf(ref map[string]any) string {
	s.t.Helper()
	status, o := s.admin().do(abi.OpAPIGet, ref)
	if status == 404 {
		return ""
	} else if status != abi.StatusOK {
		s.t.Fatal(status, o["message"])
	}
	meta := o["metadata"].(map[string]any)
	delete(meta, "resourceVersion")
	delete(meta, "managedFields")
	b, err := json.Marshal(o)
	if err != nil {
		s.t.Fatal(err)
	}
	return string(b)
}

func refTo(o map[string]any, kv ...any) map[string]any {
	ref := map[string]any{"apiVersion": o["apiVersion"], "kind": o["kind"], "name": at(o, "metadata", "name")}
	if ns := at(o, "metadata", "namespace"); ns != nil {
		ref["namespace"] = ns
	}
	return with(ref, kv...)
}

func (s *session) deployment(name string) map[string]any {
	labels := map[string]any{"app": name}
	return s.object("apps/v1", "Deployment", name, "spec", map[string]any{
		"replicas": 0, "selector": map[string]any{"matchLabels": labels},
		"template": map[string]any{
			"metadata": map[string]any{"labels": labels},
			"spec":     map[string]any{"containers": []any{map[string]any{"name": "app", "image": "a"}}},
		},
	})
}

// TestRights_TheStatusHasNoMetadata: the right to the status that every module
// has writes no metadata of any kind, by any write.
func TestRights_TheStatusHasNoMetadata(t *testing.T) {
	s := sharedSession(t)
	for _, o := range []map[string]any{s.deployment("web"), {"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": s.ns + "-2"}}} {
		made := s.admin().ok(abi.OpAPICreate, map[string]any{"object": o})
		kind := resolve(t, s.cfg.Resolver, o["kind"].(string))
		may := &session{API: s.WithPolicy(NewModulePolicy(kind, nil, nil)), t: t, ns: s.ns}
		before := s.stateOf(refTo(o))
		for _, bad := range []map[string]any{
			{"labels": map[string]any{"l": "1"}},
			{"annotations": map[string]any{"a": "1"}},
			{"ownerReferences": []any{map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "name": "none", "uid": "00000000-0000-4000-8000-000000000000"}}},
		} {
			status := refTo(o, "subresource", "status")
			for key, value := range bad {
				may.fails(abi.StatusDenied, "metadata."+key, abi.OpAPIPatch, with(status, "patchType", "merge", "patch", map[string]any{"metadata": bad}))
				may.fails(abi.StatusDenied, "metadata."+key, abi.OpAPIApply, with(status, "object", inMeta(o, key, value)))
				// The API server itself ignores some of these for some kinds.
				may.do(abi.OpAPIPatch, with(status, "patchType", "strategic", "patch", map[string]any{"metadata": bad}))
				may.do(abi.OpAPIPatch, with(status, "patchType", "json", "patch", []any{operation("add", "/metadata/"+key, value)}))
				may.do(abi.OpAPIUpdate, with(status, "object", inMeta(made, key, value)))
			}
		}
		if after := s.stateOf(refTo(o)); after != before {
			t.Errorf("before %s\nafter  %s", before, after)
		}
		may.ok(abi.OpAPIPatch, refTo(o, "subresource", "status", "patchType", "merge", "patch", map[string]any{
			"status": map[string]any{"conditions": []any{map[string]any{"type": "Odd", "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z", "reason": "R", "message": ""}}},
		}))
	}
}

// meddler is a connection on which something happens between the requests of one
// write.
type meddler struct {
	meddle atomic.Pointer[func(method string)]
}

func (m *meddler) config(config *rest.Config) *rest.Config {
	c := rest.CopyConfig(config)
	c.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(req *http.Request) (*http.Response, error) {
			if req.URL.Query().Get("dryRun") == "" && req.Method != http.MethodGet {
				if f := m.meddle.Swap(nil); f != nil {
					(*f)(req.Method)
				}
			}
			return next.RoundTrip(req)
		})
	})
	return c
}

// before has something happen before the next write is sent.
func (m *meddler) before(f func()) {
	g := func(string) { f() }
	m.meddle.Store(&g)
}

// TestRights_WhatWasJudgedAbsentStaysAbsent: a write that was allowed because
// its object is not there changes none that was created meanwhile.
func TestRights_WhatWasJudgedAbsentStaysAbsent(t *testing.T) {
	s := sharedSession(t)
	var m meddler
	other := newSession(t, m.config(s.cfg.Client.config), s.ns)
	may := other.limited("configmaps", "data.mine")
	n := 0
	for name, write := range map[string]struct {
		op  abi.Op
		req func(name string) map[string]any
	}{
		"json": {abi.OpAPIPatch, func(n string) map[string]any {
			return with(s.ref(n), "patchType", "json", "patch", []any{operation("add", "/data/theirs", "no")})
		}},
		"merge": {abi.OpAPIPatch, func(n string) map[string]any {
			return with(s.ref(n), "patchType", "merge", "patch", map[string]any{"data": map[string]any{"mine": "no"}})
		}},
		"strategic": {abi.OpAPIPatch, func(n string) map[string]any {
			return with(s.ref(n), "patchType", "strategic", "patch", map[string]any{"data": map[string]any{"$patch": "replace", "mine": "no"}})
		}},
		"update": {abi.OpAPIUpdate, func(n string) map[string]any { return map[string]any{"object": s.cm(n, map[string]any{"mine": "no"})} }},
		"apply": {abi.OpAPIApply, func(n string) map[string]any {
			return map[string]any{"object": s.cm(n, map[string]any{"mine": "no"}), "force": true}
		}},
	} {
		n++
		object := fmt.Sprint("o", n)
		create := func() { s.ok(abi.OpAPICreate, map[string]any{"object": s.cm(object, map[string]any{"theirs": "1"})}) }
		m.before(create)
		status, body := may.do(write.op, write.req(object))
		if f := m.meddle.Swap(nil); f != nil {
			create() // it was answered without a write
		}
		state := s.stateOf(s.ref(object))
		if !strings.Contains(state, `{"theirs":"1"}`) && !strings.Contains(state, `{"mine":"no","theirs":"1"}`) {
			t.Errorf("%s: %v %v: %s", name, status, body["message"], state)
		}
		if name != "apply" && status != 404 {
			t.Errorf("%s of an absent object: %v %v", name, status, body["message"])
		}
	}
}

// TestRights_ApplyTakesTheRightToWhatItReplaces: a value that the API server replaces as a whole,
// and fields that the manager owned and omits, are changed.
func TestRights_ApplyTakesTheRightToWhatItReplaces(t *testing.T) {
	s := sharedSession(t)
	service := func(selector map[string]any) map[string]any {
		return s.object("v1", "Service", "web", "spec", map[string]any{"selector": selector, "ports": []any{map[string]any{"port": 80, "protocol": "TCP"}}})
	}
	s.admin().ok(abi.OpAPIApply, map[string]any{"object": service(map[string]any{"app": "web", "tier": "front"}), "fieldManager": "they"})
	before := s.stateOf(refTo(service(nil)))
	may := s.limited("services", "spec.selector.app", "metadata.labels")
	only := s.object("v1", "Service", "web", "spec", map[string]any{"selector": map[string]any{"app": "web"}})
	may.fails(abi.StatusDenied, "spec.selector", abi.OpAPIApply, map[string]any{"object": only, "force": true})
	if after := s.stateOf(refTo(only)); after != before {
		t.Errorf("before %s\nafter  %s", before, after)
	}

	// The same manager with more rights: another controller of that name, or this one before.
	s.admin().ok(abi.OpAPIApply, map[string]any{"object": inMeta(s.cm("c", map[string]any{"mine": "1", "wide": "1"}), "annotations", map[string]any{"a": "b"})})
	before = s.stateOf(s.ref("c"))
	narrow := s.limited("configmaps", "data.mine")
	narrow.fails(abi.StatusDenied, "data.wide", abi.OpAPIApply, map[string]any{"object": s.cm("c", map[string]any{"mine": "2"}), "force": true})
	if after := s.stateOf(s.ref("c")); after != before {
		t.Errorf("before %s\nafter  %s", before, after)
	}
}

// TestRights_OwnershipIsWhatAWriteImplies: a limited write changes the owners of
// no field beyond its limits.
func TestRights_OwnershipIsWhatAWriteImplies(t *testing.T) {
	s := sharedSession(t)
	s.admin().ok(abi.OpAPIApply, map[string]any{"object": s.cm("c", map[string]any{"theirs": "1", "mine": "0"}), "fieldManager": "they"})
	may := s.limited("configmaps", "data.mine")
	owned := func() string {
		o := s.admin().ok(abi.OpAPIGet, s.ref("c"))
		for i := 0; at(o, "metadata", "managedFields", i) != nil; i++ {
			if e := at(o, "metadata", "managedFields", i).(map[string]any); e["manager"] == "they" && e["operation"] == "Apply" {
				return fmt.Sprint(e["fieldsV1"])
			}
		}
		return "nothing"
	}
	before := owned()
	entry := []any{map[string]any{
		"manager": "they", "operation": "Apply", "apiVersion": "v1", "fieldsType": "FieldsV1", "time": "2026-01-01T00:00:00Z",
		"fieldsV1": map[string]any{"f:data": map[string]any{"f:mine": map[string]any{}}},
	}}
	for _, path := range []string{"metadata/managedFields", "/metadata/managedFields", "/metadata/managedFields/0/fieldsV1", "x/metadata/managedFields", "/metadata/managed~2Fields", "/metadata//managedFields"} {
		for _, op := range []string{"replace", "add", "remove"} {
			patch := []any{operation(op, path, entry), operation("add", "/data/mine", "1")}
			status, body := may.do(abi.OpAPIPatch, with(s.ref("c"), "patchType", "json", "patch", patch))
			if status == abi.StatusOK {
				t.Errorf("%s of %q was carried out", op, path)
			}
			if after := owned(); after != before {
				t.Fatalf("%s of %q: %v %v: they own %s, not %s", op, path, status, body["message"], after, before)
			}
		}
	}
	status, _ := may.do(abi.OpAPIApply, map[string]any{"object": s.cm("c", map[string]any{"mine": "0"}), "fieldManager": "they"})
	if after := owned(); after != before || status != abi.StatusOK {
		t.Errorf("apply in their name: %v: they own %s", status, after)
	}
	may.ok(abi.OpAPIPatch, with(s.ref("c"), "patchType", "json", "patch", []any{operation("add", "/data/mine", "2")}))
	if after := owned(); strings.Contains(after, "f:mine") || !strings.Contains(after, "f:theirs") {
		t.Errorf("after a patch within the rights they own %s", after)
	}
}

// TestRights_FieldsAreThoseOfOneVersion: another version of the kind has other
// fields for the same thing.
func TestRights_FieldsAreThoseOfOneVersion(t *testing.T) {
	s := sharedSession(t)
	hpa := func(version string, spec map[string]any) map[string]any {
		return s.object("autoscaling/"+version, "HorizontalPodAutoscaler", "h", "spec", with(spec, "maxReplicas", 3,
			"scaleTargetRef", map[string]any{"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}))
	}
	s.admin().ok(abi.OpAPICreate, map[string]any{"object": hpa("v2", nil)})
	rule := abi.Capability{Group: "autoscaling", Resource: "horizontalpodautoscalers", Verbs: []string{"*"}, Fields: []string{"spec.targetCPUUtilizationPercentage", "spec.minReplicas", "metadata.annotations"}}
	may := s.under(rule)
	before := s.stateOf(refTo(hpa("v2", nil)))
	v1 := refTo(hpa("v1", nil))
	patch := map[string]any{"spec": map[string]any{"targetCPUUtilizationPercentage": 7}}
	may.fails(abi.StatusDenied, "autoscaling/v2", abi.OpAPIPatch, with(v1, "patchType", "merge", "patch", patch))
	may.fails(abi.StatusDenied, "autoscaling/v2", abi.OpAPIApply, map[string]any{"object": hpa("v1", map[string]any{"minReplicas": 2})})
	// The body of a patch may not speak of another version either.
	may.fails(abi.StatusDenied, "", abi.OpAPIPatch, refTo(hpa("v2", nil), "patchType", "merge", "patch", with(patch, "apiVersion", "autoscaling/v1")))
	if after := s.stateOf(refTo(hpa("v2", nil))); after != before {
		t.Errorf("before %s\nafter  %s", before, after)
	}
	may.ok(abi.OpAPIPatch, refTo(hpa("v2", nil), "patchType", "merge", "patch", map[string]any{"spec": map[string]any{"minReplicas": 2}}))
}

// TestRights_CreatingTakesCreate: neither update nor patch makes an object of a
// kind that the API server creates by them, also if it goes away meanwhile.
func TestRights_CreatingTakesCreate(t *testing.T) {
	s := sharedSession(t)
	var m meddler
	other := newSession(t, m.config(s.cfg.Client.config), s.ns)
	objects := []map[string]any{
		s.object("coordination.k8s.io/v1", "Lease", "x", "spec", map[string]any{"holderIdentity": "me"}),
		s.object("rbac.authorization.k8s.io/v1", "RoleBinding", "x", "roleRef", map[string]any{"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "view"}),
		s.object("v1", "Service", "x", "spec", map[string]any{"ports": []any{map[string]any{"port": 80, "protocol": "TCP"}}}),
		s.cm("x", map[string]any{"a": "b"}), s.sprocket("x"),
	}
	for _, o := range objects {
		kind, err := s.cfg.Resolver.Resolve(t.Context(), fmt.Sprint(o["apiVersion"], "/", o["kind"]))
		if err != nil {
			t.Fatal(err)
		}
		for _, rule := range []abi.Capability{
			{Group: kind.Group, Resource: kind.Resource, Verbs: []string{"get", "update", "patch"}},
			{Group: kind.Group, Resource: kind.Resource, Verbs: []string{"get", "update", "patch"}, Fields: []string{"spec", "data", "metadata", "roleRef", "subjects"}},
		} {
			may := other.under(rule)
			for _, op := range []abi.Op{abi.OpAPIUpdate, abi.OpAPIApply} {
				for _, meta := range []map[string]any{{}, {"resourceVersion": "7"}} {
					sent := inMeta(o, "name", "x")
					for k, v := range meta {
						sent = inMeta(sent, k, v)
					}
					status, body := may.do(op, map[string]any{"object": sent})
					if state := s.stateOf(refTo(o)); state != "" || status == abi.StatusOK {
						t.Fatalf("%s of an absent %s: %v %v: %s", op, o["kind"], status, body["message"], state)
					}
				}
				made := s.admin().ok(abi.OpAPICreate, map[string]any{"object": o})
				m.before(func() { s.admin().ok(abi.OpAPIDelete, refTo(o)) })
				sent := o
				if op == abi.OpAPIUpdate {
					sent = inMeta(o, "resourceVersion", at(made, "metadata", "resourceVersion"), "labels", map[string]any{"l": "1"})
				}
				status, body := may.do(op, map[string]any{"object": sent})
				m.meddle.Store(nil)
				if state := s.stateOf(refTo(o)); state != "" || status == abi.StatusOK {
					t.Fatalf("%s of %s that goes away: %v %v: %s", op, o["kind"], status, body["message"], state)
				}
			}
		}
	}
}

// TestRights_AnswersShowWhatMayBeRead: without the right to get, no answer, no error and no success
// of a patch reveals the object.
func TestRights_AnswersShowWhatMayBeRead(t *testing.T) {
	s := sharedSession(t)
	const hidden = "c2VjcmV0LXZhbHVl"
	secret := s.object("v1", "Secret", "k", "data", map[string]any{"hidden": hidden}, "immutable", true)
	s.admin().ok(abi.OpAPICreate, map[string]any{"object": secret})
	may := s.under(abi.Capability{Resource: "secrets", Verbs: []string{"create", "update", "patch", "delete"}})
	ref := refTo(secret)
	labels := func(v string) map[string]any {
		return map[string]any{"metadata": map[string]any{"labels": map[string]any{"l": v}}}
	}
	shown := func(what string, status abi.Status, body map[string]any) {
		t.Helper()
		text := fmt.Sprint(body)
		if strings.Contains(text, hidden) || strings.Contains(text, "secret-value") || strings.Contains(text, "hidden:") || strings.Contains(text, "managedFields") {
			t.Errorf("%s: %v shows %s", what, status, text)
		}
	}
	for i, write := range []struct {
		op   abi.Op
		req  map[string]any
		want abi.Status
	}{
		{abi.OpAPIPatch, with(ref, "patchType", "merge", "patch", labels("1")), abi.StatusOK},
		{abi.OpAPIPatch, with(ref, "patchType", "merge", "patch", labels("2"), "dryRun", true), abi.StatusOK},
		{abi.OpAPIPatch, with(ref, "patchType", "strategic", "patch", labels("3")), abi.StatusOK},
		{abi.OpAPIApply, map[string]any{"object": inMeta(s.object("v1", "Secret", "k"), "labels", map[string]any{"l": "3"})}, abi.StatusDenied}, // creating or not is seen by uid
		{abi.OpAPIPatch, with(ref, "patchType", "json", "patch", []any{test("/data/hidden", hidden)}), abi.StatusDenied},
		{abi.OpAPIPatch, with(ref, "patchType", "json", "patch", []any{map[string]any{"op": "copy", "from": "/data/hidden", "path": "/data/x"}}), abi.StatusDenied},
		{abi.OpAPIPatch, with(ref, "patchType", "json", "patch", []any{operation("replace", "/data/hidden", "eA==")}), abi.StatusDenied},
		{abi.OpAPIPatch, with(ref, "patchType", "merge", "patch", map[string]any{"data": map[string]any{"more": "eA=="}}), 422},
		{abi.OpAPIPatch, with(ref, "patchType", "merge", "patch", map[string]any{"type": hidden}), 422},
		{abi.OpAPIDelete, with(ref, "dryRun", true), abi.StatusOK},
	} {
		status, body := may.do(write.op, write.req)
		if write.op != abi.OpAPIApply && status != write.want {
			t.Errorf("%d %s: %v %v, want %v", i, write.op, status, body["message"], write.want)
		}
		if write.op == abi.OpAPIPatch && status == abi.StatusOK {
			if at(body, "metadata", "uid") == nil || at(body, "metadata", "name") != "k" || body["kind"] != "Secret" {
				t.Errorf("%d: answer %v does not identify the object", i, body)
			}
			if at(body, "metadata", "labels") != nil {
				t.Errorf("%d: answer %v", i, body)
			}
		}
		if write.want == 422 && (body["reason"] != "Invalid" || strings.Contains(fmt.Sprint(body["message"]), "Invalid value")) {
			t.Errorf("%d: %v", i, body)
		}
		shown(string(write.op), status, body)
	}
	reads := s.under(abi.Capability{Resource: "secrets", Verbs: []string{"get", "patch"}})
	reads.ok(abi.OpAPIPatch, with(ref, "patchType", "json", "patch", []any{test("/data/hidden", hidden)}))
}
