// SPDX-License-Identifier: Apache-2.0

package kubeapi

import (
	"encoding/json"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/client-go/rest"

	"github.com/wasmctl/wasmctl/abi"
)

var allOps = []abi.Op{abi.OpAPIGet, abi.OpAPIList, abi.OpAPICreate, abi.OpAPIUpdate, abi.OpAPIPatch, abi.OpAPIApply, abi.OpAPIDelete}

// msg encodes a request. Values may be of the types that abi.AppendValue takes.
func msg(t testing.TB, v map[string]any) []byte {
	t.Helper()
	b, err := abi.AppendValue(nil, v)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// offlineAPI returns an API that knows the kinds of fewKinds and has no API
// server: what gets as far as sending is StatusUnavailable.
func offlineAPI(t testing.TB, policy *Policy) *API {
	t.Helper()
	client := newClient(t, &rest.Config{Host: "http://127.0.0.1:1"})
	api, err := New(Config{Client: client, Resolver: newResolver(fewKinds{}), Controller: "test", Policy: policy, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	return api
}

func statusBody(t testing.TB, r abi.Response) map[string]any {
	t.Helper()
	body, err := abi.DecodeObject(r.Body)
	if err != nil {
		t.Fatalf("body of %v: %v", r.Status, err)
	}
	return body
}

func TestCall_BadRequestSaysWhatToChange(t *testing.T) {
	obj := func(kv ...any) map[string]any {
		o := map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "x", "namespace": "a"}}
		for i := 0; i < len(kv); i += 2 {
			o[kv[i].(string)] = kv[i+1]
		}
		return map[string]any{"object": o}
	}
	with := func(m map[string]any, kv ...any) map[string]any {
		for i := 0; i < len(kv); i += 2 {
			m[kv[i].(string)] = kv[i+1]
		}
		return m
	}
	get := func(kv ...any) map[string]any {
		return with(map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "namespace": "a", "name": "x"}, kv...)
	}
	tests := []struct {
		name string
		op   abi.Op
		req  map[string]any
		want string
	}{
		{"no kind", abi.OpAPIGet, get("kind", nil), "kind is needed by api_get"},
		{"no version", abi.OpAPIGet, get("apiVersion", nil), "apiVersion is needed by api_get"},
		{"nonsense version", abi.OpAPIGet, get("apiVersion", "a/b/c"), `apiVersion: "a/b/c" is not a version`},
		{"no namespace", abi.OpAPIGet, get("namespace", nil), "namespace: is needed by api_get: ConfigMap is namespaced, and there is no default namespace"},
		{"namespace of a cluster-scoped kind", abi.OpAPIGet, get("kind", "Node"), "namespace: Node is cluster-scoped: omit the namespace"},
		{"list of a cluster-scoped kind in a namespace", abi.OpAPIList, with(get("kind", "Node"), "name", nil), "Node is cluster-scoped"},
		{"list with a name", abi.OpAPIList, get(), "name is not a key of api_list"},
		{"a name that is a path", abi.OpAPIGet, get("name", "x/status"), `name: "x/status" may not contain`},
		{"a name that goes up", abi.OpAPIGet, get("name", ".."), `name: ".." may not be '..'`},
		{"a namespace that is a path", abi.OpAPIGet, get("namespace", "a/pods/x"), `namespace: "a/pods/x" may not contain`},
		{"a subresource that is a path", abi.OpAPIGet, get("subresource", "proxy/metrics"), `subresource: "proxy/metrics" may not contain`},
		{"wrong type", abi.OpAPIGet, get("name", 5), "request of api_get"},
		{"apply without a name", abi.OpAPIApply, obj("metadata", map[string]any{"namespace": "a"}), "name is needed by api_apply"},
		{"names disagree", abi.OpAPIApply, with(obj(), "name", "y"), `name: the request has "y", its object has "x"`},
		{"namespaces disagree", abi.OpAPIUpdate, with(obj(), "namespace", "b"), `namespace: the request has "b", its object has "a"`},
		{"kinds disagree", abi.OpAPICreate, with(obj(), "kind", "Pod"), `kind: the request has "Pod", its object has "ConfigMap"`},
		{"versions disagree", abi.OpAPICreate, with(obj(), "apiVersion", "v2"), `apiVersion: the request has "v2", its object has "v1"`},
		{"name is a number", abi.OpAPICreate, obj("metadata", map[string]any{"name": 1}), "object.metadata.name: must be a string"},
		{"metadata is a list", abi.OpAPICreate, obj("metadata", []any{}), "object.metadata: must be a map"},
		{"object is a list", abi.OpAPICreate, map[string]any{"object": []any{}}, "object: must be a map"},
		{"namespace of a cluster-scoped object", abi.OpAPICreate, obj("kind", "Node"), "Node is cluster-scoped"},
		{"create of a subresource without a name", abi.OpAPICreate, with(obj("metadata", map[string]any{"namespace": "a"}), "subresource", "status"), "name is needed by api_create"},
		{"json patch that is a map", abi.OpAPIPatch, get("patchType", "json", "patch", map[string]any{}), "patch: must be an array of operations for patchType json"},
		{"merge patch that is a list", abi.OpAPIPatch, get("patchType", "merge", "patch", []any{}), "patch: must be a map for patchType merge"},
		{"unknown patch type", abi.OpAPIPatch, get("patchType", "apply", "patch", []any{}), `patchType: "apply" is neither json, merge nor strategic`},
		{
			"preconditions disagree with the object", abi.OpAPIUpdate,
			with(obj("metadata", map[string]any{"name": "x", "namespace": "a", "resourceVersion": "1"}), "preconditions", map[string]any{"resourceVersion": "2"}),
			`preconditions.resourceVersion: "2" disagrees with "1" in the object's metadata`,
		},
		{
			"preconditions disagree with the patch", abi.OpAPIPatch,
			get("patchType", "merge", "patch", map[string]any{"metadata": map[string]any{"uid": "u"}}, "preconditions", map[string]any{"uid": "v"}),
			`preconditions.uid: "v" disagrees with "u" in the patch's metadata`,
		},
		{
			"a scale of another kind's subresource", abi.OpAPIUpdate,
			map[string]any{"apiVersion": "apps/v1", "kind": "Deployment", "subresource": "scale", "object": map[string]any{
				"apiVersion": "v1", "kind": "Pod", "metadata": map[string]any{"name": "x", "namespace": "a"},
			}},
			`apiVersion: the request has "autoscaling/v1", its object has "v1"`,
		},
	}
	api := offlineAPI(t, everything())
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := api.Call(t.Context(), tt.op, msg(t, tt.req))
			body := statusBody(t, got)
			if got.Status != abi.StatusBadRequest || !strings.Contains(body["message"].(string), tt.want) {
				t.Errorf("%v: %v\nwant BAD_REQUEST: ...%s...", got.Status, body["message"], tt.want)
			}
			if body["code"] != int64(abi.StatusBadRequest) || body["reason"] != "BadRequest" {
				t.Errorf("body: %v", body)
			}
		})
	}
}

