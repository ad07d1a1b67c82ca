// SPDX-License-Identifier: Apache-2.0

// Package fake has a client over an in-memory cluster, for unit tests. The
// client is that of a module. The cluster stores, numbers and refuses objects
// as the fake of controller-runtime does. It neither validates objects nor sets
// defaults.
package fake

import (
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/managedfields"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/testing"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/internal/kinds"
	"sigs.k8s.io/controller-runtime/pkg/internal/rest"
)

// NewFakeClient returns a client with client-go's scheme and the given objects.
func NewFakeClient(initObjs ...runtime.Object) client.WithWatch {
	return NewClientBuilder().WithRuntimeObjects(initObjs...).Build()
}

// NewFakeClientWithScheme returns a client with the given scheme and objects,
// in version 0.15.
func NewFakeClientWithScheme(scheme *runtime.Scheme, initObjs ...runtime.Object) client.WithWatch {
	return NewClientBuilder().WithScheme(scheme).WithRuntimeObjects(initObjs...).Build()
}

// ClientBuilder builds a client.
type ClientBuilder struct {
	scheme      *runtime.Scheme
	mapper      meta.RESTMapper
	objects     []runtime.Object
	status      []client.Object
	tracker     testing.ObjectTracker
	converters  []managedfields.TypeConverter
	indexes     indexes
	funcs       *interceptor.Funcs
	showManaged bool
	counter     *uint64
	built       bool
}

// NewClientBuilder returns a builder for a client without objects.
func NewClientBuilder() *ClientBuilder { return &ClientBuilder{indexes: indexes{}} }

// WithScheme sets the scheme. The default is client-go's.
func (b *ClientBuilder) WithScheme(scheme *runtime.Scheme) *ClientBuilder {
	b.scheme = scheme
	return b
}

// WithRESTMapper sets the mapper. The default is the mapper of a module, which
// guesses from the scheme.
func (b *ClientBuilder) WithRESTMapper(restMapper meta.RESTMapper) *ClientBuilder {
	b.mapper = restMapper
	return b
}

// WithObjects adds objects. Those without a resourceVersion get "999".
func (b *ClientBuilder) WithObjects(initObjs ...client.Object) *ClientBuilder {
	for _, o := range initObjs {
		b.objects = append(b.objects, o)
	}
	return b
}

// WithLists adds the objects of lists.
func (b *ClientBuilder) WithLists(initLists ...client.ObjectList) *ClientBuilder {
	for _, l := range initLists {
		b.objects = append(b.objects, l)
	}
	return b
}

// WithRuntimeObjects adds objects and the objects of lists.
func (b *ClientBuilder) WithRuntimeObjects(initRuntimeObjs ...runtime.Object) *ClientBuilder {
	b.objects = append(b.objects, initRuntimeObjs...)
	return b
}

// WithObjectTracker stores the objects in the given tracker of client-go. It
// cannot be combined with WithTypeConverters.
func (b *ClientBuilder) WithObjectTracker(ot testing.ObjectTracker) *ClientBuilder {
	b.tracker = ot
	return b
}

// WithIndex adds an index, which field selectors of lists can use. It panics if
// the index already exists.
func (b *ClientBuilder) WithIndex(obj runtime.Object, field string, extractValue client.IndexerFunc) *ClientBuilder {
	if err := b.indexes.add(obj, b.schemeOrDefault(), field, extractValue); err != nil {
		panic(err)
	}
	return b
}

// WithStatusSubresource makes the status of these kinds a subresource, so that
// other writes do not change it. For built-in kinds with a status subresource,
// this is the default.
func (b *ClientBuilder) WithStatusSubresource(o ...client.Object) *ClientBuilder {
	b.status = append(b.status, o...)
	return b
}

// WithInterceptorFuncs sets functions that intercept the client's methods.
func (b *ClientBuilder) WithInterceptorFuncs(interceptorFuncs interceptor.Funcs) *ClientBuilder {
	b.funcs = &interceptorFuncs
	return b
}

// WithTypeConverters sets the type information for server-side apply; the first
// converter that knows a type is used. By default, the types of Kubernetes are
// known, and each list of another kind is a single value.
func (b *ClientBuilder) WithTypeConverters(typeConverters ...managedfields.TypeConverter) *ClientBuilder {
	b.converters = append(b.converters, typeConverters...)
	return b
}

// WithReturnManagedFields preserves metadata.managedFields in the answers.
func (b *ClientBuilder) WithReturnManagedFields() *ClientBuilder {
	b.showManaged = true
	return b
}

// WithGlobalResourceVersionCounter uses one version counter for all objects, as
// an API server does. The first version is 1.
func (b *ClientBuilder) WithGlobalResourceVersionCounter() *ClientBuilder {
	b.counter = new(uint64)
	return b
}

func (b *ClientBuilder) schemeOrDefault() *runtime.Scheme {
	if b.scheme == nil {
		return clientgoscheme.Scheme
	}
	return b.scheme
}

// Build returns the client. It panics if it is called a second time, or if an
// object cannot be added.
func (b *ClientBuilder) Build() client.WithWatch {
	if b.built {
		panic(errors.New("fake: Build was called twice; make a builder for each client"))
	}
	b.built = true
	s, err := b.server()
	if err != nil {
		panic(fmt.Errorf("fake: %w", err))
	}
	if b.mapper == nil {
		b.mapper = kinds.NewMapper(b.schemeOrDefault())
	}
	c, err := client.New(rest.For(s.client), client.Options{Scheme: b.schemeOrDefault(), Mapper: b.mapper})
	if err != nil {
		panic(err)
	}
	var w client.WithWatch = &fakeClient{c, s}
	if b.funcs != nil {
		w = interceptor.NewClient(w, *b.funcs)
	}
	return w
}

// server returns the cluster with the initial objects.
func (b *ClientBuilder) server() (*server, error) {
	if b.tracker != nil && len(b.converters) > 0 {
		return nil, errors.New("WithObjectTracker and WithTypeConverters exclude each other: the converters are the tracker's")
	}
	s := newServer(b.schemeOrDefault(), b.converters)
	s.indexes, s.showManaged, s.counter = b.indexes, b.showManaged, b.counter
	if b.tracker != nil {
		s.tracker, s.owns = b.tracker, false
	}
	for _, o := range b.status {
		gvk, err := apiutil.GVKForObject(o, s.given)
		if err != nil {
			return nil, err
		}
		s.hasStatus[gvk] = true
	}
	for _, o := range b.objects {
		if err := s.seed(o); err != nil {
			return nil, err
		}
	}
	return s, nil
}
