package cases

import (
	"cmp"
	"context"
	"encoding/json"
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
	"github.com/wasmctl/wasmctl/cmd/wasmctl/internal/memapi"
	"github.com/wasmctl/wasmctl/host/kubeapi"
)

// world is the cluster of one case, and the module's view of it. One goroutine
// uses it.
type world struct {
	c        *Case
	log      *slog.Logger
	manifest *abi.Manifest
	server   *memapi.Server
	client   *kubeapi.Client
	resolver *kubeapi.Resolver
	kind     kubeapi.Kind // that is reconciled
	watches  []*watch     // the first is that of kind
	policy   *kubeapi.Policy
	now      time.Time
	// intercept says what goes wrong with a request; nil leaves it to the case's
	// answers.
	intercept func(*memapi.Request) memapi.Fault
	asked     []int // how many requests each of the case's answers has matched

	api   *kubeapi.API
	cache *cache
	// events are those of the run, as Expect.Events has them.
	events []string
}

// newWorld makes the cluster of a case.
func newWorld(ctx context.Context, c *Case, m *abi.Manifest, log *slog.Logger) (*world, error) {
	if m.For == nil {
		return nil, errors.New("the module's manifest does not say what kind it is for")
	}
	w := &world{c: c, log: log, manifest: m, now: c.at, asked: make([]int, len(c.Answers))}
	w.server = memapi.New(memapi.Config{Kinds: w.kinds(), Now: func() time.Time { return w.now }, Intercept: w.fault})
	if err := w.fill(); err != nil {
		return nil, err
	}
	return w, w.connect(ctx)
}

// fill puts the case's objects in. What the module's earlier runs have left is
// theirs: the object's status, and what was applied.
func (w *world) fill() error {
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

// adopted gives owner references to the reconciled object its uid, where they
// have none: nobody wants to write uids into a table.
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

// kinds are those of the file's CRDs, and a guess for each kind that is neither
// in them nor one of Kubernetes: of the manifest, and of the objects.
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
	w.resolver = kubeapi.NewResolver(w.client, w.log)
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
			owned.Namespaces = f.Namespaces // as wasmctl run has it
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
	if w.cache, err = w.cached(); err != nil {
		return err
	}
	return w.open()
}

// watch adds a watch of the manifest. A kind that is not there is not watched:
// an optional one may be missing, and Load refuses no other.
func (w *world) watch(of abi.Watch, owned bool) error {
	kind, ok := w.server.Kind(schema.GroupVersionKind{Group: of.Group, Version: of.Version, Kind: of.Kind})
	if !ok {
		return fmt.Errorf("watch[%s.%s]: the kind is not known: name its CustomResourceDefinition in crds", of.Kind, of.Group)
	}
	selector, err := labels.Parse(of.LabelSelector)
	if err != nil {
		return fmt.Errorf("watch[%s]: labelSelector: %w", of.Kind, err)
	}
	w.watches = append(w.watches, &watch{Watch: of, kind: kind, selector: selector, owned: owned})
	return nil
}

// open makes the module's view of the cluster.
func (w *world) open() error {
	var err error
	w.api, err = kubeapi.New(kubeapi.Config{
		Client: w.client, Resolver: w.resolver, Controller: w.name(), Policy: w.policy, Logger: w.log, Cache: current{w}, Children: current{w},
	})
	return err
}

// restart makes it anew, as a new process has it: what is remembered of earlier
// runs is gone.
func (w *world) restart() error {
	if err := w.refresh(); err != nil {
		return err
	}
	return w.open()
}

// name is that of the controller.
func (w *world) name() string { return cmp.Or(w.manifest.Name, "module") }

// refresh brings the cache up to the cluster, as the watches do before a run
// that comes after writes (rule 22 of ARCHITECTURE.md).
func (w *world) refresh() error {
	var err error
	w.cache, err = newCache(w.watches, w.server.Objects())
	return err
}

