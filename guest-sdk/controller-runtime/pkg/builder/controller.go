// SPDX-License-Identifier: Apache-2.0

// Package builder builds controllers.
package builder

import (
	"errors"
	"fmt"
	"strings"

	"github.com/go-logr/logr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"
)

// Builder builds a controller.
type Builder = TypedBuilder[reconcile.Request]

// TypedBuilder is a Builder for a type of request.
type TypedBuilder[request comparable] struct {
	mgr     manager.Manager
	name    string
	object  client.Object // kind given to For
	gvk     schema.GroupVersionKind
	inputs  []input[request]
	sources []source.TypedSource[request]
	filters []predicate.Predicate
	options controller.TypedOptions[request]
	err     error // the first mistake
}

// input is one call of For, Owns or Watches.
type input[request comparable] struct {
	settings
	object client.Object
	handle handler.TypedEventHandler[client.Object, request] // if nil, the owner is enqueued
}

// ControllerManagedBy returns a builder for a controller of the manager.
func ControllerManagedBy(m manager.Manager) *Builder {
	return TypedControllerManagedBy[reconcile.Request](m)
}

// TypedControllerManagedBy is ControllerManagedBy for a type of request.
func TypedControllerManagedBy[request comparable](m manager.Manager) *TypedBuilder[request] {
	return &TypedBuilder[request]{mgr: m}
}

func (b *TypedBuilder[request]) fail(err error) {
	if b.err == nil {
		b.err = err
	}
}

// For sets the kind to reconcile.
func (b *TypedBuilder[request]) For(object client.Object, opts ...ForOption) *TypedBuilder[request] {
	in := ForInput{}
	for _, opt := range opts {
		opt.ApplyToFor(&in)
	}
	h, ok := any(&handler.EnqueueRequestForObject{}).(handler.TypedEventHandler[client.Object, request])
	switch {
	case b.object != nil:
		b.fail(errors.New("builder: For was called twice; a controller reconciles one kind"))
	case !ok:
		b.fail(fmt.Errorf("builder: For needs requests of reconcile.Request, not of %T", *new(request)))
	}
	b.object = object
	b.inputs = append([]input[request]{{in.settings, object, h}}, b.inputs...)
	return b
}

// Owns makes changes of objects of a kind reconcile the object that owns them.
func (b *TypedBuilder[request]) Owns(object client.Object, opts ...OwnsOption) *TypedBuilder[request] {
	in := OwnsInput{}
	for _, opt := range opts {
		opt.ApplyToOwns(&in)
	}
	b.inputs = append(b.inputs, input[request]{in.settings, object, nil})
	return b
}

// Watches adds a kind. For a change, the handler selects the objects to
// reconcile.
func (b *TypedBuilder[request]) Watches(object client.Object, h handler.TypedEventHandler[client.Object, request], opts ...WatchesOption) *TypedBuilder[request] {
	in := WatchesInput[request]{}
	for _, opt := range opts {
		opt.ApplyToWatches(&in)
	}
	if h == nil {
		b.fail(fmt.Errorf("builder: Watches(%T) has no handler", object))
	}
	b.inputs = append(b.inputs, input[request]{in.settings, object, h})
	return b
}

// WatchesMetadata is Watches, but only for metadata.
func (b *TypedBuilder[request]) WatchesMetadata(object client.Object, h handler.TypedEventHandler[client.Object, request], opts ...WatchesOption) *TypedBuilder[request] {
	return b.Watches(object, h, append(opts, OnlyMetadata)...)
}

// WithEventFilter adds a predicate for the events of all watches.
func (b *TypedBuilder[request]) WithEventFilter(p predicate.Predicate) *TypedBuilder[request] {
	b.filters = append(b.filters, p)
	return b
}

// WithOptions sets the options of the controller.
func (b *TypedBuilder[request]) WithOptions(options controller.TypedOptions[request]) *TypedBuilder[request] {
	b.options = options
	return b
}

// WithLogConstructor sets the function that returns the logger of a run.
func (b *TypedBuilder[request]) WithLogConstructor(f func(*request) logr.Logger) *TypedBuilder[request] {
	b.options.LogConstructor = f
	return b
}

// Named names the controller. Without it, the name is the kind of For in lower
// case.
func (b *TypedBuilder[request]) Named(name string) *TypedBuilder[request] {
	b.name = name
	return b
}

