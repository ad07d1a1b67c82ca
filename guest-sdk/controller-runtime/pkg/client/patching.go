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

// patch sends the patch that leads to body, and puts the answer there.
func (t target) patch(sub string, body Object, patch Patch, o *metav1.PatchOptions) error {
	if patch.Type() == types.ApplyPatchType {
		value, err := t.applied(body, patch)
		if err != nil {
			return err
		}
		if sub == "" || body == t.obj {
			return t.take(t.c.Apply(value, applyOptions(sub, o)))
		}
		return target{t.c, body.GetObjectKind().GroupVersionKind(), body}.take(t.c.Subresource(t.ref(), sub).Apply(value, applyOptions("", o)))
	}
	p, err := convert(body, patch)
	if err != nil {
		return fmt.Errorf("patch %s: %w", t.ref(), err)
	}
	got, err := t.c.Patch(t.ref(), p, writeOptions(sub, o.DryRun, o.FieldManager, o.FieldValidation))
	return target{t.c, t.gvk, body}.take(got, err)
}

// applied is what a patch of type Apply sends.
func (t target) applied(body Object, patch Patch) (any, error) {
	if patch == Apply { // without the detour through JSON
		return codec.Encode(body, t.gvk)
	}
	data, err := patch.Data(body)
	if err != nil {
		return nil, err
	}
	var m map[string]any
	if err := utiljson.Unmarshal(data, &m); err != nil {
		return nil, fmt.Errorf("patch %s: %w", t.ref(), err)
	}
	return m, nil
}

// convert turns a patch into one of the SDK.
func convert(obj Object, patch Patch) (wasmctl.Patch, error) {
	data, err := patch.Data(obj)
	if err != nil {
		return wasmctl.Patch{}, err
	}
	switch patch.Type() {
	case types.MergePatchType, types.StrategicMergePatchType:
		var m map[string]any
		if err := utiljson.Unmarshal(data, &m); err != nil {
			return wasmctl.Patch{}, err
		}
		if patch.Type() == types.MergePatchType {
			return wasmctl.MergePatch(m), nil
		}
		return wasmctl.StrategicPatch(m), nil
	case types.JSONPatchType:
		return jsonPatch(data)
	default:
		return wasmctl.Patch{}, fmt.Errorf("type %q is not known; use client.Merge, client.MergeFrom, client.Apply or client.RawPatch", patch.Type())
	}
}

// jsonPatch reads a JSON patch (RFC 6902).
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
