// SPDX-License-Identifier: Apache-2.0

package fake

import (
	"errors"
	"fmt"
	"sync"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/client-go/applyconfigurations"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/structured-merge-diff/v6/typed"
)

// kindsOf returns a set of kinds, given by group.
func kindsOf(byGroup map[string][]string) map[schema.GroupKind]bool {
	set := map[schema.GroupKind]bool{}
	for group, list := range byGroup {
		for _, kind := range list {
			set[schema.GroupKind{Group: group, Kind: kind}] = true
		}
	}
	return set
}

// unconditional lists the kinds that accept an update without a
// resourceVersion.
var unconditional = kindsOf(map[string][]string{
	"": {
		"ConfigMap", "Endpoints", "Event", "LimitRange", "Namespace", "Node", "PersistentVolume", "PersistentVolumeClaim", "Pod",
		"PodTemplate", "ReplicationController", "ResourceQuota", "Secret", "Service", "ServiceAccount",
	},
	"apps":                         {"ControllerRevision", "DaemonSet", "Deployment", "ReplicaSet", "StatefulSet"},
	"autoscaling":                  {"HorizontalPodAutoscaler"},
	"batch":                        {"CronJob", "Job"},
	"certificates.k8s.io":          {"CertificateSigningRequest"},
	"discovery.k8s.io":             {"EndpointSlice"},
	"flowcontrol.apiserver.k8s.io": {"FlowSchema", "PriorityLevelConfiguration"},
	"networking.k8s.io":            {"Ingress", "IngressClass", "NetworkPolicy"},
	"rbac.authorization.k8s.io":    {"ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding"},
	"scheduling.k8s.io":            {"PriorityClass"},
	"storage.k8s.io":               {"StorageClass"},
})

// createOnUpdate lists the kinds that an update can create.
var createOnUpdate = kindsOf(map[string][]string{"": {"Event", "LimitRange", "Service"}})

// builtinStatus lists the kinds of Kubernetes with a status subresource.
var builtinStatus = func() map[schema.GroupVersionKind]bool {
	set := map[schema.GroupVersionKind]bool{}
	for gk := range kindsOf(map[string][]string{
		"":                             {"Namespace", "Node", "PersistentVolume", "PersistentVolumeClaim", "Pod", "ReplicationController", "Service"},
		"apiextensions.k8s.io":         {"CustomResourceDefinition"},
		"apps":                         {"DaemonSet", "Deployment", "ReplicaSet", "StatefulSet"},
		"autoscaling":                  {"HorizontalPodAutoscaler"},
		"batch":                        {"CronJob", "Job"},
		"certificates.k8s.io":          {"CertificateSigningRequest"},
		"flowcontrol.apiserver.k8s.io": {"FlowSchema", "PriorityLevelConfiguration"},
		"networking.k8s.io":            {"Ingress", "NetworkPolicy"},
		"policy":                       {"PodDisruptionBudget"},
		"storage.k8s.io":               {"VolumeAttachment"},
	}) {
		set[gk.WithVersion("v1")] = true
	}
	return set
}()

// converters tries several TypeConverters; the first one that knows a type is
// used.
type converters []managedfields.TypeConverter

// builtinTypes knows the types of Kubernetes.
var builtinTypes = sync.OnceValue(func() managedfields.TypeConverter {
	scheme := runtime.NewScheme() // not client-go's scheme, which may also have kinds of the test
	if err := clientgoscheme.AddToScheme(scheme); err != nil {
		panic(err)
	}
	return applyconfigurations.NewTypeConverter(scheme)
})

func typesOf(list []managedfields.TypeConverter) converters {
	if len(list) > 0 {
		return list
	}
	return converters{builtinTypes(), managedfields.NewDeducedTypeConverter()}
}

// ObjectToTyped implements managedfields.TypeConverter.
func (t converters) ObjectToTyped(obj runtime.Object, opts ...typed.ValidationOptions) (*typed.TypedValue, error) {
	var all []error
	for _, c := range t {
		v, err := c.ObjectToTyped(obj, opts...)
		if err == nil {
			return v, nil
		}
		all = append(all, err)
	}
	return nil, fmt.Errorf("type of %T: %w", obj, errors.Join(all...))
}

// TypedToObject implements managedfields.TypeConverter.
func (t converters) TypedToObject(v *typed.TypedValue) (runtime.Object, error) {
	var all []error
	for _, c := range t {
		obj, err := c.TypedToObject(v)
		if err == nil {
			return obj, nil
		}
		all = append(all, err)
	}
	return nil, errors.Join(all...)
}
