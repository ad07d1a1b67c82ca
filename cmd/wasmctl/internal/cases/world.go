// SPDX-License-Identifier: Apache-2.0

package cases

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/host/kubeapi"
	"github.com/wasmctl/wasmctl/host/kubeapi/kinds"
	"github.com/wasmctl/wasmctl/internal/memapi"
)

// world is the cluster of one case, and the module's view of it. Only one goroutine uses it.
type world struct {
	c        *Case
	log      *slog.Logger
	manifest *abi.Manifest
	server   *memapi.Server
	client   *kubeapi.Client
	resolver *kinds.Resolver
	kind     kinds.Kind // the kind to reconcile
	policy   *kubeapi.Policy
	now      time.Time
	// intercept returns the fault for a request. If nil, the case's answers decide.
	intercept func(*memapi.Request) memapi.Fault
	asked     []int // the number of requests that each answer of the case has matched

	api   *kubeapi.API
	cache cache // the first watch is for kind
	// events are the events of the run, in the form of Expect.Events.
	events []string
}

// newWorld creates the cluster of a case.
func newWorld(ctx context.Context, c *Case, m *abi.Manifest, log *slog.Logger) (*world, error) {
	if m.For == nil {
		return nil, errors.New("the module's manifest does not name a kind to reconcile")
	}
	w := &world{c: c, log: log, manifest: m, now: c.at, asked: make([]int, len(c.Answers))}
	w.server = memapi.New(memapi.Config{Kinds: w.kinds(), Now: func() time.Time { return w.now }, Intercept: w.fault})
	if err := w.fill(); err != nil {
		return nil, err
	}
	return w, w.connect(ctx)
}

// fill adds the case's objects. Earlier runs own what they wrote: the object's status, and the
// applied objects.
func (w *world) fill() error {
	for _, o := range slices.Concat([]Object{w.c.Object}, w.c.Applied, w.c.Cluster) {
		u := unstructured.Unstructured{Object: o}
		kind, _ := w.server.Kind(u.GroupVersionKind())
		if field := kind.Unknown(o); field != "" {
			return fmt.Errorf("%s %s: its CRD has no field %s", u.GetKind(), u.GetName(), field)
		}
	}
	manager := "wasmctl/" + w.name()
	if w.c.Object != nil {
		if err := w.server.PutApplied(w.adopted(w.c.Object), manager, "status"); err != nil {
			return err
		}
	}
	for _, o := range w.c.Applied {
		if err := w.server.PutApplied(w.adopted(o), manager, ""); err != nil {
			return err
		}
	}
	for _, o := range w.c.Cluster {
		if err := w.server.Put(w.adopted(o)); err != nil {
			return err
		}
	}
	return nil
}

// adopted sets the UID of the reconciled object in owner references without one. Test cases need no
// UIDs.
func (w *world) adopted(object Object) map[string]any {
	o := (&unstructured.Unstructured{Object: object}).DeepCopy()
	owners := o.GetOwnerReferences()
	for i := range owners {
		if owners[i].UID != "" {
			continue
		}
		owners[i].UID = "00000000-0000-4000-8000-owner0000000"
		for _, is := range w.server.Objects() {
			is := unstructured.Unstructured{Object: is}
			if is.GetKind() == owners[i].Kind && is.GetName() == owners[i].Name && is.GetAPIVersion() == owners[i].APIVersion {
				owners[i].UID = is.GetUID()
			}
		}
	}
	if owners != nil {
		o.SetOwnerReferences(owners)
	}
	return o.Object
}

// kinds returns those of the file's CRDs, and a guess for each other kind of the manifest and of
// the objects that Kubernetes does not have.
func (w *world) kinds() []memapi.Kind {
	kinds := slices.Clone(w.c.file.kinds)
	known := memapi.New(memapi.Config{Kinds: kinds})
	guess := func(gvk schema.GroupVersionKind, namespaced bool) {
		if _, ok := known.Kind(gvk); ok || gvk.Kind == "" || gvk.Version == "" {
			return
		}
		kinds = append(kinds, memapi.GuessKind(gvk, namespaced))
		known = memapi.New(memapi.Config{Kinds: kinds})
	}
	for _, o := range slices.Concat([]Object{w.c.Object}, w.c.Applied, w.c.Cluster, w.c.Cache) {
		u := unstructured.Unstructured{Object: o}
		guess(u.GroupVersionKind(), u.GetNamespace() != "")
	}
	for _, watch := range slices.Concat([]abi.Watch{*w.manifest.For}, w.manifest.Owns, w.manifest.Watches) {
		guess(schema.GroupVersionKind{Group: watch.Group, Version: watch.Version, Kind: watch.Kind}, true)
	}
	return kinds
}

