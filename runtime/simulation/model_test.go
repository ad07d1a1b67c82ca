// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/runtime/applier"
)

// run is one run as seen by the simulation.
type run struct {
	seq    int64     // when it started
	number int       // number among the runs of its key
	from   time.Time // when it started and ended, as seen by the runner
	to     time.Time
	guest  bool                       // the guest was called
	object *unstructured.Unstructured // as seen by the guest
	views  []view                     // the relations, as seen by the guest
	out    applier.Outcome
}

// view is what a run sees of one relation: the relevant part of each object that names its own. In the model, the last
// run of an object has seen the final state.
type view struct {
	epoch   int // 0: not yet watched
	objects map[abi.Key]string
}

// targets returns the affected objects. It is written independently of package queue.
func (c *ctrl) targets(spec string, o *unstructured.Unstructured) []abi.Key {
	var names []string
	switch spec {
	case "owner":
		for _, ref := range o.GetOwnerReferences() {
			if ref.Kind == c.spec.kind.Kind {
				names = append(names, ref.Name)
			}
		}
	case "func":
		name, _, _ := unstructured.NestedString(o.Object, "spec", "for")
		names = append(names, name)
	case "label:" + mapKey:
		names = append(names, o.GetLabels()[mapKey])
	case "annotation:" + mapKey:
		names = strings.Split(o.GetAnnotations()[mapKey], ",")
	}
	var keys []abi.Key
	for _, name := range names {
		key := abi.Key{Namespace: o.GetNamespace(), Name: strings.TrimSpace(name)}
		if ns, name, ok := strings.Cut(key.Name, "/"); ok {
			if !c.spec.kind.Namespaced {
				continue
			}
			key = abi.Key{Namespace: ns, Name: name}
		}
		if !c.spec.kind.Namespaced {
			key.Namespace = ""
		}
		if key.Name != "" && !slices.Contains(keys, key) {
			keys = append(keys, key)
		}
	}
	return keys
}

// filterValue is the value that the guest's filter uses.
func filterValue(o *unstructured.Unstructured) string {
	return fmt.Sprint(o.GetUID(), value(o), o.GetDeletionTimestamp() != nil)
}

// counts returns the part of an object that may not change without a run.
func counts(predicates []string, o *unstructured.Unstructured) string {
	if len(predicates) == 0 || slices.Contains(predicates, "resourceVersion") {
		return o.GetResourceVersion()
	}
	all := string(o.GetUID())
	for _, p := range predicates {
		switch p {
		case "generation":
			all += fmt.Sprint(" generation ", o.GetGeneration())
		case "labels":
			all += fmt.Sprint(" labels ", o.GetLabels())
		case "func":
			all += " " + filterValue(o)
		}
	}
	return all
}

func watched(namespaces []string, selector string, o *unstructured.Unstructured) bool {
	s, err := labels.Parse(selector)
	if err != nil {
		panic(err)
	}
	return (len(namespaces) == 0 || slices.Contains(namespaces, o.GetNamespace())) && s.Matches(labels.Set(o.GetLabels()))
}

// see returns what a run of key sees of the relations now: the response of cache_list for its guest. The caller must
// hold mu.
func (c *ctrl) see(key abi.Key) []view {
	views := make([]view, len(c.spec.relations))
	for i := range c.spec.relations {
		w := &c.spec.relations[i]
		views[i] = view{c.epochs[i], map[abi.Key]string{}}
		namespaces := w.namespaces
		if len(namespaces) == 0 {
			namespaces = []string{""}
		}
		for _, ns := range namespaces {
			list, _, _, err := c.cache.List(w.kind.GVR(), ns, "", nil, func(labels.Labels, []byte) bool { return true }, abi.Key{}, 1000)
			if err != nil {
				continue // the objects that will be listed lead to a run
			}
			for _, b := range list {
				if o := decode(b); slices.Contains(c.targets(w.spec, o), key) {
					views[i].objects[keyOf(o)] = counts(w.predicates, o)
					c.seen[sight{o.GetUID(), key}] = version(o)
				}
			}
		}
	}
	return views
}

