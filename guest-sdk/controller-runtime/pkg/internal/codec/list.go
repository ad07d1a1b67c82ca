// SPDX-License-Identifier: Apache-2.0

package codec

import (
	"fmt"
	"reflect"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	wasmctl "github.com/wasmctl/wasmctl/guest-sdk/go"

	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
)

// KindOfItems returns the kind of the items of a list, or the kind of an
// object.
func KindOfItems(list runtime.Object, scheme *runtime.Scheme) (schema.GroupVersionKind, error) {
	gvk, err := apiutil.GVKForObject(list, scheme)
	gvk.Kind = strings.TrimSuffix(gvk.Kind, "List")
	return gvk, err
}

// List decodes objects and appends them to a list.
type List struct {
	items reflect.Value // the slice

	apiVersion, kind string // kind of the items
}

// NewList empties the list. gvk is the kind of its items.
func NewList(list runtime.Object, gvk schema.GroupVersionKind) (*List, error) {
	ptr, err := meta.GetItemsPtr(list)
	if err != nil {
		return nil, fmt.Errorf("list %T: %w", list, err)
	}
	items := reflect.ValueOf(ptr).Elem()
	items.Set(reflect.MakeSlice(items.Type(), 0, 0))
	apiVersion, kind := gvk.ToAPIVersionAndKind()
	return &List{items, apiVersion, kind}, nil
}

// Append decodes an object, appends it to the list, and returns it.
func (l *List) Append(v wasmctl.Value) (runtime.Object, error) {
	n := l.items.Len()
	typ := l.items.Type().Elem()
	l.items.Grow(1)
	l.items.SetLen(n + 1)
	item := l.items.Index(n)
	if typ.Kind() == reflect.Pointer {
		item.Set(reflect.New(typ.Elem()))
	} else {
		item = item.Addr()
	}
	obj, ok := item.Interface().(runtime.Object)
	if !ok {
		return nil, fmt.Errorf("list of %s: its items are not objects", typ)
	}
	if err := Decode(wasmctl.Object{Value: v}, obj); err != nil {
		return nil, err
	}
	SetKind(obj, l.apiVersion, l.kind)
	return obj, nil
}

// Drop removes the last object.
func (l *List) Drop() { l.items.SetLen(l.items.Len() - 1) }

// Len returns the number of objects.
func (l *List) Len() int { return l.items.Len() }

// DecodeList replaces the content of list by a page of the API server. As with
// the real client, typed items have no kind.
func DecodeList(page wasmctl.List, list interface {
	metav1.ListInterface
	runtime.Object
}, gvk schema.GroupVersionKind,
) error {
	l, err := NewList(list, gvk)
	if err != nil {
		return err
	}
	for _, o := range page.Items() {
		obj, err := l.Append(o.Value)
		if err != nil {
			return err
		}
		switch obj.(type) {
		case runtime.Unstructured, *metav1.PartialObjectMetadata:
		default:
			SetKind(obj, "", "")
		}
	}
	if _, ok := list.(runtime.Unstructured); !ok {
		list.GetObjectKind().SetGroupVersionKind(schema.GroupVersionKind{})
	}
	list.SetResourceVersion(page.ResourceVersion())
	list.SetContinue(page.Continue())
	list.SetRemainingItemCount(nil)
	if page.Exists("metadata", "remainingItemCount") {
		left := page.Int("metadata", "remainingItemCount")
		list.SetRemainingItemCount(&left)
	}
	return nil
}

// Keep removes the items of a list for which keep returns false.
func Keep(list runtime.Object, keep func(runtime.Object) bool) error {
	ptr, err := meta.GetItemsPtr(list)
	if err != nil {
		return fmt.Errorf("list %T: %w", list, err)
	}
	items := reflect.ValueOf(ptr).Elem()
	n := 0
	for i := range items.Len() {
		item := items.Index(i)
		if item.Kind() != reflect.Pointer {
			item = item.Addr()
		}
		if obj, ok := item.Interface().(runtime.Object); ok && keep(obj) {
			items.Index(n).Set(items.Index(i))
			n++
		}
	}
	items.SetLen(n)
	return nil
}
