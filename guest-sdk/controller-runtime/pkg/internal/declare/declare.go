// Package declare has what a module says of its controllers, and makes the
// reconciler of the host of it.
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
	// nothing but metadata.
	Object client.Object
	// Handler says which objects an event concerns.
	Handler handler.EventHandler
	// Predicates hide events; all have to pass one.
	Predicates []predicate.Predicate
	// Wide says that the bounds of the manager's cache do not hold.
	Wide bool
}

// Source is a source of events that can be declared.
type Source interface {
	// Declared returns the watch, or why there is none.
	Declared() (Watch, error)
}

// Controller is one controller of a module.
type Controller struct {
	Name    string
	Watches []Watch
	// Concurrency is how many objects are reconciled at a time.
	Concurrency int
	// Timeout bounds a run, if it is not 0.
	Timeout time.Duration
	// Base returns the context that runs derive theirs from; nil is an empty one.
	Base func() context.Context
	// Ignored names options that have no effect.
	Ignored []string
	// Logger returns the logger of a run.
	Logger func(*reconcile.Request) logr.Logger
	// Reconcile carries out a run.
	Reconcile func(context.Context, reconcile.Request) (reconcile.Result, error)
}

// Wide are the kinds that are watched beyond the bounds of the manager's cache.
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