func TestCall_RefusesBadMessages(t *testing.T) {
	files, err := filepath.Glob("../../abi/testdata/bad-*.msgpack")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	api := offlineAPI(t, nil)
	for _, file := range files {
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, op := range allOps {
			if got := api.Call(t.Context(), op, b); got.Status != abi.StatusBadRequest {
				t.Errorf("%s as %s: %v", file, op, got.Status)
			}
		}
	}
	if got := api.Call(t.Context(), abi.OpAPIGet, make([]byte, abi.MaxBytes+1)); got.Status != abi.StatusTooLarge {
		t.Errorf("a request over the limit: %v", got.Status)
	}
	if got := api.Call(t.Context(), abi.OpCacheGet, nil); got.Status != abi.StatusUnsupported {
		t.Errorf("cache_get: %v", got.Status)
	}
}

// TestCall_GoldenRequestsPassTheCheck: the requests of the SDKs are understood: each golden request
// reaches the policy.
func TestCall_GoldenRequestsPassTheCheck(t *testing.T) {
	files, err := filepath.Glob("../../abi/testdata/api-*.msgpack")
	if err != nil || len(files) < 5 {
		t.Fatal(files, err)
	}
	api := offlineAPI(t, nil)
	for _, file := range files {
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		op := abi.Op(strings.ReplaceAll(strings.TrimSuffix(filepath.Base(file), ".msgpack"), "-", "_"))
		got := api.Call(t.Context(), op, b)
		if body := statusBody(t, got); got.Status != abi.StatusDenied {
			t.Errorf("%s: %v: %v", file, got.Status, body)
		}
	}
	if api.UnknownKeys() != 0 {
		t.Errorf("%d unknown keys", api.UnknownKeys())
	}
}

