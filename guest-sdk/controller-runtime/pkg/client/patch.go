// SPDX-License-Identifier: Apache-2.0

package client

import (
	"encoding/json"
	"fmt"

	"k8s.io/apimachinery/pkg/types"

	wasmctl "github.com/wasmctl/wasmctl/guest-sdk/go"
)

var (
	// Apply sends the object as server-side apply.
	//
	// Deprecated: use Writer.Apply.
	Apply Patch = whole{types.ApplyPatchType}

	// Merge sends the complete object as a merge patch.
	Merge Patch = whole{types.MergePatchType}
)

// whole sends the complete object as the patch.
type whole struct{ typ types.PatchType }

// Type implements Patch.
func (w whole) Type() types.PatchType { return w.typ }

// Data implements Patch.
func (w whole) Data(obj Object) ([]byte, error) { return json.Marshal(obj) }

// RawPatch returns a patch with the given bytes.
func RawPatch(patchType types.PatchType, data []byte) Patch { return &raw{patchType, data} }

type raw struct {
	typ  types.PatchType
	data []byte
}

// Type implements Patch.
func (r *raw) Type() types.PatchType { return r.typ }

// Data implements Patch.
func (r *raw) Data(Object) ([]byte, error) { return r.data, nil }

// MergeFromOption is an option of MergeFromWithOptions.
type MergeFromOption interface{ ApplyToMergeFrom(*MergeFromOptions) }

// MergeFromOptions are the options of MergeFromWithOptions.
type MergeFromOptions struct {
	// OptimisticLock makes the patch fail with a conflict if another client has
	// changed the object in the meantime.
	OptimisticLock bool
}

// MergeFromWithOptimisticLock sets MergeFromOptions.OptimisticLock.
type MergeFromWithOptimisticLock struct{}

// ApplyToMergeFrom implements MergeFromOption.
func (MergeFromWithOptimisticLock) ApplyToMergeFrom(o *MergeFromOptions) { o.OptimisticLock = true }

// MergeFrom returns a merge patch (RFC 7386) with the changes since obj. Lists
// are replaced as a whole. Make a DeepCopy of the object before you change it.
func MergeFrom(obj Object) Patch { return MergeFromWithOptions(obj) }

// MergeFromWithOptions is MergeFrom with options.
func MergeFromWithOptions(obj Object, opts ...MergeFromOption) Patch {
	f := &mergeFrom{from: obj}
	for _, opt := range opts {
		opt.ApplyToMergeFrom(&f.opts)
	}
	return f
}

// mergeFrom is a merge patch with the difference of two states.
type mergeFrom struct {
	from Object
	opts MergeFromOptions
}

// Type implements Patch.
func (*mergeFrom) Type() types.PatchType { return types.MergePatchType }

// Data implements Patch.
func (m *mergeFrom) Data(obj Object) ([]byte, error) { return text(m, obj) }

func (m *mergeFrom) diff(obj Object) (any, error) {
	if !m.opts.OptimisticLock {
		patch, ok, err := wasmctl.MergeDiff(m.from, obj)
		switch {
		case err != nil:
			return nil, fmt.Errorf("patch: encode %T: %w", obj, err)
		case ok:
			return patch, nil
		}
	}
	from, to, err := m.states(obj)
	if err != nil {
		return nil, err
	}
	return mergeDiff(from, to), nil
}

// states returns the encodings of both states, possibly without keys whose
// values are equal. With the optimistic lock, only the new state has a
// resourceVersion, so that the difference includes it.
func (m *mergeFrom) states(obj Object) (from, to wasmctl.Value, err error) {
	from, to, err = wasmctl.Changed(m.from, obj)
	if err != nil {
		return from, to, fmt.Errorf("patch: encode %T: %w", obj, err)
	}
	return from, to, m.lock(&from, &to)
}

// lock checks that both states are objects. With the optimistic lock, it moves
// the resourceVersion to the new state.
func (m *mergeFrom) lock(from, to *wasmctl.Value) error {
	switch {
	case from.Type() != wasmctl.TypeMap || to.Type() != wasmctl.TypeMap:
		return fmt.Errorf("patch: encode %T: not an object", m.from)
	case !m.opts.OptimisticLock:
		return nil
	}
	version := m.from.GetResourceVersion()
	if version == "" {
		return fmt.Errorf("patch %s[%s]: OptimisticLock: the object that the patch starts from has no resourceVersion; read it first",
			m.from.GetObjectKind().GroupVersionKind().Kind, ObjectKeyFromObject(m.from))
	}
	from.Remove("metadata", "resourceVersion")
	return to.Set(version, "metadata", "resourceVersion")
}
