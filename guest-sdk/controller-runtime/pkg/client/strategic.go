package client

import (
	"encoding/json"
	"fmt"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
)

// StrategicMergeFrom is a strategic merge patch of what differs from obj: lists
// of built-in kinds are merged by their keys. Custom resources do not have it.
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
func (s *strategicFrom) Data(obj Object) ([]byte, error) {
	was, now, err := s.states(obj)
	if err != nil {
		return nil, err
	}
	from, err := json.Marshal(was)
	if err != nil {
		return nil, err
	}
	to, err := json.Marshal(now)
	if err != nil {
		return nil, err
	}
	patch, err := strategicpatch.CreateTwoWayMergePatch(from, to, obj)
	if err != nil {
		return nil, fmt.Errorf("patch %T: %w", obj, err)
	}
	return patch, nil
}
