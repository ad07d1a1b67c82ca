// SPDX-License-Identifier: Apache-2.0

package uninstall

import (
	"context"
	"fmt"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/api/v1alpha1"
	"github.com/wasmctl/wasmctl/cmd/wasmctl/internal/deploy"
	"github.com/wasmctl/wasmctl/cmd/wasmctl/internal/serve"
)

var (
	crds       = schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}
	pods       = corev1.SchemeGroupVersion.WithResource("pods")
	namespaces = corev1.SchemeGroupVersion.WithResource("namespaces")
	accounts   = corev1.SchemeGroupVersion.WithResource("serviceaccounts")

	validatingWebhooks = admissionv1.SchemeGroupVersion.WithResource("validatingwebhookconfigurations")
	mutatingWebhooks   = admissionv1.SchemeGroupVersion.WithResource("mutatingwebhookconfigurations")

	clusterRoles        = rbacv1.SchemeGroupVersion.WithResource("clusterroles")
	clusterRoleBindings = rbacv1.SchemeGroupVersion.WithResource("clusterrolebindings")
)

// Patches that change the finalizer of a right, and no other one.
const (
	addFinalizer    = `{"metadata":{"finalizers":["` + serve.Finalizer + `"]}}`
	removeFinalizer = `{"metadata":{"$deleteFromPrimitiveList/finalizers":["` + serve.Finalizer + `"]}}`
)

// rightsOf returns the objects without any of which a process has no rights. The first is the ClusterRole.
func rightsOf(home abi.Key) []Object {
	name := abi.Key{Name: home.Namespace + ":" + home.Name}
	return []Object{{clusterRoles, name}, {clusterRoleBindings, name}, {accounts, home}}
}

// isRightOf reports whether an object has the labels of an installation of wasmctl serve, and its name.
func isRightOf(o *unstructured.Unstructured, home abi.Key) bool {
	namespace, name, component := deploy.Of(o)
	return component == deploy.ComponentServe && home == abi.Key{Namespace: namespace, Name: name}
}

// others returns the installations of wasmctl serve, other than home, that these ClusterRoleBindings are for. A tenant cannot create one. An
// installation is not there any more when its binding is being deleted.
func others(bindings []unstructured.Unstructured, home abi.Key) (list []string) {
	for i := range bindings {
		namespace, name, component := deploy.Of(&bindings[i])
		if key := (abi.Key{Namespace: namespace, Name: name}); component == deploy.ComponentServe && key != home && bindings[i].GetDeletionTimestamp() == nil {
			list = append(list, key.String())
		}
	}
	return list
}

// observe returns the state of the cluster.
func (r *Removal) observe(ctx context.Context) (*State, error) {
	s := &State{}
	for _, kind := range resources {
		objects, err := r.list(ctx, kind.gvr, "", metav1.ListOptions{LabelSelector: deploy.LabelNamespace})
		if err != nil {
			return nil, err
		}
		for i := range objects {
			s.add(kind.gvr, &objects[i], r.Namespace, r.Name)
		}
		if kind.gvr == clusterRoleBindings {
			s.Others = others(objects, abi.Key{Namespace: r.Namespace, Name: r.Name})
		}
	}
	for _, kind := range []string{v1alpha1.KindNamespaced, v1alpha1.KindCluster} {
		name := v1alpha1.GVR(kind).GroupResource().String()
		_, err := r.client.Resource(crds).Get(ctx, name, metav1.GetOptions{})
		if err == nil {
			s.CRDs = append(s.CRDs, Object{crds, abi.Key{Name: name}})
		} else if !apierrors.IsNotFound(err) {
			return nil, fmt.Errorf("customresourcedefinition[%s]: get: %w", name, err)
		}
	}
	reconcilers, err := r.server.Reconcilers(ctx, 0)
	for i := range reconcilers {
		s.Reconcilers = append(s.Reconcilers, reconcilerOf(&reconcilers[i]))
	}
	return s, err
}

// add adds an object with the labels of an installation. In a namespace other than that of the installation, it can only be a right of the
// processes, and shows nothing about the installation: tenants can create objects there.
func (s *State) add(gvr schema.GroupVersionResource, o *unstructured.Unstructured, namespace, name string) {
	ns, instance, component := deploy.Of(o)
	mine, inside := ns == namespace && instance == name, o.GetNamespace() == "" || o.GetNamespace() == ns
	switch {
	case ns == "" || !inside && (gvr.Group != rbac || !mine):
		return
	case !inside:
		s.Objects = append(s.Objects, Object{gvr, keyOf(o)})
	case mine:
		s.Objects = append(s.Objects, Object{gvr, keyOf(o)})
		s.Helm = s.Helm || o.GetAnnotations()["meta.helm.sh/release-name"] != ""
		s.Runs = s.Runs || component == deploy.ComponentRun
		if available, _, _ := unstructured.NestedInt64(o.Object, "status", "availableReplicas"); gvr == deployments && available > 0 {
			s.Available = true
		}
	}
}

// list returns the objects of a namespace, or of all. It returns none if the API server does not know the resource.
func (r *Removal) list(ctx context.Context, gvr schema.GroupVersionResource, namespace string, o metav1.ListOptions) ([]unstructured.Unstructured, error) {
	list, err := r.client.Resource(gvr).Namespace(namespace).List(ctx, o)
	switch {
	case apierrors.IsNotFound(err):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("%s: list: %w", gvr.GroupResource(), err)
	}
	return list.Items, nil
}

func reconcilerOf(o *unstructured.Unstructured) Reconciler {
	r := Reconciler{Object: Object{v1alpha1.GVR(o.GetKind()), keyOf(o)}, Version: o.GetResourceVersion(), Deleting: o.GetDeletionTimestamp() != nil}
	var typed v1alpha1.Reconciler // the fields that both kinds have
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, &typed); err != nil {
		return r // a version of the CRD with other fields
	}
	r.Orphan = typed.Spec.DeletionPolicy == v1alpha1.DeletionOrphan
	if c := meta.FindStatusCondition(typed.Status.Conditions, v1alpha1.Ready); c != nil {
		r.Waits = c.Message
	}
	return r
}

func keyOf(o *unstructured.Unstructured) abi.Key {
	return abi.Key{Namespace: o.GetNamespace(), Name: o.GetName()}
}
