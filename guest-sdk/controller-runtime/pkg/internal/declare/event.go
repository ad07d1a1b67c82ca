// SPDX-License-Identifier: Apache-2.0

package declare

import (
	"context"
	"reflect"

	"k8s.io/apimachinery/pkg/runtime/schema"

	wasmctl "github.com/wasmctl/wasmctl/guest-sdk/go"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/internal/codec"
	"sigs.k8s.io/controller-runtime/pkg/internal/queue"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// change is an event of the host with its objects decoded.
type change struct {
	listed   bool
	old, now client.Object // nil if the object does not exist
}

// read decodes the objects of an event into the type of like.
func read(e wasmctl.WatchEvent, like client.Object, gvk schema.GroupVersionKind) (c change, err error) {
	c.listed = e.Type == wasmctl.WatchListed
	for _, side := range []struct {
		from wasmctl.Object
		to   *client.Object
	}{{e.Old, &c.old}, {e.New, &c.now}} {
		if !side.from.Exists() {
			continue
		}
		obj := reflect.New(reflect.TypeOf(like).Elem()).Interface().(client.Object) //nolint:forcetypeassert // it has the type of like
		if err := codec.Decode(side.from, obj); err != nil {
			return c, err
		}
		obj.GetObjectKind().SetGroupVersionKind(gvk)
		*side.to = obj
	}
	return c, nil
}

// passes reports whether all predicates accept the change.
func (c change) passes(list []predicate.Predicate) bool {
	for _, p := range list {
		var ok bool
		switch {
		case c.now == nil:
			ok = c.old == nil || p.Delete(event.DeleteEvent{Object: c.old})
		case c.old == nil:
			ok = p.Create(event.CreateEvent{Object: c.now, IsInInitialList: c.listed})
		default:
			ok = p.Update(event.UpdateEvent{ObjectOld: c.old, ObjectNew: c.now})
		}
		if !ok {
			return false
		}
	}
	return true
}

// handle returns the objects that, according to the handler, the change
// concerns.
func (c change) handle(ctx context.Context, h handler.EventHandler) []reconcile.Request {
	q := &collector[queue.Item]{}
	switch {
	case c.now == nil && c.old == nil:
	case c.now == nil:
		h.Delete(ctx, event.DeleteEvent{Object: c.old}, q)
	case c.old == nil:
		h.Create(ctx, event.CreateEvent{Object: c.now, IsInInitialList: c.listed}, q)
	default:
		h.Update(ctx, event.UpdateEvent{ObjectOld: c.old, ObjectNew: c.now}, q)
	}
	return requests(q.items)
}

// requests converts the items that a handler has added.
func requests(items []queue.Item) (list []reconcile.Request) {
	for _, item := range items {
		if r, ok := any(item).(reconcile.Request); ok {
			list = append(list, r)
		}
	}
	return list
}
