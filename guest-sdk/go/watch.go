// SPDX-License-Identifier: Apache-2.0

package wasmctl

import "strings"

// Watch is a kind that a module reconciles, owns or watches.
type Watch struct {
	// Group is empty for the core kinds.
	Group string `json:"group"`
	// Version may be empty, for the version that the API server prefers.
	Version string `json:"version,omitempty"`
	Kind    string `json:"kind"`

	// Namespaces and the selectors narrow the watch; if empty, it covers
	// everything.
	Namespaces    []string `json:"namespaces,omitempty"`
	LabelSelector string   `json:"labelSelector,omitempty"`
	FieldSelector string   `json:"fieldSelector,omitempty"`
	// Predicates name the changes that cause a run: "generation",
	// "resourceVersion", "labels", "annotations", "finalizers", "deletion", and
	// all(...) and any(...) of these. One match in the list is enough. They
	// cost less than Filter, for which the host must call the module.
	Predicates []string `json:"predicates,omitempty"`
	// Deletes makes the host call Reconcile, without an object, after an object
	// is gone. It has an effect only in Manifest.For.
	Deletes bool `json:"deletes,omitempty"`
	// Map selects the objects that an event concerns. "owner" selects the
	// owners. "label:KEY" selects the object that the label names, in the same
	// namespace. "annotation:KEY" selects the object that the annotation names,
	// by its name or "namespace/name". It has an effect only in
	// Manifest.Watches.
	Map string `json:"map,omitempty"`
	// Mapper selects the objects by code, instead of Map.
	Mapper Mapper `json:"-"`
	// Filter reports whether an event counts. The host calls it for events that
	// Predicates accept. To make it one of several predicates, add "func" to
	// Predicates. The cache stores the object in any case.
	Filter Filter `json:"-"`
	// MetadataOnly restricts the objects to apiVersion, kind and metadata,
	// which saves memory. It has no effect in Manifest.For.
	MetadataOnly bool `json:"metadataOnly,omitempty"`
	// ControllerOnly skips owners that do not control the object. It has an
	// effect only in Manifest.Owns, and in Manifest.Watches with Map "owner".
	ControllerOnly bool `json:"controllerOnly,omitempty"`
	// Optional lets reconciling start before this watch has synced.
	Optional bool `json:"optional,omitempty"`
}

// Mapper returns the objects to reconcile because of an event of a watched
// object. The host calls it for each event. If a change moves an object from
// one owner to another, return both owners: compare Old and New. The host may
// merge several events into one, with the Old of the first. Keys of objects
// that do not exist do no harm. After an error, the host calls the Mapper again
// later.
//
// ctx offers the Cache, the settings and the log. It has no object, and calls
// of its Client return an error.
type Mapper func(ctx *Context, event WatchEvent) ([]ObjectKey, error)

// Filter reports whether an event counts. Its ctx is like that of a Mapper.
type Filter func(ctx *Context, event WatchEvent) bool

// byFunc is the Map of a watch with a Mapper, and the predicate that calls the
// Filter.
const byFunc = "func"

// described returns the watch in its form in the manifest.
func (w Watch) described() Watch {
	if w.Mapper != nil {
		w.Map = byFunc
	}
	if w.Filter == nil {
		return w
	}
	var rest, ttl []string
	for _, p := range w.Predicates {
		switch {
		case strings.Contains(p, byFunc):
			return w
		case strings.HasPrefix(strings.TrimSpace(p), "ttl="):
			ttl = append(ttl, p)
		default:
			rest = append(rest, p)
		}
	}
	all := byFunc
	if len(rest) > 0 {
		all = "all(any(" + strings.Join(rest, ", ") + "), " + byFunc + ")"
	}
	w.Predicates = append(ttl, all)
	return w
}

func describedAll(list []Watch) []Watch {
	if list == nil {
		return nil
	}
	out := make([]Watch, len(list))
	for i, w := range list {
		out[i] = w.described()
	}
	return out
}

func (w *Watch) of(group, kind string) bool { return w.Group == group && w.Kind == kind }

// WatchEventType is the type of a change of a watched object.
type WatchEventType string

// The types of a WatchEvent.
const (
	WatchListed  WatchEventType = "Listed"  // the object existed when the watch started
	WatchUpdated WatchEventType = "Updated" // the object was created or has changed
	WatchDeleted WatchEventType = "Deleted" // the object is gone
)

// WatchEvent is one change of one watched object, as a Mapper and a Filter
// receive it.
type WatchEvent struct {
	Type WatchEventType
	// Group, Version and Kind are those of the watch.
	Group, Version, Kind string
	// Key names the object.
	Key ObjectKey
	// Old and New are the object before and after the change. The views are
	// valid until the Mapper returns. Old does not exist if the host did not
	// know the object before. New does not exist if the object is gone.
	Old, New Object
}

// Object returns the newest state: New, or Old if the object is gone.
func (e WatchEvent) Object() Object {
	if e.New.Exists() {
		return e.New
	}
	return e.Old
}

// watchEvent decodes the Event of the call.
func (in *input) watchEvent() WatchEvent {
	w := Value{in.watch}
	return WatchEvent{
		Type:  WatchEventType(Value{in.eventType}.String()),
		Group: w.String("group"), Version: w.String("version"), Kind: w.String("kind"),
		Key: objectKey(in.key),
		Old: Object{Value: Value{in.old}}, New: Object{Value: Value{in.new}},
	}
}

// mapper returns the Mapper for events of the kind, or nil.
func (m *Manifest) mapper(group, kind string) Mapper {
	for i := range m.Watches {
		if w := &m.Watches[i]; w.Mapper != nil && w.of(group, kind) {
			return w.Mapper
		}
	}
	return nil
}

// keeps calls the Filters of the kind. If several watches match an event, one
// Filter that returns true is enough.
func (m *Manifest) keeps(ctx *Context, e WatchEvent) bool {
	hidden := false
	ask := func(w *Watch) bool {
		if !w.of(e.Group, e.Kind) {
			return false
		}
		if w.Filter == nil || w.Filter(ctx, e) {
			return true
		}
		hidden = true
		return false
	}
	return m.anyWatch(ask) || !hidden
}

// anyWatch reports whether f returns true for For or for any watch of Owns or
// Watches.
func (m *Manifest) anyWatch(f func(w *Watch) bool) bool {
	if m.For != nil && f(m.For) {
		return true
	}
	for _, list := range [][]Watch{m.Owns, m.Watches} {
		for i := range list {
			if f(&list[i]) {
				return true
			}
		}
	}
	return false
}
