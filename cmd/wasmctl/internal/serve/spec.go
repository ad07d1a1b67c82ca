// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"cmp"
	"maps"
	"strconv"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/wasmctl/wasmctl"
	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/api/v1alpha1"
	"github.com/wasmctl/wasmctl/host/share"
	"github.com/wasmctl/wasmctl/internal/failure"
)

// reconciler is a Reconciler or a ClusterReconciler.
type reconciler struct {
	meta   metav1.ObjectMeta
	kind   string
	spec   v1alpha1.ClusterReconcilerSpec // its Namespaces are empty for a Reconciler
	status v1alpha1.Status
}

// read decodes an object.
func read(kind string, decode func(any) error) (*reconciler, error) {
	if kind == v1alpha1.KindCluster {
		var o v1alpha1.ClusterReconciler
		err := decode(&o)
		return &reconciler{meta: o.ObjectMeta, kind: kind, spec: o.Spec, status: o.Status}, err
	}
	var o v1alpha1.Reconciler
	err := decode(&o)
	return &reconciler{meta: o.ObjectMeta, kind: kind, spec: v1alpha1.ClusterReconcilerSpec{ReconcilerSpec: o.Spec}, status: o.Status}, err
}

func (r *reconciler) id() id {
	return id{r.kind, abi.Key{Namespace: r.meta.Namespace, Name: r.meta.Name}}
}

// home returns the namespace of the service account and of the objects that the spec names.
func (r *reconciler) home() string { return cmp.Or(r.meta.Namespace, r.spec.ServiceAccountNamespace) }

// controller returns the name of the controller. Names are unique, because the name of a
// ClusterReconciler has no dot.
func (r *reconciler) controller() string {
	if r.kind == v1alpha1.KindCluster {
		return r.meta.Name
	}
	return r.meta.Namespace + "." + r.meta.Name
}

// tenant returns the tenant that is charged. A ClusterReconciler is its own.
func (r *reconciler) tenant() string {
	return cmp.Or(r.meta.Namespace, share.OwnTenant(r.controller()))
}

// user returns the user to impersonate for all requests.
func (r *reconciler) user(account string) string {
	return v1alpha1.ServiceAccountUser + r.home() + ":" + r.account(account)
}

// account returns the name of the service account. otherwise is that of Reconcilers that name none.
func (r *reconciler) account(otherwise string) string {
	return cmp.Or(r.spec.ServiceAccountName, otherwise, "default")
}

// requested returns the value of the annotation that requests a reconcile.
func (r *reconciler) requested() string {
	return cmp.Or(r.meta.Annotations[v1alpha1.RequestedAt], r.meta.Annotations[v1alpha1.FluxRequestedAt])
}

// options returns the options of the controller, without settings in ConfigMaps and Secrets, and without
// the place of the module: other options restart the controller, and another module is swapped in. If the
// spec is invalid or exceeds the bounds, it returns an error that matches wasmctl.ErrUsage.
func (r *reconciler) options(account string, most v1alpha1.Bounds) (wasmctl.ControllerOptions, error) {
	s := r.spec.ReconcilerSpec
	errs := append(s.Validate(nil), s.Module.Validate(field.NewPath("module"))...)
	if errs = append(errs, most.Check(&s.CommonSpec)...); len(errs) > 0 {
		return wasmctl.ControllerOptions{}, failure.Usage.Wrap(v1alpha1.Errors(errs, inSpec))
	}
	out := wasmctl.ControllerOptions{ControllerSpec: v1alpha1.ControllerSpec{
		Name: r.controller(), Namespaces: r.spec.Namespaces, CommonSpec: s.CommonSpec,
	}}
	out.Module.Controller, out.Module.Verify = s.Module.Controller, s.Module.Verify
	out.As, out.Tenant, out.WebhookPrefix = r.user(account), r.meta.Namespace, "/"+r.controller()
	if r.kind == v1alpha1.KindNamespaced {
		out.Namespaces, out.Confine = []string{r.meta.Namespace}, r.meta.Namespace
	}
	out.Limits = v1alpha1.Limits{}
	for _, name := range []abi.LimitName{abi.LimitMemory, abi.LimitTimeout} {
		text := strconv.FormatInt(most.Limits[name], 10)
		if name == abi.LimitTimeout {
			text += "ns"
		}
		out.Limits[string(name)] = intstr.FromString(text)
	}
	maps.Copy(out.Limits, s.Limits)
	if out.Concurrency == nil {
		out.Concurrency = new(min(4, most.Concurrency))
	}
	out.Rollout = s.Rollout.Tenant()
	return out, nil
}

// inSpec returns the path of a field in a Reconciler.
func inSpec(path string) string { return "spec." + path }
