// SPDX-License-Identifier: Apache-2.0

package guesttest

import (
	"slices"
	"strings"
	"time"

	wasmctl "github.com/wasmctl/wasmctl/guest-sdk/go"
)

// Run is one run that Host.Run has made.
type Run struct {
	Result
	// Ref is the object that was reconciled.
	Ref wasmctl.ObjectRef
}

// maxRuns is the number of runs after which Run fails the test, because the
// reconciler keeps changing objects.
const maxRuns = 1000

// retryDelay replaces the back-off of a host.
const retryDelay = time.Second

// Run reconciles as a host does until no work is left, and returns the runs in
// their order. The first Run starts with all objects of Manifest.For. Each Run
// starts with all changes since the previous one, and with the requeues and
// retries that are due (see Advance).
//
// Run maps changes to objects by Owns and Watches, calls Filters, and removes
// dependents of objects that are gone, as the garbage collector does. A change
// by a run can start another run: a reconciler that changes something in every
// run fails the test.
//
// Declarative predicates are ignored here, and objects run one at a time.
func (h *Host) Run(r wasmctl.Reconciler) []Run {
	h.t.Helper()
	h.manifest = r.Manifest
	if r.Manifest.For == nil {
		h.t.Fatalf("guesttest: the manifest needs For, the reconciled kind")
	}
	q := h.start()
	var runs []Run
	for {
		h.collectGarbage()
		changes := h.store.changes
		h.store.changes = nil
		for _, c := range changes {
			for _, ref := range h.concerned(r, c) {
				q.add(ref)
			}
		}
		ref, ok := q.next()
		if !ok {
			return runs
		}
		if !h.Get(ref).Exists() && !r.Manifest.For.Deletes {
			continue
		}
		if len(runs) == maxRuns {
			h.t.Fatalf("guesttest: still not settled after %d runs; the last was of %v: a run must write nothing once the object is up to date", maxRuns, ref)
		}
		result := h.Reconcile(r, ref)
		runs = append(runs, Run{Result: result, Ref: ref})
		h.reschedule(q, ref, result)
	}
}

// start returns the initial queue of a Run.
func (h *Host) start() *queue {
	q := &queue{}
	if !h.listed {
		h.listed = true
		h.store.changes = nil
		for _, at := range h.sorted(&request{id: id{group: h.manifest.For.Group, kind: h.manifest.For.Kind}}) {
			if covers(h.manifest.For, h.store.objects[at]) {
				q.add(refOf(h.store.objects[at]))
			}
		}
	}
	var late []wasmctl.ObjectRef
	for ref, at := range h.due {
		if !at.After(h.now) {
			late = append(late, ref)
			delete(h.due, ref)
		}
	}
	slices.SortFunc(late, func(a, b wasmctl.ObjectRef) int { return strings.Compare(a.String(), b.String()) })
	for _, ref := range late {
		q.add(ref)
	}
	return q
}

// reschedule records the time of a run that follows without a change.
func (h *Host) reschedule(q *queue, ref wasmctl.ObjectRef, result Result) {
	delete(h.due, ref)
	after, again := result.Action.Requeued()
	switch {
	case result.BackOff:
		h.due[ref] = h.now.Add(retryDelay)
	case again && after == 0:
		q.add(ref)
	case again:
		h.due[ref] = h.now.Add(after)
	}
}

// concerned returns the objects that a change reconciles.
func (h *Host) concerned(r wasmctl.Reconciler, c change) []wasmctl.ObjectRef {
	h.t.Helper()
	m := r.Manifest
	var refs []wasmctl.ObjectRef
	add := func(keys ...wasmctl.ObjectKey) {
		for _, k := range keys {
			if ref, ok := h.reconciled(k); ok {
				refs = append(refs, ref)
			}
		}
	}
	if h.sees(r, m.For, c) {
		add(wasmctl.ObjectKey{Namespace: c.at.namespace, Name: c.at.name})
	}
	for i := range m.Owns {
		if h.sees(r, &m.Owns[i], c) {
			add(h.owners(c, m.Owns[i].ControllerOnly)...)
		}
	}
	for i := range m.Watches {
		if w := &m.Watches[i]; h.sees(r, w, c) {
			add(h.mapped(r, w, c)...)
		}
	}
	return refs
}

