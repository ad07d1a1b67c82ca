// SPDX-License-Identifier: Apache-2.0

package controllerutil

import (
	"context"
	"fmt"
	"reflect"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Object is client.Object, in version 0.15.
type Object = client.Object

// OperationResult is the action that CreateOrUpdate or CreateOrPatch took.
type OperationResult string

// The results.
const (
	OperationResultNone              OperationResult = "unchanged"
	OperationResultCreated           OperationResult = "created"
	OperationResultUpdated           OperationResult = "updated"
	OperationResultUpdatedStatus     OperationResult = "updatedStatus"
	OperationResultUpdatedStatusOnly OperationResult = "updatedStatusOnly"
)

// MutateFn changes the object in place to the desired state.
type MutateFn func() error

// CreateOrUpdate reads obj, calls f to change it, and writes it if it has
// changed. It creates an object that does not exist. It does not write the
// status.
func CreateOrUpdate(ctx context.Context, c client.Client, obj client.Object, f MutateFn) (OperationResult, error) {
	created, err := getOrCreate(ctx, c, obj, f)
	if created || err != nil {
		return doneIf(created, OperationResultCreated), err
	}
	before := obj.DeepCopyObject()
	if err := mutate(f, obj); err != nil || equality.Semantic.DeepEqual(before, obj) {
		return OperationResultNone, err
	}
	err = c.Update(ctx, obj)
	return doneIf(err == nil, OperationResultUpdated), err
}

// CreateOrPatch is like CreateOrUpdate, but uses merge patches, and also writes
// the status, except for an object that it creates.
func CreateOrPatch(ctx context.Context, c client.Client, obj client.Object, f MutateFn) (OperationResult, error) {
	created, err := getOrCreate(ctx, c, obj, f)
	if created || err != nil {
		return doneIf(created, OperationResultCreated), err
	}
	before := obj.DeepCopyObject().(client.Object) //nolint:forcetypeassert // a copy of obj
	was, wasStatus, err := split(obj)
	if err != nil {
		return OperationResultNone, err
	}
	if err := mutate(f, obj); err != nil {
		return OperationResultNone, err
	}
	is, isStatus, err := split(obj)
	if err != nil {
		return OperationResultNone, err
	}
	changed, statusChanged := !reflect.DeepEqual(was, is), !reflect.DeepEqual(wasStatus, isStatus)
	if changed {
		if err := c.Patch(ctx, obj, client.MergeFrom(before)); err != nil {
			return OperationResultNone, err
		}
	}
	if !statusChanged {
		return doneIf(changed, OperationResultUpdated), nil
	}
	if changed { // the patch has replaced the status in obj by the stored one
		if before, err = prepareStatus(obj, wasStatus, isStatus); err != nil {
			return OperationResultUpdated, err
		}
	}
	if err := c.Status().Patch(ctx, obj, client.MergeFrom(before)); err != nil {
		return doneIf(changed, OperationResultUpdated), err
	}
	if changed {
		return OperationResultUpdatedStatus, nil
	}
	return OperationResultUpdatedStatusOnly, nil
}

func doneIf(done bool, what OperationResult) OperationResult {
	if done {
		return what
	}
	return OperationResultNone
}

// getOrCreate reads obj, or creates it after f has changed it, and reports
// whether it created obj.
func getOrCreate(ctx context.Context, c client.Client, obj client.Object, f MutateFn) (created bool, err error) {
	err = c.Get(ctx, client.ObjectKeyFromObject(obj), obj)
	if !apierrors.IsNotFound(err) {
		return false, err
	}
	if err := mutate(f, obj); err != nil {
		return false, err
	}
	err = c.Create(ctx, obj)
	return err == nil, err
}

// mutate calls f to change obj, and checks that the name stays the same.
func mutate(f MutateFn, obj client.Object) error {
	if f == nil {
		return nil
	}
	key := client.ObjectKeyFromObject(obj)
	if err := f(); err != nil {
		return err
	}
	if now := client.ObjectKeyFromObject(obj); now != key {
		return fmt.Errorf("object[%s]: the function changed its name to %s", key, now)
	}
	return nil
}

// split returns obj without its status, and the status separately.
func split(obj client.Object) (rest map[string]any, status any, err error) {
	rest, err = runtime.DefaultUnstructuredConverter.ToUnstructured(obj.DeepCopyObject())
	if err != nil {
		return nil, nil, fmt.Errorf("object[%s]: %w", name(obj), err)
	}
	status = rest["status"]
	delete(rest, "status")
	return rest, status, nil
}

// prepareStatus sets the desired status of obj, and returns the base of a patch
// of the status.
func prepareStatus(obj client.Object, was, wanted any) (before client.Object, err error) {
	before = obj.DeepCopyObject().(client.Object) //nolint:forcetypeassert // a copy of obj
	if err := setStatus(before, was); err != nil {
		return nil, err
	}
	return before, setStatus(obj, wanted)
}

func setStatus(obj client.Object, status any) error {
	all, _, err := split(obj)
	if err != nil {
		return err
	}
	if status != nil {
		all["status"] = status
	}
	// The conversion merges into the existing object, so clear the object
	// first.
	if v := reflect.ValueOf(obj); v.Kind() == reflect.Pointer {
		v.Elem().SetZero()
	}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(all, obj); err != nil {
		return fmt.Errorf("object: status: %w", err)
	}
	return nil
}
