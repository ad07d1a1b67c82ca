package plan

import "github.com/wasmctl/wasmctl/runtime/shard/slots"

// SplitBy returns what objects of a kind can be split by between replicas, slots.UID or
// slots.Namespace, and why.
//
// What belongs to an object has to be in the same part as the object itself. Children
// are in the namespace of their owner, but have uids of their own.
func (k Watched) SplitBy(p *Plan) (by, why string) {
	switch {
	case k.Watch.Deletes:
		return slots.Namespace, "the module is called after an object is gone, when only its namespace and name are known"
	case !k.Namespaced:
		return slots.UID, "the kind is cluster-scoped"
	case len(p.Related)+len(p.Pending) > 0:
		return slots.Namespace, "the module owns or watches other kinds, which are in the namespace of the object"
	}
	return slots.UID, "the module neither owns nor watches other kinds"
}
