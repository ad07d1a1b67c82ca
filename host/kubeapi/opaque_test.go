// SPDX-License-Identifier: Apache-2.0

package kubeapi

import (
	"fmt"
	"maps"
	"testing"

	"github.com/wasmctl/wasmctl/abi"
)

// letters is JSON that a decoder would change. JSON itself, and Go's encoder, know more than one text for each part.
const letters = `{"z": 1.0,"a":2e0,"u":18446744073709551615,"n":-0.0,"s":"<&>\u00e9","list":[ 1.10 ]}`

// mapOf encodes a map of values that are already msgpack.
func mapOf(pairs map[string][]byte) []byte {
	b := abi.AppendMapHead(nil, len(pairs))
	for key, value := range pairs {
		b, _ = abi.AppendValue(b, key) // a string is always a value
		b = append(b, value...)
	}
	return b
}

func plain(t *testing.T, v any) []byte {
	t.Helper()
	b, err := abi.AppendValue(nil, v)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// opaqueText returns the opaque JSON at a path.
func opaqueText(t *testing.T, b []byte, path ...any) string {
	t.Helper()
	texts, err := abi.OpaqueTexts(b)
	if err != nil {
		t.Fatal(err)
	}
	for _, step := range path {
		switch {
		case texts == nil:
			return ""
		case step == 0:
			texts = texts.Elements[0]
		default:
			texts = texts.Keys[step.(string)] //nolint:forcetypeassert // the other kind of step
		}
	}
	return string(texts.Text)
}

// TestOpaque_TheAPIServerGetsAndReturnsEveryByte writes and reads the data of a ControllerRevision, which the API server does not let
// anyone change, in each way.
func TestOpaque_TheAPIServerGetsAndReturnsEveryByte(t *testing.T) {
	s := sharedSession(t)
	s.API = s.WithPolicy(NewPolicy([]abi.Capability{{Group: "apps", Resource: "controllerrevisions", Verbs: []string{"*"}}}))
	call := func(op abi.Op, req map[string][]byte) []byte {
		t.Helper()
		got := s.Call(t.Context(), op, mapOf(req))
		if got.Status != abi.StatusOK {
			body, _ := abi.DecodeObject(got.Body)
			t.Fatalf("%s: %v: %v", op, got.Status, body["message"])
		}
		return got.Body
	}
	revision := func(meta map[string]any) map[string][]byte {
		meta["name"], meta["namespace"] = "r", s.ns
		return map[string][]byte{
			"apiVersion": plain(t, "apps/v1"), "kind": plain(t, "ControllerRevision"), "revision": plain(t, 1),
			"metadata": plain(t, meta), "data": abi.AppendOpaque(nil, []byte(letters)),
		}
	}
	named := map[string][]byte{
		"apiVersion": plain(t, "apps/v1"), "kind": plain(t, "ControllerRevision"), "namespace": plain(t, s.ns), "name": plain(t, "r"),
	}
	got := call(abi.OpAPICreate, map[string][]byte{"object": mapOf(revision(map[string]any{}))})
	if js := opaqueText(t, got, "data"); js != letters {
		t.Errorf("create: %s", js)
	}
	got = call(abi.OpAPIGet, named)
	if js := opaqueText(t, got, "data"); js != letters {
		t.Errorf("get: %s", js)
	}
	object, err := abi.DecodeObject(got)
	if err != nil {
		t.Fatal(err)
	}
	version := at(object, "metadata", "resourceVersion")
	call(abi.OpAPIUpdate, map[string][]byte{"object": mapOf(revision(map[string]any{"resourceVersion": version, "labels": map[string]any{"a": "b"}}))})
	delete(named, "name")
	if js := opaqueText(t, call(abi.OpAPIList, named), "items", 0, "data"); js != letters {
		t.Errorf("list: %s", js)
	}
	object["metadata"] = map[string]any{"name": "r", "namespace": s.ns}
	s.fails(422, "data", abi.OpAPIUpdate, map[string]any{"object": object}) // the decoded data
}

// TestOpaque_IdentityAndMetadataAreNotHidden: the host checks what it sends.
func TestOpaque_IdentityAndMetadataAreNotHidden(t *testing.T) {
	meta := fmt.Sprintf(`{"name":%q}`, "other")
	for name, keys := range map[string]map[string][]byte{
		"metadata":   {"metadata": abi.AppendOpaque(nil, []byte(meta))},
		"kind":       {"kind": abi.AppendOpaque(nil, []byte(`"Secret"`))},
		"name":       {"metadata": mapOf(map[string][]byte{"name": abi.AppendOpaque(nil, []byte(`"other"`))})},
		"twice":      {"data": abi.AppendOpaque(nil, []byte(`{"a":"b","a":"c"}`))},
		"the object": nil,
	} {
		object := map[string][]byte{
			"apiVersion": plain(t, "v1"), "kind": plain(t, "ConfigMap"), "metadata": plain(t, map[string]any{"name": "a", "namespace": "default"}),
		}
		maps.Copy(object, keys)
		packed := mapOf(object)
		if keys == nil {
			packed = abi.AppendOpaque(nil, []byte(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a","namespace":"default"}}`))
		}
		api := offlineAPI(t, everything())
		if got := api.Call(t.Context(), abi.OpAPIUpdate, mapOf(map[string][]byte{"object": packed})); got.Status != abi.StatusBadRequest {
			t.Errorf("%s: %v", name, got.Status)
		}
	}
	r := &request{}
	labels := mapOf(map[string][]byte{"metadata": mapOf(map[string][]byte{"labels": abi.AppendOpaque(nil, []byte(`{"a":"b"}`))})})
	if err := r.takeTexts(labels, "object"); err != nil || r.texts.Keys["metadata"] != nil {
		t.Errorf("%v, %v", r.texts, err)
	}
}
