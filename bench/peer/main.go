// Command peer is a controller on controller-runtime whose reconcile does
// nothing: the peer that wasmctl with an empty module is measured against. It is
// built as its users build one, by manager and builder, with their defaults; its
// reconcile gets the object from the cache, as an empty module is handed it.
//
// It writes the lines that the harness reads from wasmctl's log as well: one when
// its cache has synced, and one for each reconcile. SIGUSR1 asks for all objects.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"time"

	"github.com/go-logr/logr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/tools/clientcmd"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/source"
)

// options are the flags.
type options struct {
	kubeconfig, namespace, resource, cache string
	strip                                  bool
	workers                                int
}

func main() {
	var o options
	// A set of its own: controller-runtime puts flags into the global one.
	flags := flag.NewFlagSet("peer", flag.ExitOnError)
	flags.StringVar(&o.kubeconfig, "kubeconfig", "", "kubeconfig file")
	flags.StringVar(&o.namespace, "namespace", "", "namespace to work in")
	flags.StringVar(&o.resource, "for", "configmaps", "configmaps or configmapgenerators")
	flags.StringVar(&o.cache, "cache", "typed", "typed or unstructured")
	flags.BoolVar(&o.strip, "strip", false, "drop managedFields from the cache")
	flags.IntVar(&o.workers, "workers", 4, "objects reconciled at a time")
	_ = flags.Parse(os.Args[1:]) // exits on an error
	if err := run(ctrl.SetupSignalHandler(), &o, slog.New(slog.NewJSONHandler(os.Stderr, nil))); err != nil {
		fmt.Fprintln(os.Stderr, "peer:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, o *options, log *slog.Logger) error {
	ctrl.SetLogger(logr.Discard())
	k, ok := kinds[o.resource]
	if !ok || o.cache != "typed" && o.cache != "unstructured" {
		return errors.New("-for and -cache: see -help")
	}
	mgr, err := newManager(o)
	if err != nil {
		return err
	}
	r := &reconciler{client: mgr.GetClient(), kind: k, unstructured: o.cache == "unstructured", log: log}
	err = ctrl.NewControllerManagedBy(mgr).For(r.object()).WithOptions(controller.Options{MaxConcurrentReconciles: o.workers}).
		WatchesRawSource(source.Func(r.resyncOnSignal)).Complete(r)
	if err != nil {
		return err
	}
	if err := mgr.Add(manager.RunnableFunc(func(ctx context.Context) error { return r.saySynced(ctx, mgr.GetCache()) })); err != nil {
		return err
	}
	return mgr.Start(ctx)
}

func newManager(o *options) (manager.Manager, error) {
	rc, err := clientcmd.BuildConfigFromFlags("", o.kubeconfig)
	if err != nil {
		return nil, err
	}
	caching := cache.Options{DefaultNamespaces: map[string]cache.Config{o.namespace: {}}}
	if o.strip {
		caching.DefaultTransform = cache.TransformStripManagedFields()
	}
	scheme, err := newScheme()
	if err != nil {
		return nil, err
	}
	return ctrl.NewManager(rc, manager.Options{
		Scheme: scheme, Cache: caching, Metrics: server.Options{BindAddress: "0"},
		Client: client.Options{Cache: &client.CacheOptions{Unstructured: true}},
	})
}

// reconciler reconciles objects of one kind by looking at them.
type reconciler struct {
	client       client.Client
	kind         kind
	unstructured bool
	log          *slog.Logger
}

// object returns a new object of the kind.
func (r *reconciler) object() client.Object {
	if !r.unstructured {
		return r.kind.object()
	}
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(r.kind.gvk)
	return u
}

// Reconcile implements reconcile.Reconciler.
func (r *reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	begin := time.Now()
	err := r.client.Get(ctx, req.NamespacedName, r.object())
	r.log.LogAttrs(ctx, slog.LevelInfo, "reconciled", slog.String("object", req.String()), slog.Duration("duration", time.Since(begin)))
	return ctrl.Result{}, client.IgnoreNotFound(err)
}

// saySynced logs when the cache has all objects.
func (r *reconciler) saySynced(ctx context.Context, c cache.Cache) error {
	if _, err := c.GetInformer(ctx, r.object()); err != nil {
		return err
	}
	r.log.Info("watches have synced")
	return nil
}

// names returns the name of each object in the cache.
func (r *reconciler) names(ctx context.Context) ([]metav1.Object, error) {
	var list client.ObjectList = &unstructured.UnstructuredList{}
	if r.unstructured {
		list.GetObjectKind().SetGroupVersionKind(r.kind.gvk.GroupVersion().WithKind(r.kind.gvk.Kind + "List"))
	} else {
		list = r.kind.list()
	}
	if err := r.client.List(ctx, list, client.UnsafeDisableDeepCopy); err != nil {
		return nil, err
	}
	return items(list)
}