// truth is what the last run of each key must have seen of a relation.
func (c *ctrl) truth(i int) map[abi.Key]map[abi.Key]string {
	w := &c.spec.relations[i]
	all := map[abi.Key]map[abi.Key]string{}
	for key, o := range c.api.All(w.kind) {
		if !watched(w.namespaces, w.selector, o) {
			continue
		}
		for _, target := range c.targets(w.spec, o) {
			if all[target] == nil {
				all[target] = map[abi.Key]string{}
			}
			all[target][key] = counts(w.predicates, o)
		}
	}
	return all
}

// unreconciled returns what is still to be reconciled, according to the model.
func (c *ctrl) unreconciled() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	var waits []string
	object := func(key abi.Key, format string, args ...any) {
		waits = append(waits, fmt.Sprintf("%s: %s: ", c.spec.name, key)+fmt.Sprintf(format, args...))
	}
	now := c.api.All(c.spec.kind)
	for key, o := range now {
		if !watched(c.spec.namespaces, c.spec.selector, o) {
			delete(now, key)
		}
	}
	for key, last := range c.last {
		if now[key] == nil {
			if why := c.missesDeletion(last); why != "" {
				object(key, "is gone, %s", why)
			}
		}
		if last.out.Action.Requeue {
			object(key, "asked for another run at %v", c.due[key].Sub(c.sim.begin))
		}
	}
	truths := make([]map[abi.Key]map[abi.Key]string, len(c.spec.relations))
	for i := range truths {
		truths[i] = c.truth(i)
	}
	for key, o := range now {
		last := c.last[key]
		if last == nil {
			object(key, "never ran")
			continue
		}
		if last.seq < c.requiredIf[key] {
			object(key, "has not run since all were triggered")
		}
		if why := c.misses(o, last); why != "" {
			object(key, "%s", why)
			continue
		}
		if !last.guest {
			continue
		}
		for i, truth := range truths {
			if why := c.missesRelated(i, &last.views[i], truth[key]); why != "" {
				object(key, "%s: %s", c.spec.relations[i].kind.Resource, why)
			}
		}
		if why := c.missesChildren(last); why != "" {
			object(key, "%s", why)
		}
	}
	for key, seq := range c.required {
		if last := c.last[key]; last == nil || last.seq < seq {
			object(key, "has not run since it was triggered")
		}
	}
	return waits
}

// gaveUp reports that a run has failed and that no other run is wanted before something changes.
func (r *run) gaveUp() bool {
	return r.out.Failed() && !r.out.Action.Requeue && r.out.DecidedBy != applier.DecidedByBackoff
}

// missesDeletion returns why a run is not the last one that a deleted object needs, or "" if it is.
func (c *ctrl) missesDeletion(last *run) string {
	switch {
	case last.out.Err == applier.ErrObjectNotFound: //nolint:errorlint // the applier gives it as it is
		return ""
	case c.spec.deletes && last.guest && last.object == nil && (last.out.Err == nil || last.gaveUp()):
		return ""
	}
	return fmt.Sprintf("and its last run does not know: %v", last.out.Err)
}

