// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	cacheddiscovery "k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/informers"
	coreinformers "k8s.io/client-go/informers/core/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/metadata/metadatainformer"
	restclient "k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"
	"k8s.io/controller-manager/pkg/informerfactory"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/pkg/controller/certificates/rootcacertpublisher"
	"k8s.io/kubernetes/pkg/controller/clusterroleaggregation"
	"k8s.io/kubernetes/pkg/controller/garbagecollector"
	"k8s.io/kubernetes/pkg/controller/namespace"
	"k8s.io/kubernetes/pkg/controller/serviceaccount"
)

// gcSyncPeriod is how often the garbage collector looks for new kinds of objects. kube-controller-manager does so every 30 s; here, an
// object of a new CRD should be collected soon.
const gcSyncPeriod = 2 * time.Second

// namespaceResync is how often every namespace is checked again, as in kube-controller-manager.
const namespaceResync = 5 * time.Minute

// controllerSet holds the shared dependencies of the controllers.
type controllerSet struct {
	client   kubernetes.Interface
	metadata metadata.Interface
	mapper   *restmapper.DeferredDiscoveryRESTMapper
	shared   informers.SharedInformerFactory
	metaInf  metadatainformer.SharedInformerFactory
	// informersStarted is closed once the informers run: the garbage collector waits for it before it starts further ones.
	informersStarted chan struct{}
	// loops are the functions to run until ctx ends.
	loops []func(context.Context)
}

// startControllers starts the controllers and returns a function that stops them and waits for them. They end only by stop, not by ctx,
// because they must end before the API server.
func startControllers(ctx context.Context, rc *restclient.Config, caPEM []byte) (stop func(), err error) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	set, err := newControllerSet(rc)
	if err == nil {
		err = set.addAll(ctx, caPEM)
	}
	if err != nil {
		cancel()
		return nil, fmt.Errorf("controllers: %w", err)
	}
	var wg sync.WaitGroup
	for _, loop := range set.loops {
		wg.Go(func() { loop(ctx) })
	}
	set.shared.Start(ctx.Done())
	set.metaInf.Start(ctx.Done())
	close(set.informersStarted)
	return func() {
		cancel()
		wg.Wait()
		set.shared.Shutdown()
		set.metaInf.Shutdown()
	}, nil
}

func newControllerSet(rc *restclient.Config) (*controllerSet, error) {
	rc = restclient.AddUserAgent(restclient.CopyConfig(rc), "devcluster-controllers")
	client, err := kubernetes.NewForConfig(rc)
	if err != nil {
		return nil, fmt.Errorf("make a client: %w", err)
	}
	meta, err := metadata.NewForConfig(rc)
	if err != nil {
		return nil, fmt.Errorf("make a metadata client: %w", err)
	}
	return &controllerSet{
		client:           client,
		metadata:         meta,
		mapper:           restmapper.NewDeferredDiscoveryRESTMapper(cacheddiscovery.NewMemCacheClient(client.Discovery())),
		shared:           informers.NewSharedInformerFactory(client, 0),
		metaInf:          metadatainformer.NewSharedInformerFactory(meta, 0),
		informersStarted: make(chan struct{}),
	}, nil
}

func (s *controllerSet) run(loop func(context.Context)) { s.loops = append(s.loops, loop) }

// addAll builds every controller without running it.
func (s *controllerSet) addAll(ctx context.Context, caPEM []byte) error {
	if err := s.addGarbageCollector(ctx); err != nil {
		return fmt.Errorf("garbage collector: %w", err)
	}
	ns := namespace.NewNamespaceController(ctx, s.client, s.metadata,
		s.client.Discovery().ServerPreferredNamespacedResources,
		s.shared.Core().V1().Namespaces(), namespaceResync, corev1.FinalizerKubernetes)
	s.run(func(ctx context.Context) { ns.Run(ctx, 5) })

	accounts, err := s.serviceAccounts(ctx)
	if err != nil {
		return fmt.Errorf("service accounts: %w", err)
	}
	s.run(func(ctx context.Context) { accounts.Run(ctx, 1) })

	// Without this controller, the cluster roles admin, edit and view are empty.
	roles := clusterroleaggregation.NewClusterRoleAggregation(s.shared.Rbac().V1().ClusterRoles(), s.client.RbacV1())
	s.run(func(ctx context.Context) { roles.Run(ctx, 2) })

	ca, err := rootcacertpublisher.NewPublisher(s.shared.Core().V1().ConfigMaps(), s.shared.Core().V1().Namespaces(), s.client, caPEM)
	if err != nil {
		return fmt.Errorf("root CA publisher: %w", err)
	}
	s.run(func(ctx context.Context) { ca.Run(ctx, 1) })
	return nil
}

// serviceAccounts returns the controller of the default service accounts. Its constructor in Kubernetes 1.33 takes no logger.
func (s *controllerSet) serviceAccounts(ctx context.Context) (*serviceaccount.ServiceAccountsController, error) {
	type (
		accounts   = coreinformers.ServiceAccountInformer
		namespaces = coreinformers.NamespaceInformer
		options    = serviceaccount.ServiceAccountsControllerOptions
		controller = serviceaccount.ServiceAccountsController
	)
	core, opts := s.shared.Core().V1(), serviceaccount.DefaultServiceAccountsControllerOptions()
	switch build := any(serviceaccount.NewServiceAccountsController).(type) {
	case func(klog.Logger, accounts, namespaces, kubernetes.Interface, options) (*controller, error):
		return build(klog.FromContext(ctx), core.ServiceAccounts(), core.Namespaces(), s.client, opts)
	case func(accounts, namespaces, kubernetes.Interface, options) (*controller, error):
		return build(core.ServiceAccounts(), core.Namespaces(), s.client, opts)
	default:
		return nil, fmt.Errorf("BUG: its constructor is %T", build)
	}
}

func (s *controllerSet) addGarbageCollector(ctx context.Context) error {
	ignored := map[schema.GroupResource]struct{}{}
	for r := range garbagecollector.DefaultIgnoredResources() {
		ignored[r] = struct{}{}
	}
	gc, err := garbagecollector.NewGarbageCollector(ctx, s.client, s.metadata, s.mapper, ignored,
		informerfactory.NewInformerFactory(s.shared, s.metaInf), s.informersStarted)
	if err != nil {
		return err
	}
	s.run(func(ctx context.Context) {
		wait.UntilWithContext(ctx, func(context.Context) { s.mapper.Reset() }, 30*time.Second)
	})
	s.run(func(ctx context.Context) { gc.Run(ctx, 5, 30*time.Second) })
	s.run(func(ctx context.Context) { gc.Sync(ctx, s.client.Discovery(), gcSyncPeriod) })
	return nil
}
