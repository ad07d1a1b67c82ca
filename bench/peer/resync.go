// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// resyncOnSignal adds all objects to the queue on SIGUSR1. It implements
// source.Func.
func (r *reconciler) resyncOnSignal(ctx context.Context, queue workqueue.TypedRateLimitingInterface[ctrl.Request]) error {
	got := make(chan os.Signal, 1)
	signal.Notify(got, syscall.SIGUSR1)
	go func() {
		defer signal.Stop(got)
		for {
			select {
			case <-got:
				r.resync(ctx, queue)
			case <-ctx.Done():
				return
			}
		}
	}()
	return nil
}

func (r *reconciler) resync(ctx context.Context, queue workqueue.TypedRateLimitingInterface[ctrl.Request]) {
	list := r.list()
	err := r.client.List(ctx, list, client.UnsafeDisableDeepCopy)
	if err == nil {
		err = meta.EachListItem(list, func(o runtime.Object) error {
			object, err := meta.Accessor(o)
			if err == nil {
				queue.Add(ctrl.Request{NamespacedName: types.NamespacedName{Namespace: object.GetNamespace(), Name: object.GetName()}})
			}
			return err
		})
	}
	if err != nil {
		r.log.Error("resync", "error", err)
	}
}