// connect gives the module its client, its policy and its watches.
func (w *world) connect(ctx context.Context) error {
	var err error
	if w.client, err = kubeapi.NewClient(&rest.Config{Host: "http://in-memory", Transport: w.server}); err != nil {
		return err
	}
	w.resolver = kinds.NewResolver(w.client, w.log)
	f := w.manifest.For
	if w.kind, err = w.resolver.ResolveGVK(ctx, schema.GroupVersionKind{Group: f.Group, Version: f.Version, Kind: f.Kind}); err != nil {
		return err
	}
	w.policy = kubeapi.NewModulePolicy(w.kind, f.Namespaces, w.manifest.Capabilities)
	if err := w.watch(*f, false); err != nil {
		return err
	}
	for _, owned := range w.manifest.Owns {
		owned.Map = abi.MapOwner
		if len(f.Namespaces) > 0 {
			owned.Namespaces = f.Namespaces // like wasmctl run
		}
		if err := w.watch(owned, true); err != nil {
			return err
		}
	}
	for _, other := range w.manifest.Watches {
		if err := w.watch(other, false); err != nil {
			return err
		}
	}
	if err := w.fillCache(); err != nil {
		return err
	}
	return w.open()
}

// watch adds a watch of the manifest. A missing kind is not watched: an optional one may be
// missing, and Load refuses others.
func (w *world) watch(of abi.Watch, owned bool) error {
	kind, ok := w.server.Kind(schema.GroupVersionKind{Group: of.Group, Version: of.Version, Kind: of.Kind})
	if !ok {
		return fmt.Errorf("watch[%s.%s]: unknown kind: name its CustomResourceDefinition in crds", of.Kind, of.Group)
	}
	selector, err := labels.Parse(of.LabelSelector)
	if err != nil {
		return fmt.Errorf("watch[%s]: labelSelector: %w", of.Kind, err)
	}
	w.cache.watches = append(w.cache.watches, &watch{Watch: of, kind: kind, selector: selector, owned: owned})
	return nil
}

// open creates the module's view of the cluster.
func (w *world) open() error {
	var err error
	w.api, err = kubeapi.New(kubeapi.Config{
		Client: w.client, Resolver: w.resolver, Controller: w.name(), Reconciled: w.kind, Policy: w.policy, Logger: w.log, Cache: &w.cache, Children: &w.cache,
	})
	return err
}

// restart creates the view again, like a new process: the memory of earlier runs is gone.
func (w *world) restart() error {
	if err := w.refresh(); err != nil {
		return err
	}
	return w.open()
}

// name returns the name of the controller.
func (w *world) name() string { return cmp.Or(w.manifest.Name, "module") }

// refresh updates the cache from the cluster, as watches do before a run that follows writes (rule
// 22 of ARCHITECTURE.md).
func (w *world) refresh() error { return w.cache.fill(w.server.Objects(), false) }

// fillCache fills the cache as the case specifies.
func (w *world) fillCache() error {
	objects := slices.DeleteFunc(w.server.Objects(), func(o map[string]any) bool {
		return slices.Contains(w.c.NotCached, nameOf(o))
	})
	for _, other := range w.c.Cache {
		content, err := w.completed(other)
		if err != nil {
			return fmt.Errorf("cache: %w", err)
		}
		at := slices.IndexFunc(objects, func(o map[string]any) bool { return nameOf(o) == nameOf(other) })
		if at < 0 {
			objects = append(objects, content)
			continue
		}
		objects[at] = content
	}
	return w.cache.fill(objects, len(w.c.NotCached) > 0)
}

// completed adds the fields that the API server sets: an older state of an object has the object's
// UID.
func (w *world) completed(object Object) (map[string]any, error) {
	other := memapi.New(memapi.Config{Kinds: w.kinds(), Now: func() time.Time { return w.now }})
	o := (&unstructured.Unstructured{Object: w.adopted(object)}).DeepCopy()
	for _, is := range w.server.Objects() {
		if nameOf(is) == nameOf(object) && o.GetUID() == "" {
			o.SetUID((&unstructured.Unstructured{Object: is}).GetUID())
		}
	}
	if o.GetResourceVersion() == "" {
		o.SetResourceVersion("50") // older than everything in the cluster
	}
	if err := other.Put(o.Object); err != nil {
		return nil, err
	}
	return other.Objects()[0], nil
}

// nameOf returns "v1/ConfigMap default/hello".
func nameOf(object map[string]any) string {
	o := unstructured.Unstructured{Object: object}
	key := abi.Key{Namespace: o.GetNamespace(), Name: o.GetName()}
	return memapi.GVKName(o.GroupVersionKind()) + " " + key.String()
}