func TestCall_DeniedNamesTheRule(t *testing.T) {
	api := offlineAPI(t, nil)
	tests := []struct {
		op   abi.Op
		req  map[string]any
		rule string
		want string
	}{
		{
			abi.OpAPIDelete,
			map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "namespace": "default", "name": "x"},
			`{"group":"","resource":"configmaps","verbs":["delete"],"namespaces":["default"]}`,
			"the module may not delete configmaps in namespace default; to allow it, add this to the capabilities of its manifest: ",
		},
		{
			abi.OpAPIList,
			map[string]any{"apiVersion": "apps/v1", "kind": "Deployment"},
			`{"group":"apps","resource":"deployments","verbs":["list"]}`, "the module may not list deployments.apps in all namespaces; ",
		},
		{
			abi.OpAPIApply,
			map[string]any{"object": map[string]any{
				"apiVersion": "apps/v1", "kind": "Deployment", "metadata": map[string]any{"name": "x", "namespace": "a"},
			}, "subresource": "status"},
			`{"group":"apps","resource":"deployments","subresources":["status"],"verbs":["patch"],"namespaces":["a"]}`,
			"the module may not patch deployments.apps/status in namespace a; ",
		},
		{
			abi.OpAPIGet,
			map[string]any{"apiVersion": "v1", "kind": "Node", "name": "x"},
			`{"group":"","resource":"nodes","verbs":["get"]}`, "the module may not get nodes; ",
		},
	}
	for _, tt := range tests {
		got := api.Call(t.Context(), tt.op, msg(t, tt.req))
		if got.Status != abi.StatusDenied {
			t.Fatalf("%s: %v", tt.op, got.Status)
		}
		body := statusBody(t, got)
		if m := body["message"].(string); !strings.HasPrefix(m, tt.want) || !strings.HasSuffix(m, tt.rule) {
			t.Errorf("message: %s\nwant %s...%s", m, tt.want, tt.rule)
		}
		var rule abi.Capability
		if err := json.Unmarshal([]byte(tt.rule), &rule); err != nil {
			t.Fatal(err)
		}
		var want any
		wantJSON, _ := json.Marshal(rule)
		gotJSON, _ := json.Marshal(body["rule"])
		var gotRule any
		_ = json.Unmarshal(wantJSON, &want)
		_ = json.Unmarshal(gotJSON, &gotRule)
		if diff := cmp.Diff(want, gotRule); diff != "" {
			t.Errorf("rule (-want +got):\n%s", diff)
		}
		// What is pasted must be enough.
		again := offlineAPI(t, NewPolicy([]abi.Capability{rule})).Call(t.Context(), tt.op, msg(t, tt.req))
		if again.Status != abi.StatusUnavailable {
			t.Errorf("with the rule: %v", again.Status)
		}
	}
}

