// SPDX-License-Identifier: Apache-2.0

package redact

import (
	"encoding/base64"
	"encoding/json"
	"maps"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/wasmctl/wasmctl/abi"
)

func secret(data map[string]any) map[string]any {
	return map[string]any{
		"apiVersion": "v1", "kind": "Secret", "type": "Opaque", "data": data,
		"metadata": map[string]any{"name": "s", "annotations": map[string]any{lastApplied: `{"data":{"a":"aHVudGVyMg=="}}`, "team": "a"}},
	}
}

// marks are the texts that Distinct puts in the place of values.
var marks = regexp.MustCompile(`\[redacted #[0-9a-f]{8}\]`)

// hidden is Distinct with Mark in the place of each of them.
func hidden(t *testing.T, group, kind string, object map[string]any) map[string]any {
	t.Helper()
	text, err := json.Marshal(Distinct(group, kind, object))
	if err != nil {
		t.Fatal(err)
	}
	var out map[string]any
	if err := json.Unmarshal(marks.ReplaceAll(text, []byte(Mark)), &out); err != nil {
		t.Fatal(err)
	}
	return out
}

func TestDistinct_HidesValuesAndKeepsKeys(t *testing.T) {
	in := secret(map[string]any{"a": "aHVudGVyMg==", "b": "eA=="})
	in["stringData"] = map[string]any{"c": "plain"}
	before := maps.Clone(in)
	want := map[string]any{
		"apiVersion": "v1", "kind": "Secret", "type": "Opaque",
		"data": map[string]any{"a": Mark, "b": Mark}, "stringData": map[string]any{"c": Mark},
		"metadata": map[string]any{"name": "s", "annotations": map[string]any{lastApplied: Mark, "team": "a"}},
	}
	if diff := cmp.Diff(want, hidden(t, "", "Secret", in)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if diff := cmp.Diff(before, in); diff != "" {
		t.Errorf("the object itself has changed: -before +after:\n%s", diff)
	}
}

func TestDistinct_KnowsASecretByResourceOrByItself(t *testing.T) {
	patch := map[string]any{"data": map[string]any{"a": "aHVudGVyMg=="}}
	list := map[string]any{"kind": "SecretList", "items": []any{map[string]any{"data": map[string]any{"a": "aHVudGVyMg=="}}}}
	mixed := map[string]any{"kind": "List", "items": []any{secret(map[string]any{"a": "aHVudGVyMg=="})}}
	token := map[string]any{"kind": "TokenRequest", "status": map[string]any{"token": "aHVudGVyMg=="}}
	for name, got := range map[string]map[string]any{
		"patch of a resource": hidden(t, "", "Secret", patch), "kind of its own": hidden(t, "", "", secret(map[string]any{"a": "aHVudGVyMg=="})),
		"list": hidden(t, "", "SecretList", list), "mixed list": hidden(t, "", "", mixed), "token": hidden(t, "authentication.k8s.io", "TokenRequest", token),
	} {
		b, err := abi.AppendValue(nil, got)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(b), "aHVudGVyMg") || !strings.Contains(string(b), Mark) {
			t.Errorf("%s: %v", name, got)
		}
	}
	other := map[string]any{"kind": "ConfigMap", "data": map[string]any{"a": "b"}}
	if diff := cmp.Diff(other, hidden(t, "", "ConfigMap", other)); diff != "" {
		t.Errorf("an object that is no Secret has changed:\n%s", diff)
	}
}

func TestDistinct_NullAndNonsenseInItsPlace(t *testing.T) {
	got := hidden(t, "", "Secret", map[string]any{"data": "aHVudGVyMg==", "stringData": nil, "metadata": "x"})
	if diff := cmp.Diff(map[string]any{"data": Mark, "stringData": nil, "metadata": "x"}, got); diff != "" {
		t.Error(diff)
	}
}

func TestDistinct_MarksDifferWhereValuesDo(t *testing.T) {
	got := Distinct("", "Secret", secret(map[string]any{"a": "b25l", "b": "b25l", "c": "dHdv"}))["data"].(map[string]any)
	if got["a"] != got["b"] || got["a"] == got["c"] || strings.Contains(got["a"].(string), "b25l") {
		t.Errorf("marks %v", got)
	}
}

func b64(s string) string { return base64.StdEncoding.EncodeToString([]byte(s)) }
