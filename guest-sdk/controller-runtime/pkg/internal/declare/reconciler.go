// SPDX-License-Identifier: Apache-2.0

package declare

import (
	"context"
	"errors"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	wasmctl "github.com/wasmctl/wasmctl/guest-sdk/go"

	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/internal/kinds"
	"sigs.k8s.io/controller-runtime/pkg/internal/run"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// planner makes the manifest of one controller.
type planner struct {
	c      *Controller
	scheme *runtime.Scheme
	m      wasmctl.Manifest

	mapped map[schema.GroupKind][]watched // watches whose events the module maps
	order  []schema.GroupKind
}

// watched is a Watch with its kind.
type watched struct {
	Watch
	gvk schema.GroupVersionKind
}

// Reconciler returns the reconciler of the controller.
func (c *Controller) Reconciler(scheme *runtime.Scheme) (wasmctl.Reconciler, error) {
	p := planner{c: c, scheme: scheme, mapped: map[schema.GroupKind][]watched{}}
	p.m.Name, p.m.Concurrency = c.Name, c.Concurrency
	if err := p.plan(); err != nil {
		return wasmctl.Reconciler{}, fmt.Errorf("controller[%s]: %w", c.Name, err)
	}
	return wasmctl.Reconciler{Manifest: p.m, Reconcile: newRunner(c).reconcile}, nil
}

func (p *planner) plan() error {
	all := make([]watched, 0, len(p.c.Watches))
	for _, w := range p.c.Watches {
		gvk, err := apiutil.GVKForObject(w.Object, p.scheme)
		if err != nil {
			return err
		}
		all = append(all, watched{w, gvk})
	}
	own := slices.IndexFunc(all, enqueuesItself)
	if own < 0 {
		own = slices.IndexFunc(all, isLikelyOwn)
	}
	if own < 0 && len(all) == 1 && !isOwner(all[0]) {
		own = 0
	}
	if own < 0 {
		return errors.New("it has no kind of its own: a module reconciles objects of one kind; name it by For(...), " +
			"or watch it with &handler.EnqueueRequestForObject{}")
	}
	w := all[own].watch()
	w.Deletes, w.MetadataOnly, w.Optional = true, false, false
	if !enqueuesItself(all[own]) {
		w.Filter = all[own].enqueues(w.Filter)
	}
	p.m.For = &w
	for _, w := range slices.Delete(all, own, own+1) {
		p.add(w)
	}
	for _, gk := range p.order {
		p.m.Watches = append(p.m.Watches, mapping(p.mapped[gk]))
	}
	return nil
}

// enqueuesItself reports whether events of a kind reconcile the object itself.
func enqueuesItself(w watched) bool {
	_, ok := w.Handler.(*handler.EnqueueRequestForObject)
	return ok
}

// isLikelyOwn reports whether a controller may reconcile a kind that it watches
// with a custom handler: it must not be a built-in kind.
func isLikelyOwn(w watched) bool {
	return !isOwner(w) && !kinds.OfKubernetes(w.gvk.Group)
}

// isOwner reports whether events of a kind reconcile the owners of the object.
func isOwner(w watched) bool {
	_, _, owner := handler.Owner(w.Handler)
	return owner
}

// enqueues returns a filter for events for which the program's handler enqueues
// the event's own object. It calls the filter before first.
func (w watched) enqueues(before wasmctl.Filter) wasmctl.Filter {
	return func(c *wasmctl.Context, e wasmctl.WatchEvent) bool {
		if before != nil && !before(c, e) {
			return false
		}
		ctx, leave := run.Enter(context.Background(), c)
		defer leave()
		ch, err := read(e, w.Object, w.gvk)
		return err != nil || slices.Contains(ch.handle(ctx, w.Handler), reconcile.Request{NamespacedName: types.NamespacedName(e.Key)})
	}
}

// add adds a watch to the declared watches or to those that the module maps.
// The host refuses a namespaced owner of cluster-scoped objects, which has no
// effect in a native program. The scope of the owner is unknown during the
// build, so these watches are mapped.
func (p *planner) add(w watched) {
	owner, controller, ok := handler.Owner(w.Handler)
	if ok && owner.Kind == p.m.For.Kind && owner.Group == p.m.For.Group && !kinds.ClusterScoped(w.gvk.GroupKind()) {
		o := w.watch()
		o.ControllerOnly = controller
		p.m.Owns = append(p.m.Owns, o)
		return
	}
	gk := w.gvk.GroupKind()
	if p.mapped[gk] == nil {
		p.order = append(p.order, gk)
	}
	p.mapped[gk] = append(p.mapped[gk], w)
}

// watch returns the watch in the manifest, with its predicates.
func (w watched) watch() wasmctl.Watch {
	out := wasmctl.Watch{
		Group: w.gvk.Group, Version: w.gvk.Version, Kind: w.gvk.Kind, MetadataOnly: w.metadataOnly(),
		Optional: kinds.MayLack(w.gvk.GroupKind()),
	}
	names, rest := split(w.Predicates)
	if len(rest) > 0 {
		out.Filter = func(c *wasmctl.Context, e wasmctl.WatchEvent) bool {
			_, leave := run.Enter(context.Background(), c)
			defer leave()
			ch, err := read(e, w.Object, w.gvk)
			return err != nil || ch.passes(rest)
		}
	}
	out.Predicates = names
	return out
}

func (w watched) metadataOnly() bool {
	_, ok := w.Object.(*metav1.PartialObjectMetadata)
	return ok
}

// split returns elements for the predicates that the host knows, and the other
// predicates. An event must pass all of them.
func split(list []predicate.Predicate) (elements []string, rest []predicate.Predicate) {
	var known []predicate.Predicate
	for _, p := range list {
		for _, c := range predicate.Conjuncts(p) {
			if _, ok := predicate.Element(c); ok {
				known = append(known, c)
			} else {
				rest = append(rest, c)
			}
		}
	}
	switch len(known) {
	case 0:
	case 1:
		e, _ := predicate.Element(known[0])
		elements = []string{e}
	default:
		e, _ := predicate.Element(predicate.And(known...))
		elements = []string{e}
	}
	return elements, rest
}

// mapping returns the watch of a kind whose events the module maps. The
// manifest has one watch for each kind, so the predicates of several watches
// are evaluated here.
func mapping(list []watched) wasmctl.Watch {
	one := len(list) == 1
	out := list[0].watch()
	if !one {
		out.Predicates, out.Filter = nil, nil
		out.MetadataOnly = !slices.ContainsFunc(list, func(w watched) bool { return !w.metadataOnly() })
	}
	out.Mapper = func(c *wasmctl.Context, e wasmctl.WatchEvent) ([]wasmctl.ObjectKey, error) {
		ctx, leave := run.Enter(context.Background(), c)
		defer leave()
		var keys []wasmctl.ObjectKey
		for _, w := range list {
			ch, err := read(e, w.Object, w.gvk)
			if err != nil {
				return nil, err
			}
			if !one && !ch.passes(w.Predicates) {
				continue
			}
			for _, r := range ch.handle(ctx, w.Handler) {
				keys = append(keys, wasmctl.ObjectKey(r.NamespacedName))
			}
		}
		return keys, nil
	}
	return out
}

// Kinds returns the kinds that the controller watches. The value is true for a
// watch of metadata only.
func Kinds(m *wasmctl.Manifest) map[schema.GroupVersionKind]bool {
	out := map[schema.GroupVersionKind]bool{}
	for _, w := range slices.Concat([]wasmctl.Watch{*m.For}, m.Owns, m.Watches) {
		gvk := schema.GroupVersionKind{Group: w.Group, Version: w.Version, Kind: w.Kind}
		metadataOnly, known := out[gvk]
		out[gvk] = w.MetadataOnly && (metadataOnly || !known)
	}
	return out
}
