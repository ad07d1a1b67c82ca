// SPDX-License-Identifier: Apache-2.0

package store

import (
	"context"
	"encoding/json"
	"net/http"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metainternalversion "k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/wasmctl/wasmctl/runtime/reflector"
)

// reader is a filled store that is read like a reconcile reads it: the caller owns the result.
type reader interface {
	// get reads one object.
	get(namespace, name string)
	// list reads the objects with these labels, and returns their number.
	list(with map[string]string) int
}

// peer is a store to compare.
type peer struct {
	name string
	// fill returns a store with the objects that next returns, as JSON, until it returns nil.
	fill func(tb testing.TB, next func() []byte) reader
}

// peers are wasmctl's store, and controller-runtime's cache in its usual configurations. Stripped ones drop
// managedFields, like wasmctl.
func peers() []peer {
	fill := func(unstructured, strip bool) func(testing.TB, func() []byte) reader {
		return func(tb testing.TB, next func() []byte) reader { return fillCache(tb, next, unstructured, strip) }
	}
	return []peer{
		{"wasmctl", fillStore},
		{"typed", fill(false, false)},
		{"typed-stripped", fill(false, true)},
		{"unstructured", fill(true, false)},
		{"unstructured-stripped", fill(true, true)},
	}
}

// packed is wasmctl's store. Objects are copied into buf, as into a guest's memory.
type packed struct {
	store *reflector.Store
	buf   []byte
}

func fillStore(tb testing.TB, next func() []byte) reader {
	w := reflector.NewWriter()
	for text := next(); text != nil; text = next() {
		u := &unstructured.Unstructured{}
		if err := u.UnmarshalJSON(text); err != nil {
			tb.Fatal(err)
		}
		o, err := reflector.Pack(u.Object, reflector.Options{})
		if err != nil {
			tb.Fatal(err)
		}
		w.Apply(o, func(reflector.Event) {})
	}
	return &packed{store: w.Store()}
}

func (p *packed) get(namespace, name string) {
	p.buf = append(p.buf[:0], p.store.Get(reflector.ObjectRef{Namespace: namespace, Name: name}).Msgpack()...)
}

func (p *packed) list(with map[string]string) (n int) {
	selector := labels.SelectorFromSet(with)
	p.buf = p.buf[:0]
	for o := range p.store.Scan("", reflector.ObjectRef{}) {
		if selector.Matches(o.Labels()) {
			p.buf = append(p.buf, o.Msgpack()...)
			n++
		}
	}
	return n
}

// cached is controller-runtime's cache of pods.
type cached struct {
	tb           testing.TB
	reader       client.Reader
	unstructured bool
}

// object returns a new pod to read into.
func (c *cached) object() client.Object {
	if !c.unstructured {
		return &corev1.Pod{}
	}
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(podKind)
	return u
}

func (c *cached) get(namespace, name string) {
	if err := c.reader.Get(c.tb.Context(), client.ObjectKey{Namespace: namespace, Name: name}, c.object()); err != nil {
		c.tb.Fatal(err)
	}
}

func (c *cached) list(with map[string]string) int {
	var list client.ObjectList = &corev1.PodList{}
	if c.unstructured {
		u := &unstructured.UnstructuredList{}
		u.SetGroupVersionKind(podKind.GroupVersion().WithKind("PodList"))
		list = u
	}
	if err := c.reader.List(c.tb.Context(), list, client.MatchingLabels(with)); err != nil {
		c.tb.Fatal(err)
	}
	return meta.LenList(list)
}

var podKind = corev1.SchemeGroupVersion.WithKind("Pod")

// fillCache creates controller-runtime's cache, and starts it with an informer that lists the objects without an API
// server.
func fillCache(tb testing.TB, next func() []byte, asUnstructured, strip bool) reader {
	tb.Helper()
	scheme := runtime.NewScheme()
	if err := corev1.AddToScheme(scheme); err != nil {
		tb.Fatal(err)
	}
	mapper := meta.NewDefaultRESTMapper(nil)
	mapper.Add(podKind, meta.RESTScopeNamespace)
	opts := cache.Options{Scheme: scheme, Mapper: mapper, HTTPClient: http.DefaultClient, NewInformer: informerOf(next, asUnstructured)}
	if strip {
		opts.DefaultTransform = cache.TransformStripManagedFields()
	}
	c, err := cache.New(&rest.Config{Host: "127.0.0.1"}, opts)
	if err != nil {
		tb.Fatal(err)
	}
	r := &cached{tb, c, asUnstructured}
	if _, err := c.GetInformer(tb.Context(), r.object(), cache.BlockUntilSynced(false)); err != nil {
		tb.Fatal(err)
	}
	ctx, cancel := context.WithCancel(tb.Context())
	ended := make(chan error, 1)
	go func() { ended <- c.Start(ctx) }()
	tb.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			tb.Error(err)
		}
	})
	if !c.WaitForCacheSync(ctx) {
		tb.Fatal("the cache did not sync")
	}
	return r
}

// informerOf returns a constructor of an informer of the objects.
func informerOf(next func() []byte, asUnstructured bool) func(toolscache.ListerWatcher, runtime.Object, time.Duration, toolscache.Indexers) toolscache.SharedIndexInformer {
	return func(_ toolscache.ListerWatcher, example runtime.Object, resync time.Duration, indexers toolscache.Indexers) toolscache.SharedIndexInformer {
		return toolscache.NewSharedIndexInformer(lister{&toolscache.ListWatch{
			ListWithContextFunc: func(context.Context, metav1.ListOptions) (runtime.Object, error) {
				list := &metainternalversion.List{ListMeta: metav1.ListMeta{ResourceVersion: "1"}}
				for text := next(); text != nil; text = next() {
					o, err := decode(text, asUnstructured)
					if err != nil {
						return nil, err
					}
					list.Items = append(list.Items, o)
				}
				return list, nil
			},
			WatchFuncWithContext: func(context.Context, metav1.ListOptions) (watch.Interface, error) { return watch.NewFake(), nil },
		}}, example, resync, indexers)
	}
}

// lister does not support streamed lists.
type lister struct{ *toolscache.ListWatch }

// IsWatchListSemanticsUnSupported is called by client-go.
func (lister) IsWatchListSemanticsUnSupported() bool { return true }

// decode decodes an object like a client: typed ones of built-in kinds come as protobuf.
func decode(text []byte, asUnstructured bool) (runtime.Object, error) {
	if asUnstructured {
		u := &unstructured.Unstructured{}
		return u, u.UnmarshalJSON(text)
	}
	var sent, pod corev1.Pod
	if err := json.Unmarshal(text, &sent); err != nil {
		return nil, err
	}
	wire, err := sent.Marshal()
	if err != nil {
		return nil, err
	}
	return &pod, pod.Unmarshal(wire)
}
