// SPDX-License-Identifier: Apache-2.0

package kubeapi

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	jsonpatch "gopkg.in/evanphx/json-patch.v4"

	"github.com/wasmctl/wasmctl/abi"
)

// dryClient returns an API in front of a server that has one object, with
// --dry-run=client.
func dryClient(t *testing.T, data map[string]any) *API {
	t.Helper()
	js, err := json.Marshal(map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "x", "namespace": "a"}, "data": data})
	if err != nil {
		t.Fatal(err)
	}
	return scripted(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet {
			t.Errorf("%s was sent", r.Method)
		}
		answer("application/json", 200, string(js))(w, r)
	}).WithDryRun(DryRunClient)
}

func jsonPatch(t *testing.T, ops ...any) []byte {
	t.Helper()
	return msg(t, map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "namespace": "a", "name": "x", "patchType": "json", "patch": ops})
}

// TestDryRunClient_APatchOfCopiesIsBounded: each copy doubles the object, and the
// patch ends before it is beyond the largest object.
func TestDryRunClient_APatchOfCopiesIsBounded(t *testing.T) {
	api := dryClient(t, map[string]any{"k": strings.Repeat("x", 10_000)})
	var ops []any
	for i := range 30 {
		ops = append(ops, map[string]any{"op": "copy", "from": "/data", "path": fmt.Sprint("/data/c", i)})
	}
	var got abi.Response
	allocated, _ := cost(func() { got = api.Call(t.Context(), abi.OpAPIPatch, jsonPatch(t, ops...)) })
	if body := statusBody(t, got); got.Status != 422 || !strings.Contains(fmt.Sprint(body["message"]), "the limit is 4194304") || allocated > 300<<20 {
		t.Errorf("%v: %v, %d MiB", got.Status, body["message"], allocated>>20)
	}
}

// TestDryRunClient_APatchEndsWithItsRun: applying a long patch ends when the run
// is over, as when the process stops.
func TestDryRunClient_APatchEndsWithItsRun(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errGateClosed)
	if _, err := applyOps(ctx, []byte(`{}`), []byte(`[{"op":"add","path":"/a","value":1}]`)); err != errGateClosed { //nolint:errorlint // as it is
		t.Errorf("got %v", err)
	}
}

// TestCall_PatchOperationsAtTheirBound as the API server has it.
func TestCall_PatchOperationsAtTheirBound(t *testing.T) {
	api := dryClient(t, map[string]any{})
	var ops []any
	for range maxPatchOps {
		ops = append(ops, map[string]any{"op": "test", "path": "/kind", "value": "ConfigMap"})
	}
	if got := api.Call(t.Context(), abi.OpAPIPatch, jsonPatch(t, ops...)); got.Status != abi.StatusOK {
		t.Errorf("%v: %s", got.Status, got.Body)
	}
	if got := api.Call(t.Context(), abi.OpAPIPatch, jsonPatch(t, append(ops, ops[0])...)); got.Status != abi.StatusTooLarge || !strings.Contains(string(got.Body), "the limit is 10000") {
		t.Errorf("%v: %s", got.Status, got.Body)
	}
}

// TestDryRunClient_StrategicPatchesAreBounded: they take time by the square of
// their lists.
func TestDryRunClient_StrategicPatchesAreBounded(t *testing.T) {
	api := dryClient(t, map[string]any{})
	refs := make([]any, 5_000)
	for i := range refs {
		refs[i] = map[string]any{"uid": fmt.Sprint(i), "name": "a"}
	}
	got := api.Call(t.Context(), abi.OpAPIPatch, msg(t, map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap", "namespace": "a", "name": "x", "patchType": "strategic", "patch": map[string]any{"metadata": map[string]any{"ownerReferences": refs}},
	}))
	if got.Status != abi.StatusTooLarge || !strings.Contains(string(got.Body), "the limit is 10000") {
		t.Errorf("%v: %s", got.Status, got.Body)
	}
}

// TestApplyOps_IsApplyingThemAtOnce: steps make no difference.
func TestApplyOps_IsApplyingThemAtOnce(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 8))
	path := func() string { return []string{"/a", "/b", "/c", "/a/x", "/b/x", "/l/0", "/l/-", "/l/1"}[r.IntN(8)] }
	worked := 0
	for range 3000 {
		var ops []any
		for range 1 + r.IntN(40) {
			op := map[string]any{"op": []string{"add", "add", "add", "replace", "test", "remove", "copy", "move"}[r.IntN(8)], "path": path(), "from": path()}
			op["value"] = []any{1, "t", map[string]any{"x": 1}, []any{}}[r.IntN(4)]
			if r.IntN(3) > 0 { // which nearly always works
				op = map[string]any{"op": "add", "path": []string{"/a", "/b", "/l/-"}[r.IntN(3)], "value": op["value"]}
			}
			ops = append(ops, op)
		}
		body, err := json.Marshal(ops)
		if err != nil {
			t.Fatal(err)
		}
		object := []byte(`{"a":{"x":1},"b":{"x":2},"c":3,"l":[1,2]}`)
		whole, err := jsonpatch.DecodePatch(body)
		if err != nil {
			t.Fatal(err)
		}
		want, wantErr := whole.Apply(object)
		got, err := applyOps(t.Context(), object, body)
		if (err == nil) != (wantErr == nil) || err == nil && cmp.Diff(parsed(t, want), parsed(t, got)) != "" {
			t.Fatalf("%s: %s, %v; want %s, %v", body, got, err, want, wantErr)
		}
		if err == nil {
			worked++
		}
	}
	if worked < 300 {
		t.Errorf("only %d patches applied", worked)
	}
}

func parsed(t *testing.T, js []byte) (v any) {
	t.Helper()
	if err := json.Unmarshal(js, &v); err != nil {
		t.Fatal(err)
	}
	return v
}
