// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"

	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/internal/failure"
	"github.com/wasmctl/wasmctl/runtime/shard/slots"
)

// The ways to split objects between replicas, as they are written in options.
const (
	ByUID       = "uid"
	ByNamespace = "namespace"
)

// splitFields has the field of an object for each way to split.
var splitFields = map[string]string{ByUID: slots.UID, ByNamespace: slots.Namespace}

// Split is the way in which the objects of a kind are split between replicas.
type Split struct {
	By  string `json:"by"` // ByUID or ByNamespace
	Why string `json:"why"`
}

// Field returns the field of an object that decides its part.
func (s Split) Field() string { return splitFields[s.By] }

// splitOf chooses the split. Objects that belong together must be in the same part.
// Children are in the namespace of their owner, but have uids of their own.
func splitOf(deletes, namespaced, related bool) Split {
	switch {
	case deletes:
		return Split{ByNamespace, "the module is called after an object is gone, when only its namespace and name are known"}
	case !namespaced:
		return Split{ByUID, "the kind is cluster-scoped"}
	case related:
		return Split{ByNamespace, "the module owns or watches other kinds, which are in the namespace of the object"}
	}
	return Split{ByUID, "the module neither owns nor watches other kinds"}
}

// SplitOf returns the split that follows from a manifest alone. It assumes that the
// reconciled kind is namespaced, because only a cluster knows its scope.
func SplitOf(m *abi.Manifest) Split {
	return splitOf(m.For != nil && m.For.Deletes, true, len(m.Owns)+len(m.Watches) > 0)
}

// SplitBy returns the split of a kind's objects: the wanted one, ByUID or ByNamespace, or
// if want is empty the one that follows from the plan. An error for an unsuitable split
// matches failure.Usage.
func (k Watched) SplitBy(p *Plan, want string) (Split, error) {
	split := splitOf(k.Watch.Deletes, k.Namespaced, len(p.Related)+len(p.Pending) > 0)
	switch {
	case want == "" || want == split.By:
		return split, nil
	case want == ByUID && k.Watch.Deletes:
		return split, failure.Usage.Wrap(fmt.Errorf("shardBy %s: %s; omit it, or use %s", want, split.Why, ByNamespace))
	case want == ByNamespace && !k.Namespaced:
		return split, failure.Usage.Wrap(fmt.Errorf("shardBy %s: %s is cluster-scoped, so that one replica would run all of it; omit it, or use %s", want, k.Name(), ByUID))
	}
	return Split{want, "set by shardBy"}, nil
}