// misses returns what a run has missed of its object, or "" if nothing.
func (c *ctrl) misses(o *unstructured.Unstructured, last *run) string {
	err := last.out.Err
	deleting, finalizer := o.GetDeletionTimestamp() != nil, slices.Contains(o.GetFinalizers(), c.finalizerName())
	switch {
	case applier.Paused(o.GetAnnotations()[applier.PausedAnnotation]):
		if err != applier.ErrPaused { //nolint:errorlint // the applier gives it as it is
			return fmt.Sprintf("is paused, and its last run does not know: %v", err)
		}
		return ""
	case c.spec.finalizer && deleting && !finalizer:
		// The removal of its own finalizer may be hidden by the predicates.
		if err != applier.ErrDeleting && (err != nil || !last.out.Finalize) { //nolint:errorlint // the applier gives it as it is
			return fmt.Sprintf("is being deleted, and its last run does not know: %v", err)
		}
		return ""
	case !last.guest && last.out.Failed() && last.gaveUp(): // no guest was available, or no finalizer could be added
		return ""
	case !last.guest || last.object == nil:
		return fmt.Sprintf("is there, and its last run did not see it: %v", err)
	case counts(c.spec.predicates, o) != counts(c.spec.predicates, last.object):
		return fmt.Sprintf("is %q, and its last run saw %q", counts(c.spec.predicates, o), counts(c.spec.predicates, last.object))
	case last.out.Failed() && !last.gaveUp():
		return fmt.Sprintf("its last run failed: %v", err)
	case c.spec.finalizer && deleting && !last.gaveUp():
		return "its finalizer was not removed"
	case c.spec.finalizer && !finalizer && !last.gaveUp():
		return "it has no finalizer"
	}
	return ""
}

func (c *ctrl) missesRelated(i int, seen *view, truth map[abi.Key]string) string {
	if c.epochs[i] == 0 {
		return ""
	}
	if seen.epoch != c.epochs[i] {
		if len(truth) > 0 {
			return fmt.Sprintf("its last run was before the watch was added, and there is %v", truth)
		}
		return "" // no listed object names it
	}
	for key, state := range truth {
		if seen.objects[key] != state {
			return fmt.Sprintf("%s is %q, and its last run saw %q", key, state, seen.objects[key])
		}
	}
	for key, state := range seen.objects {
		if _, ok := truth[key]; !ok {
			return fmt.Sprintf("%s does not name it any longer, and its last run saw %q", key, state)
		}
	}
	return ""
}

// missesChildren compares the parts of an object with those that its last run saw.
func (c *ctrl) missesChildren(last *run) string {
	if c.spec.writes < writesChildren || last.out.Err != nil || last.object == nil || last.object.GetDeletionTimestamp() != nil {
		return ""
	}
	if c.epochs[0] != last.views[0].epoch {
		return "" // they were not watched all the time
	}
	owner := keyOf(last.object)
	all, want := c.api.All(parts), c.wants(last.object)
	for i := range maxChildren {
		key := childKey(c, owner, i)
		o := all[key]
		v, wanted := want[key]
		switch {
		case wanted && c.lostUnseen(key, owner):
		case o == nil && wanted:
			return fmt.Sprintf("child %s is missing", key)
		case o != nil && wanted && value(o) != v:
			return fmt.Sprintf("child %s has value %d, want %d", key, value(o), v)
		case o != nil && !wanted && controlledBy(o, last.object):
			return fmt.Sprintf("child %s is too many", key)
		}
	}
	return ""
}

// lostUnseen reports that a child no longer belongs to its owner, and that no run of the owner saw it when it last did:
// it was created, or came back, and was deleted or given away while the watch had a gap. That leaves no trace in the
// store, so the owner was not notified.
func (c *ctrl) lostUnseen(child, owner abi.Key) bool {
	since, over := c.api.Since(parts, child, func(o *unstructured.Unstructured) bool {
		return slices.Contains(c.targets("owner", o), owner)
	})
	return over && c.plot.mood > 0 && c.seen[sight{since.GetUID(), owner}] < version(since)
}

func controlledBy(o, owner *unstructured.Unstructured) bool {
	for _, ref := range o.GetOwnerReferences() {
		if ref.Controller != nil && *ref.Controller && ref.UID == owner.GetUID() {
			return true
		}
	}
	return false
}

func gvk(kind string) schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: group, Version: "v1", Kind: kind}
}

func compareKeys(a, b abi.Key) int { return strings.Compare(a.String(), b.String()) }
