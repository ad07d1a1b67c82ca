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

// AddFinalizer adds a finalizer to an object, given as msgpack, and returns the
// object as it is then, without managedFields. An object that has it is
// returned as it is.
//
// The patch holds only if the object is still the one that was given (by uid)
// and its finalizers are: kube-rs does it so, and two actors at once cannot
// undo each other's change (rule 21 of ARCHITECTURE.md). If it does not hold, the
// error is a conflict. It is the host's own act: the policy is not asked, since
// only a manifest that declares a finalizer leads here.
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
		// A list that is missing equals nil; adding it whole makes it.
		patch = append(patch, test("/metadata/finalizers", nil), operation("add", "/metadata/finalizers", []string{name}))
	} else {
		patch = append(patch, test("/metadata/finalizers", seen), operation("add", "/metadata/finalizers/-", name))
	}
	l := ledger{account: a.account}
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

// RemoveFinalizer removes a finalizer from an object, given as msgpack. It is
// AddFinalizer in reverse: the patch holds only if the entry still stands where
// it was seen. An object that has not got it, or is gone, is a success.
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
	l := ledger{account: a.account}
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

// lostTest reports whether the API server could not carry out a JSON patch:
// with ours, only a test that does not hold, or that finds no entry, leads
// there. The error has no reason and no cause of its own; an object that is
// invalid after the patch has causes.
func lostTest(err error) bool {
	return apierrors.IsInvalid(err) && len(causes(err)) == 0
}

// isDeleting reports whether the API server did not let a finalizer be added
// because the object is being deleted.
func isDeleting(err error) bool {
	return slices.ContainsFunc(causes(err), func(c metav1.StatusCause) bool {
		return c.Type == metav1.CauseType(field.ErrorTypeForbidden) && c.Field == "metadata.finalizers"
	})
}

// packObject turns the JSON of an object into msgpack as the cache has it:
// without managedFields.
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
