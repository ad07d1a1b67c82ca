package plan

import (
	"fmt"

	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/internal/failure"
	"github.com/wasmctl/wasmctl/runtime/shard/slots"
)

// What objects can be split by between replicas, as options and people say it.
const (
	ByUID       = "uid"
	ByNamespace = "namespace"
)

// splitFields are the fields of an object that the words of a split are about.
var splitFields = map[string]string{ByUID: slots.UID, ByNamespace: slots.Namespace}

// Split is what the objects of a kind are split by between replicas.
type Split struct {
	By  string `json:"by"` // ByUID or ByNamespace
	Why string `json:"why"`
}

// Field is the field of an object.
func (s Split) Field() string { return splitFields[s.By] }

// splitOf decides. What belongs to an object has to be in the same part as the
// object itself. Children are in the namespace of their owner, but have uids of
// their own.
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

// SplitOf is what a manifest alone says. A kind that the manifest names is taken to be
// namespaced: whether it is, a cluster knows.
func SplitOf(m *abi.Manifest) Split {
	return splitOf(m.For != nil && m.For.Deletes, true, len(m.Owns)+len(m.Watches) > 0)
}

// SplitBy returns what the objects of a kind are split by: what is wanted, ByUID or
// ByNamespace, or where that is empty what the plan says. The error matches
// failure.Usage: what is wanted would not do.
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
	return Split{want, "shardBy says so"}, nil
}
