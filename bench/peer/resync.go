package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
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
	objects, err := r.names(ctx)
	if err != nil {
		r.log.Error("resync", "error", err)
		return
	}
	for _, o := range objects {
		queue.Add(ctrl.Request{NamespacedName: types.NamespacedName{Namespace: o.GetNamespace(), Name: o.GetName()}})
	}
}

// items returns the objects of a list, without a copy.
func items(list client.ObjectList) ([]metav1.Object, error) {
	objects := make([]metav1.Object, 0, meta.LenList(list))
	err := meta.EachListItem(list, func(o runtime.Object) error {
		object, err := meta.Accessor(o)
		objects = append(objects, object)
		return err
	})
	return objects, err
}
