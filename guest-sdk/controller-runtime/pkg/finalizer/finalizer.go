// SPDX-License-Identifier: Apache-2.0

// Package finalizer runs several finalizers for one object.
package finalizer

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
)

// Registerer registers finalizers by key, which is the name in an object's
// metadata.
type Registerer interface {
	// Register adds f. It returns an error if the key is already registered.
	Register(key string, f Finalizer) error
}

// Finalizer cleans up after an object.
type Finalizer interface {
	// Finalize cleans up. Its result tells the caller which parts of the object
	// it has changed, so that the caller can write them.
	Finalize(context.Context, client.Object) (Result, error)
}

// Finalizers adds all finalizers to an object that is not being deleted, and
// otherwise runs the remaining finalizers of the object.
type Finalizers interface {
	Registerer
	Finalizer
}

// Result reports which parts of the object have changed.
type Result struct {
	// Updated reports whether anything except the status has changed.
	Updated bool
	// StatusUpdated reports whether the status has changed.
	StatusUpdated bool
}

type finalizers map[string]Finalizer

// NewFinalizers returns an empty set.
func NewFinalizers() Finalizers { return finalizers{} }

// Register implements Registerer.
func (s finalizers) Register(key string, f Finalizer) error {
	if _, ok := s[key]; ok {
		return fmt.Errorf("finalizer[%s]: is already registered", key)
	}
	s[key] = f
	return nil
}

// Finalize implements Finalizer. A finalizer that fails stays on the object,
// and the others still run.
func (s finalizers) Finalize(ctx context.Context, obj client.Object) (Result, error) {
	var res Result
	var errs []error
	deleted := obj.GetDeletionTimestamp() != nil
	for _, key := range slices.Sorted(maps.Keys(s)) {
		if !deleted {
			res.Updated = controllerutil.AddFinalizer(obj, key) || res.Updated
			continue
		}
		if !controllerutil.ContainsFinalizer(obj, key) {
			continue
		}
		one, err := s[key].Finalize(ctx, obj)
		res.Updated = res.Updated || one.Updated
		res.StatusUpdated = res.StatusUpdated || one.StatusUpdated
		if err != nil {
			errs = append(errs, fmt.Errorf("finalizer[%s]: %w", key, err))
			continue
		}
		res.Updated = controllerutil.RemoveFinalizer(obj, key) || res.Updated
	}
	return res, errors.Join(errs...)
}
