// SPDX-License-Identifier: Apache-2.0

package kubeapi

import (
	"context"
	"fmt"
	"slices"
	"strconv"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/host/kubeapi/kinds"
)

// AddFinalizer adds a finalizer to an object, given as msgpack, and returns the resulting object
// without managedFields. If the object already has the finalizer, it is returned unchanged.
//
// The patch holds only if the object has the same UID and the same finalizers as the given one,
// like in kube-rs, so that concurrent actors cannot undo each other's changes (rule 21 of
// ARCHITECTURE.md). If it does not hold, the error is a conflict. The policy does not apply,
// because the host does this only for manifests that declare a finalizer.
//
// An error is a *WriteError, in which errors.As finds an *abi.ResultError.
func (a *API) AddFinalizer(ctx context.Context, kind kinds.Kind, object []byte, name string) (updated []byte, err error) {
	p, err := unpack(object)
	if err != nil {
		return nil, err
	}
	seen := p.Metadata.Finalizers
	if slices.Contains(seen, name) {
		return object, nil
	}
	patch := []any{test("/metadata/uid", p.Metadata.UID)}
	if len(seen) == 0 {
		// A missing list equals nil. Adding it as a whole creates it.
		patch = append(patch, test("/metadata/finalizers", nil), operation("add", "/metadata/finalizers", []string{name}))
	} else {
		patch = append(patch, test("/metadata/finalizers", seen), operation("add", "/metadata/finalizers/-", name))
	}
	l := ledger{account: a.cfg.Account}
	defer l.close()
	js, err := a.patchFinalizers(ctx, &l, StepAddFinalizer, kind, p.key(), patch)
	if err != nil {
		return nil, err
	}
	if err = l.takeJSON(js); err == nil {
		updated, err = packObject(js)
	}
	if err != nil {
		return nil, a.writeError(ctx, StepAddFinalizer, &request{kind: kind, key: p.key()}, err)
	}
	return updated, nil
}

// RemoveFinalizer removes a finalizer from an object, given as msgpack. Like in AddFinalizer, the
// patch holds only if the entry has the same position. It succeeds if the finalizer or the object
// is already gone.
func (a *API) RemoveFinalizer(ctx context.Context, kind kinds.Kind, object []byte, name string) error {
	p, err := unpack(object)
	if err != nil {
		return err
	}
	i := slices.Index(p.Metadata.Finalizers, name)
	if i < 0 {
		return nil
	}
	path := "/metadata/finalizers/" + strconv.Itoa(i)
	l := ledger{account: a.cfg.Account}
	defer l.close()
	_, err = a.patchFinalizers(ctx, &l, StepRemoveFinalizer, kind, p.key(), []any{
		test("/metadata/uid", p.Metadata.UID), test(path, name), operation("remove", path, nil),
	})
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

// operation is an operation of a JSON patch (RFC 6902).
func operation(op, path string, value any) map[string]any {
	o := map[string]any{"op": op, "path": path}
	if op != "remove" {
		o["value"] = value
	}
	return o
}

func test(path string, value any) map[string]any { return operation("test", path, value) }

func (a *API) patchFinalizers(ctx context.Context, l *ledger, step Step, kind kinds.Kind, key abi.Key, patch []any) ([]byte, error) {
	r := &request{op: abi.OpAPIPatch, ledger: l, kind: kind, key: key, patch: patch, APIRequest: abi.APIRequest{PatchType: abi.PatchJSON}}
	js, err := a.exchange(ctx, r)
	if err == nil {
		return js, nil
	}
	e := a.writeError(ctx, step, r, err)
	if lostTest(err) || isDeleting(err) {
		e.Class, e.Reason = abi.ErrorConflict, ReasonLostRace
		e.Err = fmt.Errorf("the finalizers were changed concurrently: %w", err)
	}
	return nil, e
}

// lostTest reports whether the API server could not carry out a JSON patch. With the host's
// patches, the only cause is a test that does not hold, or that finds no entry. The error has no
// reason and no cause of its own. An object that is invalid after the patch has causes.
func lostTest(err error) bool {
	return apierrors.IsInvalid(err) && len(causes(err)) == 0
}

// isDeleting reports whether the API server refused a finalizer because the object is being
// deleted.
func isDeleting(err error) bool {
	return slices.ContainsFunc(causes(err), func(c metav1.StatusCause) bool {
		return c.Type == metav1.CauseType(field.ErrorTypeForbidden) && c.Field == "metadata.finalizers"
	})
}

// packObject converts the JSON of an object to msgpack in the form of the cache: without
// managedFields.
func packObject(js []byte) ([]byte, error) {
	var object map[string]any
	if err := utiljson.Unmarshal(js, &object); err != nil {
		return nil, err
	}
	if meta, ok := object["metadata"].(map[string]any); ok {
		delete(meta, "managedFields")
	}
	return abi.AppendValue(make([]byte, 0, len(js)), object)
}
