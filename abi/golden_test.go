// SPDX-License-Identifier: Apache-2.0

package abi

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "write the golden messages of testdata again")

// golden is one message of testdata.
type golden struct {
	name string
	msg  []byte
	// why is the reason for rejecting a bad-* message.
	why string
}

func mustValue(v any) []byte {
	b, err := AppendValue(nil, v)
	if err != nil {
		panic(err)
	}
	return b
}

var testObject = map[string]any{
	"apiVersion": "examples.wasmctl.dev/v1", "kind": "ConfigMapGenerator",
	"metadata": map[string]any{
		"name": "hello", "namespace": "default", "generation": int64(3), "resourceVersion": "4711",
		"uid": "5c2f1f3e-8f0c-4b0e-9a43-0f1f6f2d7c11", "labels": map[string]any{"app": "demo", "größe": "klein"},
	},
	"spec": map[string]any{
		"content": "hello, world", "list": []any{int64(1), int64(-1), int64(1 << 40), 1.5, true, nil}, "empty": map[string]any{},
	},
}

var testTime = time.UnixMilli(1767225600123)

func goldenMessages() []golden {
	obj := mustValue(testObject)
	key := Key{Namespace: "default", Name: "hello"}
	ownError := ResultError{Class: ErrorConflict, Message: "configmap is not ours", Reason: "NotOwned", After: 5 * time.Second}
	req := func(r Request) []byte { return AppendRequest(nil, &r) }
	fail := func(f Failure) []byte { return AppendFailure(nil, &f) }
	res := func(r Result) []byte { return AppendResult(nil, &r) }
	body := func(s StatusBody) []byte { return Refuse(&s).Body }
	child := mustValue(map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "hello-content"}, "data": map[string]any{"content": "hello, world"}})
	status := mustValue(map[string]any{"observedGeneration": int64(3), "ready": true})
	list := []golden{
		{name: "request-minimal", msg: req(Request{ID: "r1", Controller: "c", Reason: Reason{Type: ReasonListed}, Attempt: 1, Key: Key{Name: "cluster-scoped"}, ConfigGen: 1})},
		{name: "request-full", msg: req(Request{
			ID: "8f3a-42", Controller: "configmapgenerator", Attempt: 3, Key: key, Object: obj, Stale: true, ConfigGen: 2, Deadline: testTime, DryRun: true,
			Reason: Reason{Type: ReasonRelated, Resource: "configmaps", Ref: Key{Namespace: "default", Name: "hello-content"}}, Caps: []string{"api_get", "api_apply", "config_get"},
		})},
		{name: "request-merged", msg: req(Request{
			ID: "8f3a-44", Controller: "configmapgenerator", Attempt: 1, Key: key, Object: obj, ConfigGen: 1, Deadline: testTime, Reason: Reason{Type: ReasonResync},
			More:    []Reason{{Type: ReasonRelated, Resource: "deployments.apps", Ref: Key{Namespace: "default", Name: "web"}}, {Type: ReasonConfigChanged}},
			Dropped: 3, Caps: []string{"api_get", "cache_get", "declare", "finalize"},
		})},
		{name: "failure-error", msg: fail(Failure{ID: "8f3a-42", Key: key, Object: obj, Error: ownError, Kind: FailureError, Attempt: 2, FirstFailed: testTime})},
		{name: "failure-trap", msg: fail(Failure{ID: "8f3a-43", Key: key, Error: ResultError{Class: ErrorTransient, Message: "unreachable"}, Kind: FailureTrap, Attempt: 1, FirstFailed: testTime})},
		{name: "result-await", msg: res(Result{})},
		{name: "result-requeue", msg: res(Result{Action: Action{Requeue: true, After: 300 * time.Second}})},
		{name: "result-error", msg: res(Result{Error: &ownError})},
		{name: "result-declared", msg: res(Result{Declared: &Declared{Apply: [][]byte{child, mustValue(testObject)}, Prune: true, Status: status}})},
		{name: "result-declared-requeue", msg: res(Result{Action: Action{Requeue: true, After: time.Minute}, Declared: &Declared{Apply: [][]byte{child}, Force: true}})},
		{name: "result-prune", msg: res(Result{Declared: &Declared{Prune: true}})},
		{name: "result-error-status", msg: res(Result{Error: &ownError, Declared: &Declared{Status: status}})},
		{name: "status-denied", msg: body(StatusBody{
			Code: StatusDenied, Reason: "Denied", Message: "the module may not delete secrets in namespace default",
			Rule: &Capability{Resource: "secrets", Verbs: []string{"delete"}, Namespaces: []string{"default"}},
		})},
		{name: "status-unsupported", msg: body(StatusBody{Code: StatusUnsupported, Reason: "Unsupported", Message: "this host does not serve cache_get"})},
		{name: "status-notfound", msg: mustValue(map[string]any{ // of the API server
			"kind": "Status", "apiVersion": "v1", "metadata": map[string]any{}, "status": "Failure", "code": int64(404), "reason": "NotFound",
			"message": `configmaps "hello-content" not found`, "details": map[string]any{"name": "hello-content", "kind": "configmaps"},
		})},
		{name: "manifest-full", msg: mustManifest()},
		{name: "manifest-fields", msg: mustEncodeManifest(&Manifest{Name: "replicas", Capabilities: []Capability{{
			Group: "apps", Resource: "deployments", Verbs: []string{"get", "patch"}, Namespaces: []string{"default"}, Names: []string{"web"},
			Fields: []string{"spec.replicas", `metadata.annotations["example.com/by"]`, "spec.template.spec.containers[name=app].image"},
		}}})},
		{name: "status-denied-fields", msg: body(StatusBody{
			Code: StatusDenied, Reason: "Denied", Message: "the module may not patch the fields spec.paused of deployments.apps in namespace default",
			Rule: &Capability{Group: "apps", Resource: "deployments", Verbs: []string{"patch"}, Namespaces: []string{"default"}, Fields: []string{"spec.paused"}},
		})},
	}
	list = append(list, goldenEdges(key)...)
	list = append(append(list, goldenEvents(obj, key)...), goldenSettings()...)
	list = append(append(list, goldenAdmissions(obj, key)...), goldenConversions(obj)...)
	return append(append(list, goldenOps()...), goldenBad()...)
}

