// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"reflect"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/wasmctl/wasmctl"
	"github.com/wasmctl/wasmctl/api/v1alpha1"
)

// TestOptions_AnotherImageIsNoOtherOption: other options restart a controller, so another image would
// start without canary, shadow and probation.
func TestOptions_AnotherImageIsNoOtherOption(t *testing.T) {
	options := func(change func(*v1alpha1.Module)) wasmctl.ControllerOptions {
		r := &reconciler{kind: v1alpha1.KindNamespaced, meta: metav1.ObjectMeta{Namespace: "shop", Name: "web"}}
		r.spec.Module.Image = "registry.example/web:1.0"
		change(&r.spec.Module)
		o, err := r.options("", v1alpha1.Bounds{Concurrency: 16})
		if err != nil {
			t.Fatal(err)
		}
		return o
	}
	before := options(func(*v1alpha1.Module) {})
	for name, change := range map[string]func(*v1alpha1.Module){
		"another tag":    func(m *v1alpha1.Module) { m.Image = "registry.example/web:1.1" },
		"another source": func(m *v1alpha1.Module) { m.Image, m.ConfigMapKeyRef = "", &v1alpha1.KeyRef{Name: "web", Key: "m"} },
		"follow":         func(m *v1alpha1.Module) { m.Follow = "1m" },
	} {
		if after := options(change); !reflect.DeepEqual(before, after) {
			t.Errorf("%s: %+v\n%+v", name, before, after)
		}
	}
	if after := options(func(m *v1alpha1.Module) { m.Controller = "b" }); reflect.DeepEqual(before, after) {
		t.Error("another controller of the module is no other option")
	}
}
