package redact

import (
	"encoding/base64"
	"maps"
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

func TestObject_HidesValuesAndKeepsKeys(t *testing.T) {
	in := secret(map[string]any{"a": "aHVudGVyMg==", "b": "eA=="})
	in["stringData"] = map[string]any{"c": "plain"}
	before := maps.Clone(in)
	want := map[string]any{
		"apiVersion": "v1", "kind": "Secret", "type": "Opaque",
		"data": map[string]any{"a": Mark, "b": Mark}, "stringData": map[string]any{"c": Mark},
		"metadata": map[string]any{"name": "s", "annotations": map[string]any{lastApplied: Mark, "team": "a"}},
	}
	if diff := cmp.Diff(want, Object("", "Secret", in)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if diff := cmp.Diff(before, in); diff != "" {
		t.Errorf("the object itself has changed: -before +after:\n%s", diff)
	}
}

func TestObject_KnowsASecretByResourceOrByItself(t *testing.T) {
	patch := map[string]any{"data": map[string]any{"a": "aHVudGVyMg=="}}
	list := map[string]any{"kind": "SecretList", "items": []any{map[string]any{"data": map[string]any{"a": "aHVudGVyMg=="}}}}
	mixed := map[string]any{"kind": "List", "items": []any{secret(map[string]any{"a": "aHVudGVyMg=="})}}
	token := map[string]any{"kind": "TokenRequest", "status": map[string]any{"token": "aHVudGVyMg=="}}
	for name, got := range map[string]map[string]any{
		"patch of a resource": Object("", "Secret", patch), "kind of its own": Object("", "", secret(map[string]any{"a": "aHVudGVyMg=="})),
		"list": Object("", "SecretList", list), "mixed list": Object("", "", mixed), "token": Object("authentication.k8s.io", "TokenRequest", token),
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
	if diff := cmp.Diff(other, Object("", "ConfigMap", other)); diff != "" {
		t.Errorf("an object that is no Secret has changed:\n%s", diff)
	}
}

func TestObject_NullAndNonsenseInItsPlace(t *testing.T) {
	got := Object("", "Secret", map[string]any{"data": "aHVudGVyMg==", "stringData": nil, "metadata": "x"})
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

func TestPacked_HidesAndPassesOnWhatIsNoSecret(t *testing.T) {
	in, err := abi.AppendValue(nil, secret(map[string]any{"a": "aHVudGVyMg=="}))
	if err != nil {
		t.Fatal(err)
	}
	out, err := Packed("", "Secret", in)
	if err != nil || strings.Contains(string(out), "aHVudGVyMg") || !strings.Contains(string(out), Mark) {
		t.Errorf("%q, %v", out, err)
	}
	plain, err := abi.AppendValue(nil, map[string]any{"kind": "ConfigMap"})
	if err != nil {
		t.Fatal(err)
	}
	if out, err := Packed("", "ConfigMap", plain); err != nil || string(out) != string(plain) {
		t.Errorf("%q, %v", out, err)
	}
	if _, err := Packed("", "Secret", []byte{0xc1}); err == nil {
		t.Error("nonsense has no error")
	}
}

func b64(s string) string { return base64.StdEncoding.EncodeToString([]byte(s)) }