// sees reports whether a watch covers the change and its Filters accept it.
func (h *Host) sees(r wasmctl.Reconciler, w *wasmctl.Watch, c change) bool {
	if w.Group != c.at.group || w.Kind != c.at.kind {
		return false
	}
	before, after := c.old != nil && covers(w, c.old), c.new != nil && covers(w, c.new)
	return (before || after) && (w.Filter == nil || h.Filter(r, h.watchEvent(c)))
}

func (h *Host) watchEvent(c change) wasmctl.WatchEvent {
	return wasmctl.WatchEvent{Old: h.object(c.old), New: h.object(c.new)}
}

// reconciled returns the reference of an object of Manifest.For. It returns
// false if the object does not exist, unless Deletes asks for calls without an
// object.
func (h *Host) reconciled(k wasmctl.ObjectKey) (wasmctl.ObjectRef, bool) {
	w := h.manifest.For
	if h.store.clusterScoped[w.Kind] {
		k.Namespace = ""
	}
	if obj, ok := h.store.objects[id{w.Group, w.Kind, k.Namespace, k.Name}]; ok {
		return refOf(obj), covers(w, obj)
	}
	apiVersion := w.Version
	if w.Group != "" {
		apiVersion = w.Group + "/" + w.Version
	}
	return k.Ref(apiVersion, w.Kind), w.Deletes
}

// mapped returns the objects that Watch.Map or the Mapper selects for both
// states of the object.
func (h *Host) mapped(r wasmctl.Reconciler, w *wasmctl.Watch, c change) []wasmctl.ObjectKey {
	h.t.Helper()
	if w.Mapper != nil {
		keys, err := h.Map(r, h.watchEvent(c))
		if err != nil {
			h.t.Fatalf("guesttest: map of %s %s: %v", c.at.kind, c.at.name, err)
		}
		return keys
	}
	how, key, _ := strings.Cut(w.Map, ":")
	if how == "owner" {
		return h.owners(c, w.ControllerOnly)
	}
	var keys []wasmctl.ObjectKey
	for _, obj := range []map[string]any{c.old, c.new} {
		value := str(obj, "metadata", how+"s", key)
		if value == "" {
			continue
		}
		namespace, name, found := strings.Cut(value, "/")
		if !found || how == "label" {
			namespace, name = c.at.namespace, value
		}
		keys = append(keys, wasmctl.ObjectKey{Namespace: namespace, Name: name})
	}
	return keys
}

// owners returns the owners in both states of the object (rule 24).
func (h *Host) owners(c change, controllerOnly bool) []wasmctl.ObjectKey {
	var keys []wasmctl.ObjectKey
	for _, obj := range []map[string]any{c.old, c.new} {
		for _, m := range ownerRefs(obj) {
			group, _ := groupVersion(str(m, "apiVersion"))
			if group == h.manifest.For.Group && str(m, "kind") == h.manifest.For.Kind && (!controllerOnly || m["controller"] == true) {
				keys = append(keys, wasmctl.ObjectKey{Namespace: c.at.namespace, Name: str(m, "name")})
			}
		}
	}
	return keys
}

// collectGarbage removes the objects whose owners are all gone.
func (h *Host) collectGarbage() {
	for found := true; found; {
		found = false
		for at, obj := range h.store.objects {
			refs := ownerRefs(obj)
			alive := slices.ContainsFunc(refs, func(ref map[string]any) bool { return !h.store.gone[str(ref, "uid")] })
			if len(refs) == 0 || alive {
				continue
			}
			if len(finalizers(obj)) == 0 {
				h.store.remove(at)
				found = true
			} else if str(obj, "metadata", "deletionTimestamp") == "" {
				h.Delete(refOf(obj))
			}
		}
	}
}

// queue holds the objects to run, each once, in the order of their arrival.
type queue struct{ refs []wasmctl.ObjectRef }

func (q *queue) add(ref wasmctl.ObjectRef) {
	if !slices.Contains(q.refs, ref) {
		q.refs = append(q.refs, ref)
	}
}

func (q *queue) next() (ref wasmctl.ObjectRef, ok bool) {
	if len(q.refs) == 0 {
		return ref, false
	}
	ref, q.refs = q.refs[0], q.refs[1:]
	return ref, true
}