// goldenEdges are requests that a reader must accept like others: extreme numbers, and messages of a newer host.
func goldenEdges(key Key) []golden {
	edges := mustValue(map[string]any{"spec": map[string]any{
		"ints":    []any{int64(math.MaxInt64), int64(math.MinInt64), int64(1<<53 + 1), int64(math.MaxUint32), int64(-33), int64(0)},
		"floats":  []any{0.1, math.MaxFloat64, math.SmallestNonzeroFloat64, 16777217.5, 1.0},
		"strings": []any{"", "größe 😀", "a\x00b", strings.Repeat("s", 256)}, "nil": nil, "": "empty key", "a.b/c": map[string]any{},
	}})
	numbers := AppendRequest(nil, &Request{ID: "r2", Controller: "c", Reason: Reason{Type: ReasonListed}, Attempt: 1 << 31, Key: key, Object: edges, ConfigGen: math.MaxInt64, Deadline: testTime})
	// Written by hand: unknown keys, another order, and heads that are wider than necessary.
	str := func(s string) []byte { return appendString(nil, s) }
	future := [][]byte{
		str("weather"), mustValue(map[string]any{"object": "not this one", "deep": []any{[]any{map[string]any{}}}}),
		str(keyObject), mustValue(map[string]any{"spec": map[string]any{"text": "hello"}}),
		str(keyAttempt),
		{0xcf, 0, 0, 0, 0, 0, 0, 0, 4},
		str(keyReason), mustValue(map[string]any{"since": int64(1), "type": "SolarFlare"}),
		str(keyKey), mustValue(map[string]any{"cluster": "west", "name": "hello", "namespace": "default"}),
		str(keyCaps), mustValue([]any{"api_get", "teleport"}),
		str(keyID),
		{0xdb, 0, 0, 0, 2, 'r', '3'},
		str(keyV),
		{0xd3, 0, 0, 0, 0, 0, 0, 0, 1},
	}
	return []golden{{name: "request-edges", msg: numbers}, {name: "request-future", msg: append([]byte{0xdf, 0, 0, 0, 8}, bytes.Join(future, nil)...)}}
}

