// Package finalizer runs several finalizers of one object.
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

// Registerer holds finalizers by key, which is the name in an object's metadata.
type Registerer interface {
	// Register adds f. A key that is taken is an error.
	Register(key string, f Finalizer) error
}

// Finalizer cleans up after an object.
type Finalizer interface {
	// Finalize cleans up. It says what it changed in the object, which the
	// caller has to write.
	Finalize(context.Context, client.Object) (Result, error)
}

// Finalizers adds all finalizers to an object that lives, and runs those that are
// left of one that is being deleted.
type Finalizers interface {
	Registerer
	Finalizer
}

// Result says what was changed in the object.
type Result struct {
	// Updated is for anything but the status.
	Updated bool
	// StatusUpdated is for the status.
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

// Finalize implements Finalizer. A finalizer that fails stays, and does not keep
// others from running.
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
