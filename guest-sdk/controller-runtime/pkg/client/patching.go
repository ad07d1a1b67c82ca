// SPDX-License-Identifier: Apache-2.0

package client

import (
	"bytes"
	"encoding/json"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	wasmctl "github.com/wasmctl/wasmctl/guest-sdk/go"

	"sigs.k8s.io/controller-runtime/pkg/internal/codec"
)

// patch sends the patch for the object, or for the body of a subresource, and
// updates it with the answer.
func (t target) patch(sub string, body Object, patch Patch, o *metav1.PatchOptions) error {
	answer := target{t.c, t.gvk, body}
	if patch.Type() == types.ApplyPatchType {
		return answer.apply(t.ref(), sub, patch, o)
	}
	p, err := convert(body, patch)
	if err != nil {
		return fmt.Errorf("patch %s: %w", t.ref(), err)
	}
	return answer.take(t.c.Patch(t.ref(), p, writeOptions(sub, o.DryRun, o.FieldManager, o.FieldValidation)))
}

// apply sends a patch of type Apply. ref is the object that has the
// subresource.
func (t target) apply(ref wasmctl.ObjectRef, sub string, patch Patch, o *metav1.PatchOptions) error {
	call := func(body any) (wasmctl.Object, error) {
		if sub == "" || sub == "status" {
			return t.c.Apply(body, applyOptions(sub, o))
		}
		return t.c.Subresource(ref, sub).Apply(body, applyOptions("", o))
	}
	if patch == Apply { // skips the conversion to JSON
		body, restore := codec.Body(t.obj, t.gvk)
		got, err := call(body)
		restore()
		return t.take(got, err)
	}
	data, err := patch.Data(t.obj)
	if err != nil {
		return err
	}
	var m map[string]any
	if err := utiljson.Unmarshal(data, &m); err != nil {
		return fmt.Errorf("patch %s: %w", ref, err)
	}
	return t.take(call(m))
}

// convert converts a patch to a patch of the SDK.
func convert(obj Object, patch Patch) (wasmctl.Patch, error) {
	switch patch.Type() {
	case types.MergePatchType:
		m, err := difference(obj, patch)
		return wasmctl.MergePatch(m), err
	case types.StrategicMergePatchType:
		m, err := difference(obj, patch)
		return wasmctl.StrategicPatch(m), err
	case types.JSONPatchType:
		data, err := patch.Data(obj)
		if err != nil {
			return wasmctl.Patch{}, err
		}
		return jsonPatch(data)
	default:
		return wasmctl.Patch{}, fmt.Errorf("type %q is not known; use client.Merge, client.MergeFrom, client.Apply or client.RawPatch", patch.Type())
	}
}

// difference returns the value of a patch that is a map.
func difference(obj Object, patch Patch) (any, error) {
	if d, ok := patch.(differ); ok {
		return d.diff(obj)
	}
	data, err := patch.Data(obj)
	if err != nil {
		return nil, err
	}
	var m map[string]any
	err = utiljson.Unmarshal(data, &m)
	return m, err
}

// jsonPatch decodes a JSON patch (RFC 6902).
func jsonPatch(data []byte) (wasmctl.Patch, error) {
	var list []struct {
		Op, Path, From string
		Value          json.RawMessage
	}
	if err := json.NewDecoder(bytes.NewReader(data)).Decode(&list); err != nil {
		return wasmctl.Patch{}, err
	}
	ops := make([]wasmctl.PatchOp, len(list))
	for i, op := range list {
		ops[i] = wasmctl.PatchOp{Op: op.Op, Path: op.Path, From: op.From}
		if len(op.Value) == 0 {
			continue
		}
		if err := utiljson.Unmarshal(op.Value, &ops[i].Value); err != nil {
			return wasmctl.Patch{}, err
		}
	}
	return wasmctl.JSONPatch(ops...), nil
}