// goldenEvents are the input and output of map and filter.
func goldenEvents(obj []byte, key Key) []golden {
	ev := Event{Controller: "configmapgenerator", Version: "v1", Kind: "ConfigMap", Type: EventUpdated, Key: key, Old: mustValue(map[string]any{"old": true}), New: obj}
	listed, deleted := ev, ev
	listed.Type, listed.Old = EventListed, nil
	deleted.Type, deleted.New = EventDeleted, nil
	deleted.Group, deleted.Version, deleted.Kind, deleted.Key = "example.com", "v1beta1", "Color", Key{Name: "blue"}
	keys := func(r MapResult) []byte { return AppendMapResult(nil, &r) }
	return []golden{
		{name: "event-updated", msg: AppendEvent(nil, &ev)},
		{name: "event-listed", msg: AppendEvent(nil, &listed)},
		{name: "event-deleted", msg: AppendEvent(nil, &deleted)},
		{name: "keys-none", msg: keys(MapResult{})},
		{name: "keys-two", msg: keys(MapResult{Keys: []Key{key, {Name: "blue"}}})},
		{name: "keys-error", msg: keys(MapResult{Error: &ResultError{Class: ErrorTransient, Message: "the cache has no namespace yet", Reason: "NotSynced"}})},
	}
}

// goldenAdmissions are the input and output of validate and default.
func goldenAdmissions(obj []byte, key Key) []golden {
	target := Target{Group: "examples.wasmctl.dev", Version: "v1", Kind: "ConfigMapGenerator", Resource: "configmapgenerators"}
	create := Admission{
		ID: "0b6f-1", Controller: "configmapgenerator", Webhook: "/validate-examples-wasmctl-dev-v1-configmapgenerator", Operation: OperationCreate,
		Target: target, Requested: target, Key: key, Object: obj, User: User{Name: "ann"}, ConfigGen: 1, Deadline: testTime,
	}
	update, del := create, create
	update.Webhook, update.Operation, update.Old, update.DryRun = "/mutate-examples-wasmctl-dev-v1-configmapgenerator", OperationUpdate, mustValue(map[string]any{"old": true}), true
	update.Requested.Version, update.Requested.Subresource, update.Target.Subresource = "v1beta1", "status", "status"
	update.Options = mustValue(map[string]any{"apiVersion": "meta.k8s.io/v1", "kind": "UpdateOptions"})
	update.User = User{Name: "system:serviceaccount:default:ci", UID: "u-7", Groups: []string{"system:authenticated", "größe"}, Extra: map[string][]string{"scopes": {"a", "b"}, "empty": {}}}
	update.Caps = []string{"cache_get", "admission"}
	del.Operation, del.Object, del.Old, del.Key = OperationDelete, nil, obj, Key{Name: "cluster-scoped"}
	cause := map[string]any{"type": "FieldValueInvalid", "field": "spec.content", "message": "is empty"}
	return []golden{
		{name: "admission-create", msg: admissionMessage(&create)},
		{name: "admission-update", msg: admissionMessage(&update)},
		{name: "admission-delete", msg: admissionMessage(&del)},
		{name: "verdict-allowed", msg: mustValue(map[string]any{})},
		{name: "verdict-warnings", msg: mustValue(map[string]any{"warnings": []any{"spec.content is long"}, "audit": map[string]any{"size": "large"}})},
		{name: "verdict-denied", msg: mustValue(map[string]any{"denied": map[string]any{"message": "no"}})},
		{name: "verdict-invalid", msg: mustValue(map[string]any{"denied": map[string]any{
			"code": int64(422), "reason": "Invalid", "message": "[spec.content: is empty, no owner]", "causes": []any{cause, map[string]any{"message": "no owner"}},
		}})},
		{name: "verdict-object", msg: mustValue(map[string]any{"object": testObject})},
		{name: "verdict-base", msg: mustValue(map[string]any{"object": map[string]any{"a": int64(2)}, "base": map[string]any{"a": int64(1)}})},
		{name: "verdict-error", msg: mustValue(map[string]any{"error": map[string]any{"class": "transient", "message": "the cache has no namespace yet", "reason": "NotSynced"}})},
	}
}

// goldenConversions are the input and output of convert.
func goldenConversions(obj []byte) []golden {
	c := Conversion{ID: "0b6f-2", Controller: "configmapgenerator", To: "examples.wasmctl.dev/v2", Objects: [][]byte{obj, obj}, ConfigGen: 1, Deadline: testTime, Caps: []string{"convert"}}
	return []golden{
		{name: "conversion-two", msg: AppendConversion(nil, &c)},
		{name: "converted-two", msg: mustValue(map[string]any{"objects": []any{testObject, testObject}})},
		{name: "converted-error", msg: mustValue(map[string]any{"error": map[string]any{"class": "permanent", "message": "ConfigMapGenerator[default/hello]: no way"}})},
	}
}

