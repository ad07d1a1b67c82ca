// SPDX-License-Identifier: Apache-2.0

// Package declare has the declarations of a module's controllers, and makes the
// reconciler for the host from them.
package declare

import (
	"context"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// Watch is a kind that a controller watches.
type Watch struct {
	// Object is an object of the kind: a PartialObjectMetadata for a watch of
	// metadata only.
	Object client.Object
	// Handler selects the objects that an event concerns.
	Handler handler.EventHandler
	// Predicates hide events; an event must pass all of them.
	Predicates []predicate.Predicate
	// Wide means that the restrictions of the manager's cache do not apply.
	Wide bool
}

// Source is a source of events that can be declared.
type Source interface {
	// Declared returns the watch, or an error if the source cannot be declared.
	Declared() (Watch, error)
}

// Controller is one controller of a module.
type Controller struct {
	Name    string
	Watches []Watch
	// Concurrency is the number of objects reconciled at a time.
	Concurrency int
	// Timeout bounds a run, if it is not 0.
	Timeout time.Duration
	// Base returns the parent of the contexts of runs. If nil, the parent is an
	// empty context.
	Base func() context.Context
	// Anchor is the name of the only object that the controller reconciles. The
	// program knows nothing of the object, and its cache does not have it. If
	// empty, the controller reconciles all objects.
	Anchor string
	// Ignored lists options that have no effect.
	Ignored []string
	// Logger returns the logger of a run.
	Logger func(*reconcile.Request) logr.Logger
	// Reconcile runs the program's reconciler.
	Reconcile func(context.Context, reconcile.Request) (reconcile.Result, error)
}

// Wide returns the kinds whose watches ignore the restrictions of the manager's
// cache.
func (c *Controller) Wide(scheme *runtime.Scheme) (map[schema.GroupVersionKind]bool, error) {
	out := map[schema.GroupVersionKind]bool{}
	for _, w := range c.Watches {
		gvk, err := apiutil.GVKForObject(w.Object, scheme)
		if err != nil {
			return nil, err
		}
		out[gvk] = out[gvk] || w.Wide
	}
	return out, nil
}

// Declarer is a Runnable that is a controller.
type Declarer interface {
	Declare() (*Controller, error)
}
