package wasmctl

import "strings"

// Watch is a kind that a module reconciles, owns or watches.
type Watch struct {
	// Group is empty for the core kinds.
	Group string `json:"group"`
	// Version is, if empty, the one that the API server prefers.
	Version string `json:"version,omitempty"`
	Kind    string `json:"kind"`

	// Namespaces and the selectors narrow it; empty is everything.
	Namespaces    []string `json:"namespaces,omitempty"`
	LabelSelector string   `json:"labelSelector,omitempty"`
	FieldSelector string   `json:"fieldSelector,omitempty"`
	// Predicates name what must have changed for a change to be looked at:
	// "generation", "resourceVersion", "labels", "annotations", "finalizers",
	// "deletion", and all(...) and any(...) of them; one of the list is enough.
	// They cost less than Filter, for which the module is called.
	Predicates []string `json:"predicates,omitempty"`
	// Deletes asks for Reconcile, without an object, after an object is gone.
	// Only read in Manifest.For.
	Deletes bool `json:"deletes,omitempty"`
	// Map says which objects an event concerns: "owner"; "label:KEY", whose value
	// is a name in the same namespace; or "annotation:KEY", whose value is such a
	// name or "namespace/name". Only read in Manifest.Watches.
	Map string `json:"map,omitempty"`
	// Mapper says it where Map cannot: it stands in its place.
	Mapper Mapper `json:"-"`
	// Filter hides the events for which it is false, of those that Predicates let
	// pass. (Where it is to be one of several, Predicates say so with "func".) The
	// cache has the object all the same.
	Filter Filter `json:"-"`
	// MetadataOnly keeps nothing but apiVersion, kind and metadata of the
	// objects, which saves memory. Not read in Manifest.For.
	MetadataOnly bool `json:"metadataOnly,omitempty"`
	// ControllerOnly passes over owners that do not control the object. Only read
	// in Manifest.Owns, and in Manifest.Watches with Map "owner".
	ControllerOnly bool `json:"controllerOnly,omitempty"`
	// Optional lets reconciling start before this watch has synced.
	Optional bool `json:"optional,omitempty"`
}

// Mapper returns the objects that an event of a watched object concerns: which
// of those that the module reconciles are to be looked at. It is asked for each
// event, so that a change that moves an object from one to another is to name
// both; look at Old and New. (Some events may be merged into one: then Old is
// that of the first.) Keys that no object has do no harm. After an error it is
// asked again later. ctx has the Cache, the settings and the log; it has no
// object, and its Client answers that it is not available here.
type Mapper func(ctx *Context, event WatchEvent) ([]ObjectKey, error)

// Filter reports whether an event is to be looked at at all. ctx is that of a
// Mapper.
type Filter func(ctx *Context, event WatchEvent) bool

// byFunc is the Map of a watch with a Mapper, and the predicate that stands for
// a Filter.
const byFunc = "func"

// described returns the watch as it stands in a manifest.
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

// WatchEventType says what happened to a watched object.
type WatchEventType string

// The types of a WatchEvent.
const (
	WatchListed  WatchEventType = "Listed"  // it was there when the watch started
	WatchUpdated WatchEventType = "Updated" // it was created or has changed
	WatchDeleted WatchEventType = "Deleted" // it is gone
)

// WatchEvent is one change of one watched object, as a Mapper and a Filter are
// given it.
type WatchEvent struct {
	Type WatchEventType
	// Group, Version and Kind are those of the watch.
	Group, Version, Kind string
	// Key names the object.
	Key ObjectKey
	// Old and New are the object before and after the change: views that are good
	// until the Mapper returns. One does not exist where the object was not known
	// before, or is gone.
	Old, New Object
}

// Object is the newest state that there is: New, or Old of an object that is
// gone.
func (e WatchEvent) Object() Object {
	if e.New.Exists() {
		return e.New
	}
	return e.Old
}

// watchEvent reads the Event that the run is about.
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

// keeps asks the Filters of the kind. An event that several watches are of is
// kept if one of them keeps it.
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
	if m.For != nil && ask(m.For) {
		return true
	}
	for _, list := range [][]Watch{m.Owns, m.Watches} {
		for i := range list {
			if ask(&list[i]) {
				return true
			}
		}
	}
	return !hidden
}

// hasMapper and hasFilter report whether a watch has one.
func (m *Manifest) hasMapper() bool {
	for i := range m.Watches {
		if m.Watches[i].Mapper != nil {
			return true
		}
	}
	return false
}

func (m *Manifest) hasFilter() bool {
	if m.For != nil && m.For.Filter != nil {
		return true
	}
	for _, list := range [][]Watch{m.Owns, m.Watches} {
		for i := range list {
			if list[i].Filter != nil {
				return true
			}
		}
	}
	return false
}
