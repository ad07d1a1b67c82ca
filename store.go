// SPDX-License-Identifier: Apache-2.0

package wasmctl

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/host/kubeapi"
	"github.com/wasmctl/wasmctl/internal/engine"
	"github.com/wasmctl/wasmctl/runtime/controller"
)

// ErrNotSynced means that a Store is not ready: the watch has not listed the objects yet.
var ErrNotSynced = errors.New("the store has not synced")

// readyEvery is how often Store.WaitReady looks.
const readyEvery = 50 * time.Millisecond

// Store reads the objects of the kind that a controller reconciles, as its watch has last seen
// them: it sends no request. It can be used before the controller runs and while it restarts;
// the error of its methods then matches ErrNotRunning or ErrNotSynced. The objects have no
// managedFields, and only metadata if the watch is limited to that. They belong to the caller.
type Store struct{ controller *Controller }

// Store returns the store of the controller.
func (c *Controller) Store() Store { return Store{c} }

// ListOptions select objects of a Store. The zero value selects all.
type ListOptions struct {
	// Namespace, if not empty, is the only namespace.
	Namespace string
	// Selector, if not nil, selects objects by their labels.
	Selector labels.Selector
}

// Get returns an object, or nil if the store does not have it.
func (s Store) Get(key abi.Key) (*unstructured.Unstructured, error) {
	e, err := s.controller.life.Live()
	if err != nil {
		return nil, err
	}
	packed, err := e.Cache().Get(e.Kind().GVR(), key)
	if err != nil || packed == nil {
		return nil, s.failed(err)
	}
	return unpacked(packed)
}

// Len returns the number of objects, also before all of them have been listed.
func (s Store) Len() (int, error) {
	e, err := s.controller.life.Live()
	if err != nil {
		return 0, err
	}
	return e.Runtime.Watched(), nil
}

// List returns the selected objects, ordered by namespace and name.
func (s Store) List(o ListOptions) ([]*unstructured.Unstructured, error) { return s.list(o, nil) }

// ByIndex returns the objects whose field has a value, ordered by namespace and name. The field
// is a path such as "spec.nodeName", to a string, a number or a bool. The first call for a field
// builds an index, which the store then maintains.
func (s Store) ByIndex(field, value string) ([]*unstructured.Unstructured, error) {
	return s.list(ListOptions{}, kubeapi.FieldIndex(s.controller, field, value))
}

func (s Store) list(o ListOptions, index *abi.Index) ([]*unstructured.Unstructured, error) {
	e, err := s.controller.life.Live()
	if err != nil {
		return nil, err
	}
	matches := func(l labels.Labels, _ []byte) bool { return o.Selector == nil || o.Selector.Matches(l) }
	packed, _, _, err := e.Cache().List(e.Kind().GVR(), o.Namespace, "", index, matches, abi.Key{}, math.MaxInt)
	if err != nil {
		return nil, s.failed(err)
	}
	objects := make([]*unstructured.Unstructured, len(packed))
	for i := range packed {
		if objects[i], err = unpacked(packed[i]); err != nil {
			return nil, err
		}
	}
	return objects, nil
}

// failed returns an error of the cache for the caller.
func (s Store) failed(err error) error {
	if err == nil {
		return nil
	}
	if e, ok := errors.AsType[*controller.CacheError](err); ok && e.Status() == abi.StatusNotSynced {
		err = fmt.Errorf("%w: %w", ErrNotSynced, err)
	}
	return fmt.Errorf("controller[%s]: %w", s.controller.Name(), err)
}

func unpacked(packed []byte) (*unstructured.Unstructured, error) {
	object, err := abi.DecodeObject(packed)
	return &unstructured.Unstructured{Object: object}, err
}

// WaitReady waits until the controller runs and all of its watches have listed their objects.
// The error is that of ctx, or ErrStopping if the controller has ended.
func (s Store) WaitReady(ctx context.Context) error {
	tick := time.NewTicker(readyEvery)
	defer tick.Stop()
	for {
		e := s.controller.life.View().Engine
		if e != nil && len(e.Runtime.Unsynced()) == 0 {
			return nil
		}
		select {
		case <-tick.C:
		case <-s.controller.Ended():
			return fmt.Errorf("controller[%s]: %w", s.controller.Name(), ErrStopping)
		case <-ctx.Done():
			return fmt.Errorf("controller[%s]: waiting for its store: %s: %w", s.controller.Name(), s.waitsFor(e), context.Cause(ctx))
		}
	}
}

// waitsFor returns why the store is not ready, for people.
func (s Store) waitsFor(e *engine.Controller) string {
	if e != nil {
		return strings.Join(e.Runtime.Unsynced(), "; ")
	}
	v := s.controller.life.View()
	return strings.TrimSuffix("the controller is "+v.Phase+": "+v.Message, ": ")
}
