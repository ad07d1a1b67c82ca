// SPDX-License-Identifier: Apache-2.0

package kubeapi

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/wasmctl/wasmctl/abi"
)

// TestWrote_TellsEveryAcceptedWrite: with the content of its answer. Reads, dry runs and refusals
// are not reported.
func TestWrote_TellsEveryAcceptedWrite(t *testing.T) {
	s := sharedSession(t)
	var reported []abi.Write
	ctx := abi.WithRun(t.Context(), &abi.Run{Wrote: func(w abi.Write) {
		var body map[string]any
		if err := json.Unmarshal(w.Body, &body); err != nil {
			t.Errorf("body of %s: %v", w.Op, err)
		}
		if w.Op != abi.OpAPIDelete && w.Subresource == "" && at(body, "metadata", "managedFields") == nil {
			t.Errorf("body of %s without managedFields: %s", w.Op, w.Body)
		}
		w.Body = nil
		reported = append(reported, w)
	}})
	call := func(op abi.Op, req map[string]any) map[string]any {
		t.Helper()
		got := s.Call(ctx, op, msg(t, req))
		body, err := abi.DecodeObject(got.Body)
		if err != nil {
			t.Fatal(got.Status, err)
		}
		return body
	}
	var want []abi.Write
	expect := func(op abi.Op, answer map[string]any, change func(*abi.Write)) {
		w := abi.Write{
			Op: op, Version: "v1", Resource: "configmaps", Key: abi.Key{Namespace: s.ns, Name: fmt.Sprint(at(answer, "metadata", "name"))},
			UID: fmt.Sprint(at(answer, "metadata", "uid")), ResourceVersion: fmt.Sprint(at(answer, "metadata", "resourceVersion")), FieldManager: "wasmctl/tester",
		}
		change(&w)
		want = append(want, w)
	}
	same := func(*abi.Write) {}
	labelled := s.cm("a", nil)
	labelled["metadata"].(map[string]any)["labels"] = map[string]any{"l": "1"}
	made := call(abi.OpAPICreate, map[string]any{"object": labelled})
	expect(abi.OpAPICreate, made, func(w *abi.Write) { w.Labels = map[string]string{"l": "1"} })
	generated := call(abi.OpAPICreate, map[string]any{"object": map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"generateName": "g-", "namespace": s.ns},
	}})
	expect(abi.OpAPICreate, generated, same)
	call(abi.OpAPIGet, s.ref("a"))
	call(abi.OpAPIList, map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "namespace": s.ns})
	call(abi.OpAPICreate, map[string]any{"object": s.cm("a", nil)})                   // exists already
	call(abi.OpAPICreate, map[string]any{"object": s.cm("dry", nil), "dryRun": true}) // is not made
	expect(abi.OpAPIUpdate, call(abi.OpAPIUpdate, map[string]any{"object": s.cm("a", map[string]any{"k": "1"}), "fieldManager": "me"}),
		func(w *abi.Write) { w.FieldManager = "me" })
	expect(abi.OpAPIApply, call(abi.OpAPIApply, map[string]any{"object": s.cm("a", map[string]any{"l": "1"})}), same)
	held := with(s.ref("a"), "patchType", "merge", "patch", map[string]any{"metadata": map[string]any{"finalizers": []any{finalizer}}})
	expect(abi.OpAPIPatch, call(abi.OpAPIPatch, held), same)
	expect(abi.OpAPIDelete, call(abi.OpAPIDelete, s.ref("a")), func(w *abi.Write) { w.Deleted, w.FieldManager = true, "" })
	freed := with(s.ref("a"), "patchType", "merge", "patch", map[string]any{"metadata": map[string]any{"finalizers": nil}})
	expect(abi.OpAPIPatch, call(abi.OpAPIPatch, freed), func(w *abi.Write) { w.Deleted = true })
	name := want[1].Key.Name
	call(abi.OpAPIDelete, s.ref(name)) // answers with a Status
	expect(abi.OpAPIDelete, generated, func(w *abi.Write) { w.Deleted, w.FieldManager, w.ResourceVersion = true, "", "" })
	sprocket := call(abi.OpAPICreate, map[string]any{"object": s.sprocket("w", "spec", map[string]any{"size": 1})})
	expect(abi.OpAPICreate, sprocket, func(w *abi.Write) { w.Group, w.Resource = "kubeapi.wasmctl.dev", "sprockets" })
	status := call(abi.OpAPIApply, map[string]any{"object": s.sprocket("w", "status", map[string]any{"size": 2}), "subresource": "status"})
	expect(abi.OpAPIApply, status, func(w *abi.Write) { w.Group, w.Resource, w.Subresource = "kubeapi.wasmctl.dev", "sprockets", "status" })
	if diff := cmp.Diff(want, reported); diff != "" {
		t.Error(diff)
	}
}