// Complete is Build for programs that do not need the controller.
func (b *TypedBuilder[request]) Complete(r reconcile.TypedReconciler[request]) error {
	_, err := b.Build(r)
	return err
}

// Build makes the controller and adds it to the manager.
func (b *TypedBuilder[request]) Build(r reconcile.TypedReconciler[request]) (controller.TypedController[request], error) {
	if err := b.check(r); err != nil {
		return nil, err
	}
	if b.options.Reconciler == nil {
		b.options.Reconciler = r
	}
	b.shareConcurrency()
	c, err := controller.NewTyped(b.name, b.mgr, b.options)
	if err != nil {
		return nil, err
	}
	sources, err := b.kinds()
	if err != nil {
		return nil, err
	}
	for _, src := range append(sources, b.sources...) {
		if err := b.watch(c, src); err != nil {
			return nil, err
		}
	}
	return c, nil
}

// check finds mistakes, and sets the kind of For and the name.
func (b *TypedBuilder[request]) check(r reconcile.TypedReconciler[request]) error {
	switch {
	case r == nil:
		return errors.New("builder: the reconciler is nil")
	case b.mgr == nil:
		return errors.New("builder: the manager is nil")
	case b.err != nil:
		return b.err
	case b.options.Reconciler != nil:
		return errors.New("builder: there are two reconcilers, in WithOptions and in Build or Complete; remove one")
	case len(b.inputs) == 0 && len(b.sources) == 0:
		return errors.New("builder: nothing is watched, so the controller would never run; call For, Owns or Watches")
	}
	if b.object != nil {
		gvk, err := apiutil.GVKForObject(b.object, b.mgr.GetScheme())
		if err != nil {
			return fmt.Errorf("builder: For: %w", err)
		}
		b.gvk = gvk
	}
	if b.name == "" {
		b.name = strings.ToLower(b.gvk.Kind)
	}
	if b.name == "" {
		return errors.New("builder: the controller has no name; call For or Named")
	}
	return nil
}

// shareConcurrency applies the manager's concurrency for the kind.
func (b *TypedBuilder[request]) shareConcurrency() {
	if b.options.MaxConcurrentReconciles == 0 && b.object != nil {
		b.options.MaxConcurrentReconciles = b.mgr.GetControllerOptions().GroupKindConcurrency[b.gvk.GroupKind().String()]
	}
}

// kinds returns the sources of the watched kinds.
func (b *TypedBuilder[request]) kinds() ([]source.TypedSource[request], error) {
	var list []source.TypedSource[request]
	for _, in := range b.inputs {
		obj, err := b.project(in)
		if err != nil {
			return nil, err
		}
		if in.handle == nil {
			if in.handle, err = b.owner(in); err != nil {
				return nil, err
			}
		}
		all := append(append([]predicate.Predicate(nil), b.filters...), in.predicates...)
		list = append(list, source.TypedKind[client.Object, request](b.mgr.GetCache(), obj, in.handle, all...))
	}
	return list, nil
}

// project returns the object to watch for a kind: the full object or only its
// metadata.
func (b *TypedBuilder[request]) project(in input[request]) (client.Object, error) {
	if !in.metadata {
		return in.object, nil
	}
	gvk, err := apiutil.GVKForObject(in.object, b.mgr.GetScheme())
	if err != nil {
		return nil, fmt.Errorf("builder: OnlyMetadata: %w", err)
	}
	obj := &metav1.PartialObjectMetadata{}
	obj.SetGroupVersionKind(gvk)
	return obj, nil
}

// owner returns the handler of Owns.
func (b *TypedBuilder[request]) owner(in input[request]) (handler.TypedEventHandler[client.Object, request], error) {
	if b.object == nil {
		return nil, errors.New("builder: Owns needs For, which sets the kind of the owners")
	}
	var opts []handler.OwnerOption
	if !in.everyOwner {
		opts = append(opts, handler.OnlyControllerOwner())
	}
	h := handler.EnqueueRequestForOwner(b.mgr.GetScheme(), b.mgr.GetRESTMapper(), b.object, opts...)
	typed, ok := any(h).(handler.TypedEventHandler[client.Object, request])
	if !ok {
		return nil, fmt.Errorf("builder: Owns needs requests of reconcile.Request, not of %T", *new(request))
	}
	return typed, nil
}
