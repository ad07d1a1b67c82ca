// SPDX-License-Identifier: Apache-2.0

package client

import (
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/strategicpatch"

	wasmctl "github.com/wasmctl/wasmctl/guest-sdk/go"

	"sigs.k8s.io/controller-runtime/pkg/internal/codec"
)

// StrategicMergeFrom returns a strategic merge patch with the changes since
// obj: lists of built-in kinds are merged by their keys. Custom resources and
// unstructured objects do not support it.
func StrategicMergeFrom(obj Object, opts ...MergeFromOption) Patch {
	s := &strategicFrom{mergeFrom{from: obj}}
	for _, opt := range opts {
		opt.ApplyToMergeFrom(&s.opts)
	}
	return s
}

type strategicFrom struct{ mergeFrom }

// Type implements Patch.
func (*strategicFrom) Type() types.PatchType { return types.StrategicMergePatchType }

// Data implements Patch.
func (s *strategicFrom) Data(obj Object) ([]byte, error) { return text(s, obj) }

// diff compares the complete states, because the patch has the order of lists
// that are equal.
func (s *strategicFrom) diff(obj Object) (any, error) {
	from, err1 := wasmctl.NewValue(codec.Plain(s.from))
	to, err2 := wasmctl.NewValue(codec.Plain(obj))
	if err := errors.Join(err1, err2); err != nil {
		return nil, fmt.Errorf("patch: encode %T: %w", obj, err)
	}
	if err := s.lock(&from, &to); err != nil {
		return nil, err
	}
	var was, now map[string]any
	if err := errors.Join(from.Decode(&was), to.Decode(&now)); err != nil {
		return nil, fmt.Errorf("patch %T: %w", obj, err)
	}
	diff, err := strategicpatch.CreateTwoWayMergeMapPatch(was, now, obj)
	if err != nil {
		return nil, fmt.Errorf("patch %T: %w", obj, err)
	}
	return map[string]any(diff), nil
}
