// SPDX-License-Identifier: Apache-2.0

package wasmctl

import (
	"context"
	"encoding/json"
	"errors"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/runtime/controller"
)

// Request is the input of a native reconciler: the key of an object, the reasons, and the
// object as the cache has it. The embedded Object is msgpack, and nil if the object is gone.
type Request struct {
	*abi.Request

	cache *controller.Cache
}

// Decode reads the object into a Go type of its kind, or into a *map[string]any.
func (r *Request) Decode(into any) error { return decode(r.Object, into) }

// Cached reads an object of a watched kind from the cache into a Go type or a
// *map[string]any. It reports whether the object is there.
func (r *Request) Cached(kind schema.GroupVersionResource, namespace, name string, into any) (bool, error) {
	packed, err := r.cache.Get(kind, abi.Key{Namespace: namespace, Name: name})
	if err != nil || packed == nil {
		return false, err
	}
	return true, decode(packed, into)
}

// Event is a change of a watched object, for Map and Filter of a Native. The embedded Old and
// New are the msgpack of the object before and after the change; nil if it was not known
// before, or is gone.
type Event struct{ *abi.Event }

// DecodeOld reads the object before the change into a Go type of its kind, or into a
// *map[string]any. It reports whether the object was known before.
func (e *Event) DecodeOld(into any) (bool, error) { return decodeIf(e.Old, into) }

// DecodeNew reads the object after the change, as DecodeOld does. It reports whether the object
// exists.
func (e *Event) DecodeNew(into any) (bool, error) { return decodeIf(e.New, into) }

func decodeIf(packed []byte, into any) (exists bool, err error) {
	if packed == nil {
		return false, nil
	}
	return true, decode(packed, into)
}

func decode(packed []byte, into any) error {
	object, err := abi.DecodeObject(packed)
	if err != nil {
		return err
	}
	if m, ok := into.(*map[string]any); ok {
		*m = object
		return nil
	}
	texts, err := abi.OpaqueTexts(packed)
	if err != nil || texts == nil {
		return errors.Join(err, runtime.DefaultUnstructuredConverter.FromUnstructured(object, into))
	}
	js, err := texts.AppendJSON(nil, object)
	if err != nil {
		return err
	}
	return json.Unmarshal(js, into)
}

// onRequest returns what the engine calls for a function of a Native, nil for nil.
func onRequest(f func(context.Context, *Request) (Action, error)) func(context.Context, *abi.Request, *controller.Cache) (Action, error) {
	if f == nil {
		return nil
	}
	return func(ctx context.Context, r *abi.Request, cache *controller.Cache) (Action, error) {
		return f(ctx, &Request{r, cache})
	}
}

// onEvent is onRequest for Map and Filter.
func onEvent[T any](f func(context.Context, *Event) (T, error)) func(context.Context, *abi.Event) (T, error) {
	if f == nil {
		return nil
	}
	return func(ctx context.Context, e *abi.Event) (T, error) { return f(ctx, &Event{e}) }
}
