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

// OperationResult is what CreateOrUpdate or CreateOrPatch did.
type OperationResult string

// The results.
const (
	OperationResultNone              OperationResult = "unchanged"
	OperationResultCreated           OperationResult = "created"
	OperationResultUpdated           OperationResult = "updated"
	OperationResultUpdatedStatus     OperationResult = "updatedStatus"
	OperationResultUpdatedStatusOnly OperationResult = "updatedStatusOnly"
)

// MutateFn changes the object in place to what is wanted.
type MutateFn func() error

// CreateOrUpdate reads obj, lets f change it, and writes it if that made a
// difference. An object that does not exist is created. The status is not
// written.
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

// CreateOrPatch does the same by merge patches, and writes the status too. The
// status of an object that it creates is not written.
func CreateOrPatch(ctx context.Context, c client.Client, obj client.Object, f MutateFn) (OperationResult, error) {
	created, err := getOrCreate(ctx, c, obj, f)
	if created || err != nil {
		return doneIf(created, OperationResultCreated), err
	}
	before := obj.DeepCopyObject().(client.Object) //nolint:forcetypeassert // a copy of one
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
	if changed { // the answer of the patch is in obj now, and has the status that is stored
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

// getOrCreate reads obj, or creates it as f makes it, and reports which.
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

// mutate lets f change obj, but not its name.
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

// split returns obj without its status, and the status.
func split(obj client.Object) (rest map[string]any, status any, err error) {
	rest, err = runtime.DefaultUnstructuredConverter.ToUnstructured(obj.DeepCopyObject())
	if err != nil {
		return nil, nil, fmt.Errorf("object[%s]: %w", name(obj), err)
	}
	status = rest["status"]
	delete(rest, "status")
	return rest, status, nil
}

// prepareStatus gives obj the status that is wanted, and returns what a patch of
// it starts from.
func prepareStatus(obj client.Object, was, wanted any) (before client.Object, err error) {
	before = obj.DeepCopyObject().(client.Object) //nolint:forcetypeassert // a copy of one
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
	// The conversion adds to what is there: it has to start from nothing.
	if v := reflect.ValueOf(obj); v.Kind() == reflect.Pointer {
		v.Elem().SetZero()
	}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(all, obj); err != nil {
		return fmt.Errorf("object: status: %w", err)
	}
	return nil
}
