// SPDX-License-Identifier: Apache-2.0

package hostcache

import (
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/controller-runtime/pkg/internal/informers"
	"sigs.k8s.io/controller-runtime/pkg/internal/program"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
)

// GetInformer implements cache.Informers.
func (c *Cache) GetInformer(_ context.Context, obj client.Object, _ ...cache.InformerGetOption) (cache.Informer, error) {
	gvk, err := apiutil.GVKForObject(obj, c.scheme)
	return informer{gvk}, err
}

// GetInformerForKind implements cache.Informers.
func (*Cache) GetInformerForKind(_ context.Context, gvk schema.GroupVersionKind, _ ...cache.InformerGetOption) (cache.Informer, error) {
	return informer{gvk}, nil
}

// informer represents the host's watch of a kind.
type informer struct{ gvk schema.GroupVersionKind }

// AddEventHandler implements cache.Informer.
func (i informer) AddEventHandler(informers.EventHandler) (informers.Registration, error) {
	if program.Without(program.Sources) {
		logf.Log.Info("a source of events is left out: a handler of an informer", "kind", i.gvk.Kind)
		return registration{}, nil
	}
	return nil, fmt.Errorf("informer[%s]: AddEventHandler: %s; %s", i.gvk.Kind, program.NoEvents, program.LeaveOut(program.Sources))
}

// AddEventHandlerWithResyncPeriod implements cache.Informer.
func (i informer) AddEventHandlerWithResyncPeriod(h informers.EventHandler, _ time.Duration) (informers.Registration, error) {
	return i.AddEventHandler(h)
}

// AddEventHandlerWithOptions implements cache.Informer.
func (i informer) AddEventHandlerWithOptions(h informers.EventHandler, _ informers.HandlerOptions) (informers.Registration, error) {
	return i.AddEventHandler(h)
}

// RemoveEventHandler implements cache.Informer.
func (informer) RemoveEventHandler(informers.Registration) error { return nil }

// AddIndexers implements cache.Informer.
func (i informer) AddIndexers(informers.Indexers) error {
	return fmt.Errorf("informer[%s]: AddIndexers: %w", i.gvk.Kind, errNoIndexers)
}

var errNoIndexers = errors.New("an index of an informer cannot be read in a module; register it by mgr.GetFieldIndexer().IndexField, " +
	"and list with client.MatchingFields")

// HasSynced implements cache.Informer.
func (informer) HasSynced() bool { return true }

// IsStopped implements cache.Informer.
func (informer) IsStopped() bool { return false }

// registration is the registration of a handler that is left out. It has only
// HasSynced, and no other methods of newer versions of client-go.
type registration struct{ informers.Registration }

// HasSynced implements informers.Registration.
func (registration) HasSynced() bool { return true }
