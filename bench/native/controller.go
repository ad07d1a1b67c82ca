// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"sync/atomic"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
)

// controller is a typical one: two informers, a queue and workers.
type controller struct {
	client  dynamic.Interface
	factory dynamicinformer.DynamicSharedInformerFactory
	queue   workqueue.TypedRateLimitingInterface[cache.ObjectName]
	runs    atomic.Int64
}

func newController(client dynamic.Interface, namespace string) *controller {
	return &controller{
		client:  client,
		factory: dynamicinformer.NewFilteredDynamicSharedInformerFactory(client, 0, namespace, nil),
		queue:   workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedItemBasedRateLimiter[cache.ObjectName]()),
	}
}

func (c *controller) run(ctx context.Context, workers int) error {
	self := c.watch(func(o metav1.Object) { c.queue.Add(cache.MetaObjectToName(o)) })
	owned := c.watch(func(o metav1.Object) {
		if owner := metav1.GetControllerOf(o); owner != nil && owner.Kind == "ConfigMapGenerator" {
			c.queue.Add(cache.ObjectName{Namespace: o.GetNamespace(), Name: owner.Name})
		}
	})
	if _, err := c.factory.ForResource(generators).Informer().AddEventHandler(self); err != nil {
		return err
	}
	if _, err := c.factory.ForResource(configMaps).Informer().AddEventHandler(owned); err != nil {
		return err
	}
	c.factory.Start(ctx.Done())
	for resource, ok := range c.factory.WaitForCacheSync(ctx.Done()) {
		if !ok {
			return fmt.Errorf("%s: did not sync", resource)
		}
	}
	var wg sync.WaitGroup
	for range workers {
		wg.Go(func() { c.work(ctx) })
	}
	<-ctx.Done()
	c.queue.ShutDown()
	wg.Wait()
	fmt.Printf("stopped reconciles=%d\n", c.runs.Load())
	return nil
}

func (c *controller) watch(enqueue func(metav1.Object)) cache.ResourceEventHandlerFuncs {
	object := func(o any) {
		if gone, ok := o.(cache.DeletedFinalStateUnknown); ok {
			o = gone.Obj
		}
		enqueue(o.(metav1.Object))
	}
	return cache.ResourceEventHandlerFuncs{AddFunc: object, UpdateFunc: func(_, o any) { object(o) }, DeleteFunc: object}
}

func (c *controller) work(ctx context.Context) {
	for {
		key, shutdown := c.queue.Get()
		if shutdown {
			return
		}
		c.process(ctx, key)
		c.queue.Done(key)
	}
}

func (c *controller) process(ctx context.Context, key cache.ObjectName) {
	o, err := c.factory.ForResource(generators).Lister().ByNamespace(key.Namespace).Get(key.Name)
	if apierrors.IsNotFound(err) {
		return
	}
	gen, ok := o.(*unstructured.Unstructured)
	if err == nil && !ok {
		err = errors.New("not an unstructured object")
	}
	if err == nil {
		c.runs.Add(1)
		after, reconcileErr := reconcile(ctx, c.client, gen)
		if err = reconcileErr; err == nil {
			c.queue.Forget(key)
			if after > 0 {
				c.queue.AddAfter(key, after)
			}
			return
		}
	}
	fmt.Fprintln(os.Stderr, "native:", key, err)
	c.queue.AddRateLimited(key)
}
