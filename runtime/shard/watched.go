// SPDX-License-Identifier: Apache-2.0

package shard

import (
	"context"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
	clientv1 "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/client-go/tools/cache"
)

// watched contains the Leases of a group, as received by a watch.
type watched struct {
	cache.Store

	synced  chan struct{} // closed by the first list; only the watch's goroutine closes it
	changed chan struct{} // has one element if something was received
}

func newWatched() *watched {
	return &watched{Store: cache.NewStore(cache.MetaNamespaceKeyFunc), synced: make(chan struct{}), changed: make(chan struct{}, 1)}
}

// run watches until ctx ends. After a failure it retries soon, because a group that was cut off must see its Leases again within seconds.
func (w *watched) run(ctx context.Context, client clientv1.LeaseInterface, cfg Config) {
	only := groupLabel + "=" + cfg.Group
	lw := &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			o.LabelSelector = only
			return client.List(ctx, o)
		},
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			o.LabelSelector = only
			return client.Watch(ctx, o)
		},
	}
	cache.NewReflectorWithOptions(lw, &coordinationv1.Lease{}, w, cache.ReflectorOptions{
		Backoff: &wait.Backoff{Duration: cfg.Timing.Renew / 4, Factor: 2, Cap: cfg.Timing.Renew / 2, Steps: 2, Jitter: 1},
	}).RunWithContext(ctx)
}

// leases returns all Leases.
func (w *watched) leases() []*coordinationv1.Lease {
	items := w.List()
	out := make([]*coordinationv1.Lease, 0, len(items))
	for _, item := range items {
		if lease, ok := item.(*coordinationv1.Lease); ok {
			out = append(out, lease)
		}
	}
	return out
}

// note reports a change to the loop.
func (w *watched) note() {
	select {
	case w.changed <- struct{}{}:
	default:
	}
}

// Add implements cache.ReflectorStore.
func (w *watched) Add(o any) error {
	defer w.note()
	return w.Store.Add(o)
}

// Update implements cache.ReflectorStore.
func (w *watched) Update(o any) error {
	defer w.note()
	return w.Store.Update(o)
}

// Delete implements cache.ReflectorStore.
func (w *watched) Delete(o any) error {
	defer w.note()
	return w.Store.Delete(o)
}

// Replace implements cache.ReflectorStore.
func (w *watched) Replace(all []any, version string) error {
	defer w.note()
	err := w.Store.Replace(all, version)
	select {
	case <-w.synced:
	default:
		close(w.synced)
	}
	return err
}