// goldenSettings are the input of configure. Its output is that of keys-error,
// or an empty map.
func goldenSettings() []golden {
	return []golden{
		{name: "settings-none", msg: AppendSettings(nil, &Settings{Generation: 1})},
		{name: "settings-two", msg: AppendSettings(nil, &Settings{Generation: 7, Values: map[string]string{"suffix": "-content", "größe": "klein"}})},
	}
}

func mustManifest() []byte {
	return mustEncodeManifest(&Manifest{
		Name: "configmapgenerator", Version: "0.1.0", ABI: 1, SDK: "go/0.1.0", Concurrency: 8,
		For:  &Watch{Group: "examples.wasmctl.dev", Version: "v1", Kind: "ConfigMapGenerator", LabelSelector: "app=demo"},
		Owns: []Watch{{Version: "v1", Kind: "ConfigMap", ControllerOnly: true}},
		Watches: []Watch{
			{Version: "v1", Kind: "Secret", Map: MapAnnotation + "examples.wasmctl.dev/for", MetadataOnly: true, Optional: true},
			{Version: "v1", Kind: "Namespace", Map: MapFunc, Predicates: []string{"labels"}},
		},
		Finalizer: "examples.wasmctl.dev/configmapgenerator",
		Capabilities: []Capability{
			{Resource: "configmaps", Verbs: []string{"get", "create", "patch"}},
			{Group: "examples.wasmctl.dev", Resource: "configmapgenerators", Subresources: []string{"status"}, Verbs: []string{"patch"}},
		},
		Limits: &Limits{Memory: 64 << 20, Timeout: 10_000}, Config: map[string]string{"suffix": "-content"},
		Requires: []string{"api_apply"}, Wants: []string{"cache_list"}, Hooks: []string{"error_policy", "finalize", "map"},
	})
}

func mustEncodeManifest(m *Manifest) []byte {
	b, err := EncodeManifest(m)
	if err != nil {
		panic(err)
	}
	return b
}

func goldenOps() []golden {
	must := func(b []byte, err error) []byte {
		if err != nil {
			panic(err)
		}
		return b
	}
	op := func(r APIRequest) []byte { return must(encode(&r)) }
	event := func(r EventRequest) []byte { return must(encode(&r)) }
	cm := APIRequest{APIVersion: "v1", Kind: "ConfigMap", Namespace: "default", Name: "hello-content"}
	get, patch, apply, del, list := cm, cm, cm, cm, cm
	create := APIRequest{Object: mustValue(testObject), FieldValidation: "Strict"}
	update := create
	update.Subresource, update.Preconditions = "status", &Preconditions{ResourceVersion: "4711"}
	patch.Subresource, patch.PatchType, patch.Patch = "status", PatchJSON, mustValue([]any{map[string]any{"op": "remove", "path": "/data/a"}})
	apply.Object, apply.Force, apply.FieldManager, apply.DryRun = mustValue(testObject), true, "demo", true
	apply.APIVersion, apply.Kind, apply.Name, apply.Namespace = "", "", "", ""
	grace := int64(0)
	del.PropagationPolicy, del.GracePeriodSeconds = "Foreground", &grace
	del.Preconditions = &Preconditions{UID: "5c2f1f3e-8f0c-4b0e-9a43-0f1f6f2d7c11", ResourceVersion: "4711"}
	list.Name, list.LabelSelector, list.Limit, list.Continue = "", "app=demo", 500, "abc"
	return []golden{
		{name: "api-get", msg: op(get)},
		{name: "api-list", msg: op(list)},
		{name: "api-patch", msg: op(patch)},
		{name: "api-apply", msg: op(apply)},
		{name: "api-create", msg: op(create)},
		{name: "api-update", msg: op(update)},
		{name: "api-delete", msg: op(del)},
		{name: "config-key", msg: must(encode(&ConfigRequest{Key: "suffix"}))},
		{name: "config-all", msg: must(encode(&ConfigRequest{}))},
		{name: "cache-get", msg: op(get)},
		{name: "cache-list", msg: op(list)},
		{name: "record-minimal", msg: event(EventRequest{Reason: "Created"})},
		{name: "record-full", msg: event(EventRequest{
			Type: "Warning", Reason: "NotOwned", Action: "Apply", Note: "the ConfigMap hello-content belongs to somebody else",
			Regarding: &EventObject{APIVersion: "v1", Kind: "ConfigMap", Namespace: "default", Name: "hello-content", UID: "5c2f1f3e-8f0c-4b0e-9a43-0f1f6f2d7c11"},
			Related:   &EventObject{APIVersion: "example.com/v1", Kind: "Color", Name: "blue"},
		})},
	}
}