func TestAttributes_ListOfOneNameIsOfThatName(t *testing.T) {
	rule := abi.Capability{Resource: "configmaps", Verbs: []string{"list"}, Names: []string{"x"}}
	api := offlineAPI(t, NewPolicy([]abi.Capability{rule}))
	for selector, want := range map[string]abi.Status{
		"": abi.StatusDenied, "metadata.name=x": abi.StatusUnavailable, "metadata.name=y": abi.StatusDenied,
		"metadata.name!=y": abi.StatusDenied, "nonsense": abi.StatusDenied, "metadata.namespace=x": abi.StatusDenied,
	} {
		got := api.Call(t.Context(), abi.OpAPIList, msg(t, map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "namespace": "a", "fieldSelector": selector}))
		if got.Status != want {
			t.Errorf("selector %q: %v, want %v", selector, got.Status, want)
		}
	}
}

func TestCall_UnknownKindIsNotFound(t *testing.T) {
	got := offlineAPI(t, nil).Call(t.Context(), abi.OpAPIGet, msg(t, map[string]any{"apiVersion": "apps/v1", "kind": "Deploymnet", "namespace": "a", "name": "x"}))
	body := statusBody(t, got)
	if got.Status != 404 || body["kind"] != "Status" || body["reason"] != "NotFound" || body["code"] != int64(404) ||
		!strings.Contains(body["message"].(string), "did you mean apps/v1/Deployment?") {
		t.Errorf("%v: %v", got.Status, body)
	}
}

func TestCall_UnknownKeysAreCountedAndLoggedOnce(t *testing.T) {
	api := offlineAPI(t, nil)
	var log strings.Builder
	api.cfg.Logger = slog.New(slog.NewTextHandler(&log, nil))
	req := msg(t, map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "namespace": "a", "name": "x", "colour": "red"})
	for range 3 {
		if got := api.Call(t.Context(), abi.OpAPIGet, req); got.Status != abi.StatusDenied {
			t.Fatal(got.Status)
		}
	}
	if api.UnknownKeys() != 3 || strings.Count(log.String(), "key=colour") != 1 {
		t.Errorf("%d unknown keys, log:\n%s", api.UnknownKeys(), log.String())
	}
}

func TestNew_RefusesNamesTooLongForAFieldManager(t *testing.T) {
	api := offlineAPI(t, nil)
	c := Config{Client: api.cfg.Client, Resolver: api.cfg.Resolver, Controller: strings.Repeat("x", 120)}
	if _, err := New(c); err != nil {
		t.Errorf("120 bytes: %v", err)
	}
	c.Controller += "x"
	if _, err := New(c); err == nil || !strings.Contains(err.Error(), "the limit is 120") {
		t.Errorf("121 bytes: %v", err)
	}
	if _, err := New(Config{}); err == nil {
		t.Error("an empty config was taken")
	}
}

// FuzzCall: no bytes of a guest cause a panic in the checks, and a policy without rules permits
// nothing.
func FuzzCall(f *testing.F) {
	files, err := filepath.Glob("../../abi/testdata/*.msgpack")
	if err != nil || len(files) == 0 {
		f.Fatal(files, err)
	}
	for _, file := range files {
		b, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		for op := range allOps {
			f.Add(byte(op), b)
		}
	}
	for op := range allOps {
		f.Add(byte(op), msg(f, fullRequest()))
	}
	api := offlineAPI(f, nil)
	f.Fuzz(func(t *testing.T, op byte, b []byte) {
		got := api.Call(t.Context(), allOps[int(op)%len(allOps)], b)
		switch got.Status {
		case abi.StatusDenied, abi.StatusBadRequest, abi.StatusTooLarge, 404:
		default:
			t.Errorf("status %v: %x", got.Status, got.Body)
		}
		if err := abi.Check(got.Body); err != nil {
			t.Errorf("body: %v", err)
		}
	})
}
