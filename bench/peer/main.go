// SPDX-License-Identifier: Apache-2.0

// Command peer is a controller on controller-runtime that wasmctl is compared with. It is built in the usual way, with manager and builder
// and their defaults. For a built-in kind, its reconcile gets the object from the cache, as a module does, and reads three fields; for a
// ConfigMapGenerator it does the same as the example.
//
// It writes the same log lines that the harness reads from wasmctl: one when its cache has synced and, if requested, one for each
// reconcile. SIGUSR1 requests all objects.
package main

import (
	"context"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/client-go/tools/clientcmd"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/source"
)

// options are the flags.
type options struct {
	kubeconfig, namespace, resource, cache, metrics string
	logRuns                                         bool
	workers, controllers                            int
}

func main() {
	var o options
	// A separate set, because controller-runtime adds flags to the global one.
	flags := flag.NewFlagSet("peer", flag.ExitOnError)
	flags.StringVar(&o.kubeconfig, "kubeconfig", "", "kubeconfig file")
	flags.StringVar(&o.namespace, "namespace", "", "namespace to work in")
	flags.StringVar(&o.resource, "for", "configmaps", "configmaps, pods or configmapgenerators")
	flags.StringVar(&o.cache, "cache", asTyped, "typed, unstructured or metadata")
	flags.StringVar(&o.metrics, "metrics-address", "0", "address for serving metrics")
	flags.BoolVar(&o.logRuns, "log-runs", false, "log each reconcile")
	flags.IntVar(&o.workers, "workers", 4, "maximum number of concurrent reconciles per controller")
	flags.IntVar(&o.controllers, "controllers", 1, "number of identical controllers")
	_ = flags.Parse(os.Args[1:]) // exits on an error
	if err := run(ctrl.SetupSignalHandler(), &o, slog.New(slog.NewJSONHandler(os.Stderr, nil))); err != nil {
		fmt.Fprintln(os.Stderr, "peer:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, o *options, log *slog.Logger) error {
	ctrl.SetLogger(logr.Discard())
	k, ok := kinds[o.resource]
	if !ok {
		return fmt.Errorf("-for %s: see -help", o.resource)
	}
	mgr, err := newManager(o)
	if err != nil {
		return err
	}
	r := &reconciler{client: mgr.GetClient(), kind: k, as: o.cache, log: log, logRuns: o.logRuns}
	for i := range o.controllers {
		if err := r.add(mgr, fmt.Sprint("peer-", i), o.workers); err != nil {
			return err
		}
	}
	if err := mgr.Add(manager.RunnableFunc(func(ctx context.Context) error { return r.saySynced(ctx, mgr.GetCache()) })); err != nil {
		return err
	}
	if err := mgr.Start(ctx); ctx.Err() == nil {
		return err
	}
	return nil // it was stopped; the duration of the stop is not measured
}

// add adds a controller.
func (r *reconciler) add(mgr manager.Manager, name string, workers int) error {
	var forOptions []builder.ForOption
	if r.as == asMetadata {
		forOptions = append(forOptions, builder.OnlyMetadata)
	}
	b := ctrl.NewControllerManagedBy(mgr).Named(name).For(r.object(), forOptions...).
		WithOptions(controller.Options{MaxConcurrentReconciles: workers}).
		WatchesRawSource(source.Func(r.resyncOnSignal))
	if r.kind.gvk.Kind == generatorKind {
		b = b.Owns(r.newChild())
	}
	return b.Complete(r)
}

func newManager(o *options) (manager.Manager, error) {
	rc, err := clientcmd.BuildConfigFromFlags("", o.kubeconfig)
	if err != nil {
		return nil, err
	}
	rc.QPS = -1 // like ctrl.GetConfig
	scheme, err := newScheme()
	if err != nil {
		return nil, err
	}
	return ctrl.NewManager(rc, manager.Options{
		Scheme: scheme, Cache: cache.Options{DefaultNamespaces: map[string]cache.Config{o.namespace: {}}},
		Metrics: server.Options{BindAddress: o.metrics}, GracefulShutdownTimeout: new(5 * time.Second),
		Client: client.Options{Cache: &client.CacheOptions{Unstructured: true}},
	})
}