// goldenBad lists messages that must be rejected as a Result, an operation's request or an object.
func goldenBad() []golden {
	nest := func(n int) []byte {
		return append(bytes.Repeat([]byte{0x81, 0xa1, 'a'}, n), 0xc0)
	}
	return []golden{
		{"bad-truncated", []byte{0x82, 0xa1, 'a', 0x01}, "the map says two keys and has one"},
		{"bad-trailing", []byte{0x80, 0xc0}, "a byte follows the value"},
		{"bad-binary", []byte{0x81, 0xa1, 'a', 0xc4, 0x01, 0x00}, "binary does not cross the sandbox boundary"},
		{"bad-extension", []byte{0x81, 0xa1, 'a', 0xd4, 0x01, 0x00}, "an extension type does not cross the sandbox boundary"},
		{"bad-key", []byte{0x81, 0x01, 0xc0}, "a key that is not a string"},
		{"bad-uint64", []byte{0x81, 0xa1, 'a', 0xcf, 0x80, 0, 0, 0, 0, 0, 0, 0}, "9223372036854775808 is not an int64"},
		{"bad-nan", []byte{0x81, 0xa1, 'a', 0xcb, 0x7f, 0xf8, 0, 0, 0, 0, 0, 0}, "not a finite number"},
		{"bad-utf8", []byte{0x81, 0xa1, 'a', 0xa1, 0xff}, "a string that is not UTF-8"},
		{"bad-length", []byte{0xdf, 0xff, 0xff, 0xff, 0xff}, "the map says 4294967295 keys"},
		{"bad-depth", nest(MaxDepth + 1), "nests deeper than 128"},
		{"bad-array", []byte{0x90}, "not a map"},
		{"bad-never-used", []byte{0x81, 0xa1, 'a', 0xc1}, "0xc1 is not msgpack"},
	}
}

// TestGolden_FilesAreCurrent compares testdata with the output of this package; `go test ./abi -update` rewrites it.
func TestGolden_FilesAreCurrent(t *testing.T) {
	for _, g := range goldenMessages() {
		t.Run(g.name, func(t *testing.T) {
			file := filepath.Join("testdata", g.name)
			if *update {
				writeGolden(t, file, &g)
			}
			got, err := os.ReadFile(file + ".msgpack")
			if err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(got, g.msg) {
				t.Errorf("%s.msgpack differs from what the package writes: %x, want %x", file, got, g.msg)
			}
		})
	}
}

func writeGolden(t *testing.T, file string, g *golden) {
	t.Helper()
	show := any(map[string]any{"refused": g.why, "hex": fmt.Sprintf("%x", g.msg)})
	if g.why == "" {
		var err error
		if show, err = DecodeValue(g.msg); err != nil {
			t.Fatal(err)
		}
	}
	js, err := json.MarshalIndent(show, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	for ext, b := range map[string][]byte{".msgpack": g.msg, ".json": append(js, '\n')} {
		if err := os.WriteFile(file+ext, b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// TestGolden_JSONShowsTheSameValue reads every file of testdata, so that an orphaned file is noticed too.
func TestGolden_JSONShowsTheSameValue(t *testing.T) {
	files, err := filepath.Glob("testdata/*.msgpack")
	if err != nil || len(files) < len(goldenMessages()) {
		t.Fatalf("%d files, %v", len(files), err)
	}
	for _, file := range files {
		msg, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if strings.HasPrefix(filepath.Base(file), "bad-") {
			if _, err := DecodeObject(msg); err == nil {
				t.Errorf("%s: was not refused", file)
			}
			continue
		}
		v, err := DecodeValue(msg)
		if err != nil {
			t.Errorf("%s: %v", file, err)
			continue
		}
		js, err := os.ReadFile(strings.TrimSuffix(file, ".msgpack") + ".json")
		if err != nil {
			t.Fatal(err)
		}
		var want, got any
		viaJSON, _ := json.Marshal(v)
		if err := json.Unmarshal(viaJSON, &got); err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(js, &want); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: .json and .msgpack differ (-json +msgpack):\n%s", file, diff)
		}
	}
}