// cached is the cache as the case has it.
func (w *world) cached() (*cache, error) {
	objects := slices.DeleteFunc(w.server.Objects(), func(o map[string]any) bool {
		return slices.Contains(w.c.NotCached, nameOf(o))
	})
	for _, other := range w.c.Cache {
		content, err := w.completed(other)
		if err != nil {
			return nil, fmt.Errorf("cache: %w", err)
		}
		at := slices.IndexFunc(objects, func(o map[string]any) bool { return nameOf(o) == nameOf(other) })
		if at < 0 {
			objects = append(objects, content)
			continue
		}
		objects[at] = content
	}
	return newCache(w.watches, objects)
}

// completed fills in what the API server gives: an older state of an object has
// its uid.
func (w *world) completed(object Object) (map[string]any, error) {
	other := memapi.New(memapi.Config{Kinds: w.kinds(), Now: func() time.Time { return w.now }})
	o := (&unstructured.Unstructured{Object: w.adopted(object)}).DeepCopy()
	for _, is := range w.server.Objects() {
		if nameOf(is) == nameOf(object) && o.GetUID() == "" {
			o.SetUID((&unstructured.Unstructured{Object: is}).GetUID())
		}
	}
	if o.GetResourceVersion() == "" {
		o.SetResourceVersion("50") // before all that is in the cluster
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

// fault is memapi.Config.Intercept.
func (w *world) fault(r *memapi.Request) memapi.Fault {
	if w.intercept != nil {
		return w.intercept(r)
	}
	var fault memapi.Fault
	for i := range w.c.Answers {
		a := &w.c.Answers[i]
		if !a.matches(r) {
			continue
		}
		if w.asked[i]++; fault.Err == nil && (a.Nth == 0 || a.Nth == w.asked[i]) {
			fault = a.fault(r)
		}
	}
	return fault
}

// Call carries out an operation, and notes the events that are recorded.
func (w *world) Call(ctx context.Context, op abi.Op, req []byte) abi.Response {
	res := w.api.Call(ctx, op, req)
	if op != abi.OpEventRecord || res.Status != abi.StatusOK {
		return res
	}
	if e, _, err := abi.DecodeEventRequest(req); err == nil {
		w.events = append(w.events, fmt.Sprintf("%s %s %s", cmp.Or(e.Type, "Normal"), e.Reason, e.Note))
	}
	return res
}

// object returns the reconciled object as it is in the cluster now.
func (w *world) object(key abi.Key) map[string]any {
	for _, o := range w.server.Objects() {
		u := unstructured.Unstructured{Object: o}
		if u.GetKind() == w.kind.Kind && u.GroupVersionKind().Group == w.kind.Group && u.GetNamespace() == key.Namespace && u.GetName() == key.Name {
			return o
		}
	}
	return nil
}

// current is the cache as it is now.
type current struct{ w *world }

// Get implements kubeapi.Cache.
func (c current) Get(gvr schema.GroupVersionResource, key abi.Key) ([]byte, error) {
	return c.w.cache.Get(gvr, key)
}

// List implements kubeapi.Cache.
func (c current) List(gvr schema.GroupVersionResource, namespace string, selector labels.Selector, after abi.Key, limit int) ([][]byte, bool, abi.Key, error) {
	return c.w.cache.List(gvr, namespace, selector, after, limit)
}

// Children implements kubeapi.Children.
func (c current) Children(owner abi.Key, uid string, yield func(gvr schema.GroupVersionResource, child abi.Key, uid, resourceVersion string) bool) {
	c.w.cache.Children(owner, uid, yield)
}

// Declare implements applier.Cluster.
func (w *world) Declare(ctx context.Context, object []byte, d *abi.Declared) error {
	return w.api.Declare(ctx, kubeapi.Owner{Kind: w.kind, Object: object}, d)
}

// AddFinalizer implements applier.Cluster.
func (w *world) AddFinalizer(ctx context.Context, object []byte, finalizer string) ([]byte, error) {
	return w.api.AddFinalizer(ctx, w.kind, object, finalizer)
}

// RemoveFinalizer implements applier.Cluster.
func (w *world) RemoveFinalizer(ctx context.Context, object []byte, finalizer string) error {
	return w.api.RemoveFinalizer(ctx, w.kind, object, finalizer)
}

// Inspect implements applier.Cluster.
func (w *world) Inspect(_ context.Context, write abi.Write) ([]byte, error) {
	return json.Marshal(w.object(write.Key))
}
