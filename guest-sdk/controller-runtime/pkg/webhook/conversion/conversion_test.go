// SPDX-License-Identifier: Apache-2.0

package conversion_test

import (
	"context"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	corev1 "k8s.io/api/core/v1"

	"sigs.k8s.io/controller-runtime/pkg/webhook/conversion"
)

// The versions of a kind, which store a value in different fields; v1 is the
// hub.
type (
	hub struct{ corev1.ConfigMap }
	v2  struct{ corev1.Secret }
	v3  struct{ corev1.Service }
)

func (*hub) Hub()                             {}
func (h *hub) DeepCopyObject() runtime.Object { return &hub{*h.DeepCopy()} }
func (o *v2) DeepCopyObject() runtime.Object  { return &v2{*o.DeepCopy()} }
func (o *v3) DeepCopyObject() runtime.Object  { return &v3{*o.DeepCopy()} }

var group = schema.GroupVersion{Group: "example.com", Version: "v1"}

func of[T runtime.Object](version string, obj T) T {
	obj.GetObjectKind().SetGroupVersionKind(schema.GroupVersionKind{Group: group.Group, Version: version, Kind: "App"})
	return obj
}

func newScheme() *runtime.Scheme {
	s := runtime.NewScheme()
	s.AddKnownTypeWithName(group.WithKind("App"), &hub{})
	s.AddKnownTypeWithName(schema.GroupVersionKind{Group: group.Group, Version: "v2", Kind: "App"}, &v2{})
	s.AddKnownTypeWithName(schema.GroupVersionKind{Group: group.Group, Version: "v3", Kind: "App"}, &v3{})
	return s
}

func spokes() []conversion.SpokeConverter[*hub] {
	return []conversion.SpokeConverter[*hub]{
		conversion.NewSpokeConverter(&v2{},
			func(_ context.Context, h *hub, o *v2) error { o.StringData = h.Data; return nil },
			func(_ context.Context, o *v2, h *hub) error { h.Data = o.StringData; return nil }),
		conversion.NewSpokeConverter(&v3{},
			func(_ context.Context, h *hub, o *v3) error { o.Spec.Selector = h.Data; return nil },
			func(_ context.Context, o *v3, h *hub) error { h.Data = o.Spec.Selector; return nil }),
	}
}

// Each version converts to each other version through the hub. A conversion to
// the same version, or from a version without a converter, is an error.
func TestHubSpoke_ConvertsEachVersionToEach(t *testing.T) {
	c, err := conversion.NewHubSpokeConverter(&hub{}, spokes()...)(newScheme())
	if err != nil {
		t.Fatal(err)
	}
	data := map[string]string{"a": "b"}
	make3 := func(filled bool) []runtime.Object {
		one, two, three := of("v1", &hub{}), of("v2", &v2{}), of("v3", &v3{})
		if filled {
			one.Data, two.StringData, three.Spec.Selector = data, data, data
		}
		return []runtime.Object{one, two, three}
	}
	value := func(o runtime.Object) string {
		switch o := o.(type) {
		case *hub:
			return o.Data["a"]
		case *v2:
			return o.StringData["a"]
		case *v3:
			return o.Spec.Selector["a"]
		}
		return ""
	}
	for i, src := range make3(true) {
		for j, dst := range make3(false) {
			err := c.ConvertObject(t.Context(), src, dst)
			if (err != nil) != (i == j) || i != j && value(dst) != "b" {
				t.Errorf("%T to %T: %v", src, dst, err)
			}
		}
	}
	if err := c.ConvertObject(t.Context(), of("v4", &v2{}), of("v1", &hub{})); err == nil {
		t.Error("from a version without a converter")
	}
}

// Each version except the hub needs one converter.
func TestHubSpoke_NeedsEachVersionOnce(t *testing.T) {
	all := spokes()
	for _, list := range [][]conversion.SpokeConverter[*hub]{nil, all[:1], {all[0], all[0], all[1]}} {
		if _, err := conversion.NewHubSpokeConverter(&hub{}, list...)(newScheme()); err == nil {
			t.Errorf("%d converters", len(list))
		}
	}
}

// A registry accepts one converter for a kind.
func TestRegistry_HasOneOfAKind(t *testing.T) {
	r := conversion.NewRegistry()
	c, _ := conversion.NewHubSpokeConverter(&hub{}, spokes()...)(newScheme())
	gk := schema.GroupKind{Group: group.Group, Kind: "App"}
	if err := r.RegisterConverter(gk, c); err != nil {
		t.Fatal(err)
	}
	if got, ok := r.GetConverter(gk); !ok || got != c || r.RegisterConverter(gk, c) == nil {
		t.Error("the converter of a kind")
	}
}

// A kind is convertible if one version is the hub and all others convert. If
// only some convert, it is an error. A kind with a single version is not
// convertible.
func TestIsConvertible_AllOrNone(t *testing.T) {
	s := newScheme()
	if ok, err := conversion.IsConvertible(s, &hub{}); ok || err == nil || !strings.Contains(err.Error(), "2 convert to none") {
		t.Errorf("a hub alone: %v %v", ok, err)
	}
	s = runtime.NewScheme()
	s.AddKnownTypeWithName(group.WithKind("App"), &hub{})
	if ok, err := conversion.IsConvertible(s, &hub{}); ok || err != nil {
		t.Errorf("one version: %v %v", ok, err)
	}
	s = runtime.NewScheme()
	s.AddKnownTypeWithName(group.WithKind("App"), &v2{})
	s.AddKnownTypeWithName(schema.GroupVersionKind{Group: group.Group, Version: "v2", Kind: "App"}, &v3{})
	if ok, err := conversion.IsConvertible(s, &v2{}); ok || err != nil {
		t.Errorf("versions that do not convert: %v %v", ok, err)
	}
}

// A decoder returns the type of the version in the text.
func TestDecoder_ReadsTheVersionThatItSays(t *testing.T) {
	d := conversion.NewDecoder(newScheme())
	obj, gvk, err := d.Decode([]byte(`{"apiVersion":"example.com/v2","kind":"App","metadata":{"name":"a"}}`))
	if err != nil {
		t.Fatal(err)
	}
	if o, ok := obj.(*v2); !ok || o.Name != "a" || gvk.Version != "v2" || o.TypeMeta != (metav1.TypeMeta{APIVersion: "example.com/v2", Kind: "App"}) {
		t.Errorf("%T %v", obj, gvk)
	}
	if _, _, err := d.Decode([]byte(`{"apiVersion":"example.com/v9","kind":"App"}`)); err == nil {
		t.Error("a version that the scheme does not know")
	}
}
