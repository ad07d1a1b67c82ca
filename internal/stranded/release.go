// SPDX-License-Identifier: Apache-2.0

package stranded

import (
	"context"
	"errors"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/runtime/admin"
)

// maxAttempts is the number of times that the finalizer is taken off, if others change the finalizers of the object at the same time.
const maxAttempts = 5

// ErrAbsent is the error of Named for an object without the finalizer.
var ErrAbsent = errors.New("it does not exist, or does not have the finalizer")

// Named returns an object that a user has named. The error matches ErrAbsent if it does not exist or does not have the finalizer: the name
// may be mistyped.
func (f *Finder) Named(ctx context.Context, key abi.Key) (*metav1.PartialObjectMetadata, error) {
	o, err := f.Get(ctx, key)
	if err == nil && o == nil {
		err = fmt.Errorf("%s[%s]: %w %s: nothing was released", f.Kind.Name(), key, ErrAbsent, f.Finalizer)
	}
	return o, err
}

// Release takes the finalizer off objects and returns a result for each. With dryRun, it changes nothing.
func (f *Finder) Release(ctx context.Context, keys []abi.Key, dryRun bool) []admin.Released {
	results := make([]admin.Released, len(keys))
	for i, key := range keys {
		results[i] = f.release(ctx, key, dryRun)
	}
	return results
}

func (f *Finder) release(ctx context.Context, key abi.Key, dryRun bool) (r admin.Released) {
	r.Object = key.String()
	var err error
	for range maxAttempts {
		o, getErr := f.Get(ctx, key)
		if getErr != nil {
			r.Error = getErr.Error()
			return r
		}
		if r.Absent = o == nil; r.Absent {
			return r
		}
		found := objectOf(o)
		r.Deleting = !found.Deleted.IsZero()
		if dryRun {
			return r
		}
		if err = f.API.RemoveFinalizer(ctx, f.Kind, identity(&found), f.Finalizer); err == nil {
			return r
		}
		if e, ok := errors.AsType[*abi.ResultError](err); !ok || e.Class != abi.ErrorConflict {
			break
		}
	}
	r.Error = fmt.Sprintf("finalizer[%s]: remove: %v", f.Finalizer, err)
	return r
}

// identity returns the msgpack of the metadata that identify an object and its finalizers.
func identity(o *Object) []byte {
	finalizers := make([]any, len(o.Finalizers))
	for i, name := range o.Finalizers {
		finalizers[i] = name
	}
	b, err := abi.AppendValue(nil, map[string]any{"metadata": map[string]any{
		"namespace": o.Key.Namespace, "name": o.Key.Name, "uid": o.UID, "finalizers": finalizers,
	}})
	if err != nil {
		panic("BUG: object: " + err.Error()) // only strings
	}
	return b
}
