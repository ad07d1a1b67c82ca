// SPDX-License-Identifier: Apache-2.0

// Package controller declares controllers. In a module, the host has the queue
// and the workers, and calls Reconcile.
package controller

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"

	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/internal/declare"
	"sigs.k8s.io/controller-runtime/pkg/internal/program"
	"sigs.k8s.io/controller-runtime/pkg/internal/run"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"
)

// Options are the options of a Controller.
type Options = TypedOptions[reconcile.Request]

// TypedOptions are Options for a type of request. The options of queues,
// caches, panics and leader election have no effect, because the host has its
// own.
type TypedOptions[request comparable] struct {
	SkipNameValidation *bool
	// MaxConcurrentReconciles is the number of objects reconciled at a time;
	// the default is 1.
	MaxConcurrentReconciles int
	CacheSyncTimeout        time.Duration
	RecoverPanic            *bool
	NeedLeaderElection      *bool
	// Reconciler reconciles objects. The host calls it.
	Reconciler reconcile.TypedReconciler[request]
	// RateLimiter may have any type, because the original has no type parameter
	// before 0.19.
	RateLimiter any
	NewQueue    func(controllerName string, rateLimiter workqueue.TypedRateLimiter[request]) workqueue.TypedRateLimitingInterface[request]
	Logger      logr.Logger
	// LogConstructor returns the logger of a run.
	LogConstructor   func(request *request) logr.Logger
	UsePriorityQueue *bool
	EnableWarmup     *bool
	// ReconciliationTimeout bounds a run, in addition to the limit of the host.
	ReconciliationTimeout time.Duration
}

// DefaultFromConfig sets the defaults that all controllers of a manager share.
func (o *TypedOptions[request]) DefaultFromConfig(c config.Controller) {
	if o.Logger.GetSink() == nil {
		o.Logger = c.Logger
	}
	if o.MaxConcurrentReconciles <= 0 {
		o.MaxConcurrentReconciles = c.MaxConcurrentReconciles
	}
	if o.ReconciliationTimeout == 0 {
		o.ReconciliationTimeout = c.ReconciliationTimeout
	}
}

// Controller reconciles objects.
type Controller = TypedController[reconcile.Request]

// TypedController is a Controller for a type of request.
type TypedController[request comparable] interface {
	reconcile.TypedReconciler[request]
	Watcher[request]
	// Start waits until ctx is done, because the host runs the controller.
	Start(ctx context.Context) error
	// GetLogger returns the logger of the controller.
	GetLogger() logr.Logger
}

// New returns a controller of the manager.
func New(name string, mgr manager.Manager, options Options) (Controller, error) {
	return NewTyped(name, mgr, options)
}

// NewTyped is New for a type of request.
func NewTyped[request comparable](name string, mgr manager.Manager, options TypedOptions[request]) (TypedController[request], error) {
	options.DefaultFromConfig(mgr.GetControllerOptions())
	c, err := NewTypedUnmanaged(name, options)
	if err != nil {
		return nil, err
	}
	return c, mgr.Add(c)
}

// NewUnmanaged returns a controller without a manager. A module runs it only if
// it is added to a manager.
func NewUnmanaged(name string, options Options) (Controller, error) {
	return NewTypedUnmanaged(name, options)
}

// NewTypedUnmanaged is NewUnmanaged for a type of request.
func NewTypedUnmanaged[request comparable](name string, options TypedOptions[request]) (TypedController[request], error) {
	if options.Reconciler == nil {
		return nil, fmt.Errorf("controller[%s]: Options.Reconciler is nil", name)
	}
	if name == "" {
		return nil, errors.New("controller: has no name; call Named")
	}
	if options.LogConstructor == nil {
		// The host adds the controller, the object and the run to each line.
		options.LogConstructor = func(*request) logr.Logger { return options.Logger }
	}
	return &declared[request]{name: name, options: options}, nil
}

// declared is a controller that the host runs.
type declared[request comparable] struct {
	name    string
	options TypedOptions[request]
	watches []declare.Watch
}

// watch adds a source of events.
func (c *declared[request]) watch(src source.TypedSource[request]) error {
	w, err := declaredBy(src)
	if err != nil && program.Without(program.Sources) {
		c.options.Logger.Info("a source of events is left out", "controller", c.name, "reason", err.Error())
		return nil
	}
	if err != nil {
		return fmt.Errorf("controller[%s]: %w; %s", c.name, err, program.LeaveOut(program.Sources))
	}
	c.watches = append(c.watches, w)
	return nil
}

func declaredBy(src any) (declare.Watch, error) {
	if s, ok := src.(declare.Source); ok {
		return s.Declared()
	}
	return declare.Watch{}, fmt.Errorf("source %T: a module gets its events only from the host; watch a kind with Watches or source.Kind", src)
}

// Start implements TypedController.
func (*declared[request]) Start(ctx context.Context) error {
	<-ctx.Done()
	return nil
}

// GetLogger implements TypedController.
func (c *declared[request]) GetLogger() logr.Logger { return c.options.LogConstructor(nil) }

// Reconcile implements TypedReconciler.
func (c *declared[request]) Reconcile(ctx context.Context, req request) (reconcile.Result, error) {
	return c.options.Reconciler.Reconcile(ctx, req)
}

// Declare implements declare.Declarer.
func (c *declared[request]) Declare() (*declare.Controller, error) {
	plain, ok := any(c).(*declared[reconcile.Request])
	if !ok {
		return nil, fmt.Errorf("controller[%s]: its requests are %T: a module reconciles objects by their name, use reconcile.Request", c.name, *new(request))
	}
	var ignored []string
	if c.options.RateLimiter != nil {
		ignored = append(ignored, "RateLimiter")
	}
	if c.options.NewQueue != nil {
		ignored = append(ignored, "NewQueue")
	}
	return &declare.Controller{
		Name: c.name, Ignored: ignored, Watches: c.watches, Concurrency: max(c.options.MaxConcurrentReconciles, 1),
		Timeout: c.options.ReconciliationTimeout, Logger: plain.options.LogConstructor, Reconcile: plain.Reconcile,
	}, nil
}

// ReconcileIDFromContext returns the id of the run that ctx belongs to.
func ReconcileIDFromContext(ctx context.Context) types.UID {
	if c := run.Current(ctx); c != nil {
		return types.UID(c.ID())
	}
	return ""
}
