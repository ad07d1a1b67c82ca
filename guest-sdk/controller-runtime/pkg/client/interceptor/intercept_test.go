// SPDX-License-Identifier: Apache-2.0

package interceptor_test

import (
	"context"
	"reflect"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
)

// calls makes each call of a client once.
func calls(ctx context.Context, c client.WithWatch) {
	obj := func() *corev1.Pod { return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "a"}} }
	apply := client.ApplyConfigurationFromUnstructured(nil)
	patch := client.MergeFrom(obj())
	_ = c.Get(ctx, client.ObjectKeyFromObject(obj()), obj())
	_ = c.List(ctx, &corev1.PodList{})
	_ = c.Create(ctx, obj())
	_ = c.Update(ctx, obj())
	_ = c.Patch(ctx, obj(), patch)
	_ = c.Apply(ctx, apply)
	_ = c.Delete(ctx, obj())
	_ = c.DeleteAllOf(ctx, obj())
	_, _ = c.Watch(ctx, &corev1.PodList{})
	s := c.SubResource("x")
	_ = s.Get(ctx, obj(), obj())
	_ = s.Create(ctx, obj(), obj())
	_ = s.Update(ctx, obj())
	_ = s.Patch(ctx, obj(), patch)
	_ = s.Apply(ctx, apply)
	_ = c.Status().Update(ctx, obj())
}

// noting returns functions that record their names and have no other effect.
func noting(note func(name string)) interceptor.Funcs {
	var f interceptor.Funcs
	v := reflect.ValueOf(&f).Elem()
	for i := range v.NumField() {
		if name := v.Type().Field(i).Name; name != "SubResource" {
			v.Field(i).Set(reflect.MakeFunc(v.Field(i).Type(), func([]reflect.Value) []reflect.Value {
				note(name)
				var out []reflect.Value
				for j := range v.Field(i).Type().NumOut() {
					out = append(out, reflect.Zero(v.Field(i).Type().Out(j)))
				}
				return out
			}))
		}
	}
	return f
}

// Each call goes to its function. Without functions it goes to the client,
// which may be another interceptor.
func TestNewClient_EachCallHasItsFunction(t *testing.T) {
	var names []string
	c := interceptor.NewClient(fake.NewFakeClient(), noting(func(name string) { names = append(names, name) }))
	want := "Get List Create Update Patch Apply Delete DeleteAllOf Watch " +
		"SubResourceGet SubResourceCreate SubResourceUpdate SubResourcePatch SubResourceApply SubResourceUpdate"
	for range 2 {
		calls(t.Context(), c)
		if got := strings.Join(names, " "); got != want {
			t.Errorf("%s\nwant %s", got, want)
		}
		names, c = nil, interceptor.NewClient(c, interceptor.Funcs{})
	}
	if gvk, err := c.GroupVersionKindFor(&corev1.Pod{}); err != nil || gvk.Kind != "Pod" || c.Scheme() == nil || c.RESTMapper() == nil {
		t.Errorf("%v %v", gvk, err)
	}
}

// SubResource takes precedence over the functions of subresources.
func TestNewClient_SubResourceComesFirst(t *testing.T) {
	f := noting(func(name string) { t.Errorf("%s was called", name) })
	inner := fake.NewFakeClient()
	asked := ""
	f.SubResource = func(_ client.WithWatch, name string) client.SubResourceClient {
		asked += name
		return inner.SubResource(name)
	}
	c := interceptor.NewClient(inner, f)
	_ = c.SubResource("x").Update(t.Context(), &corev1.Pod{})
	_ = c.Status().Update(t.Context(), &corev1.Pod{})
	if asked != "xstatus" {
		t.Errorf("asked for %q", asked)
	}
}
