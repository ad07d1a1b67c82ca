// SPDX-License-Identifier: Apache-2.0

// Package kinds maps kinds to resources without an API server.
package kinds

import (
	"strings"
	"sync"

	wasmctl "github.com/wasmctl/wasmctl/guest-sdk/go"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// clusterScoped has the built-in cluster-scoped kinds.
var clusterScoped = map[schema.GroupKind]bool{}

func init() {
	for group, list := range map[string][]string{
		"":                             {"Namespace", "Node", "PersistentVolume", "ComponentStatus"},
		"admissionregistration.k8s.io": {"MutatingWebhookConfiguration", "ValidatingWebhookConfiguration", "ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding", "MutatingAdmissionPolicy", "MutatingAdmissionPolicyBinding"},
		"apiextensions.k8s.io":         {"CustomResourceDefinition"},
		"apiregistration.k8s.io":       {"APIService"},
		"authentication.k8s.io":        {"TokenReview", "SelfSubjectReview"},
		"authorization.k8s.io":         {"SelfSubjectAccessReview", "SelfSubjectRulesReview", "SubjectAccessReview"},
		"certificates.k8s.io":          {"CertificateSigningRequest", "ClusterTrustBundle"},
		"flowcontrol.apiserver.k8s.io": {"FlowSchema", "PriorityLevelConfiguration"},
		"networking.k8s.io":            {"IngressClass", "IPAddress", "ServiceCIDR"},
		"node.k8s.io":                  {"RuntimeClass"},
		"rbac.authorization.k8s.io":    {"ClusterRole", "ClusterRoleBinding"},
		"resource.k8s.io":              {"DeviceClass", "ResourceSlice"},
		"scheduling.k8s.io":            {"PriorityClass"},
		"storage.k8s.io":               {"StorageClass", "CSIDriver", "CSINode", "VolumeAttachment", "VolumeAttributesClass"},
		"gateway.networking.k8s.io":    {"GatewayClass"},
	} {
		for _, kind := range list {
			clusterScoped[schema.GroupKind{Group: group, Kind: kind}] = true
		}
	}
}

// mapper guesses the resource from the kind, by the rules for plurals. The
// scope comes from a list of the built-in kinds and from LearnClusterScoped.
type mapper struct {
	// known has the kinds of the scheme. It is made on first use, which most
	// programs never reach: with client-go's scheme, it is a megabyte of maps
	// that each garbage collection would scan.
	known func() *meta.DefaultRESTMapper
}

// NewMapper returns a mapper for the kinds of the scheme. A module cannot query
// the API server for its kinds.
func NewMapper(scheme *runtime.Scheme) meta.RESTMapper {
	return &mapper{sync.OnceValue(func() *meta.DefaultRESTMapper {
		m := meta.NewDefaultRESTMapper(scheme.PrioritizedVersionsAllGroups())
		for gvk := range scheme.AllKnownTypes() {
			if gvk.Version != runtime.APIVersionInternal {
				singular := gvk.GroupVersion().WithResource(strings.ToLower(gvk.Kind))
				m.AddSpecific(gvk, Resource(gvk), singular, scope(gvk.GroupKind()))
			}
		}
		return m
	})}
}

// Resource guesses the resource of a kind.
func Resource(gvk schema.GroupVersionKind) schema.GroupVersionResource {
	return gvk.GroupVersion().WithResource(wasmctl.Plural(gvk.Kind))
}

// ClusterScoped reports whether the kind is known to be cluster-scoped.
func ClusterScoped(gk schema.GroupKind) bool { return clusterScoped[gk] }

func scope(gk schema.GroupKind) meta.RESTScope {
	if ClusterScoped(gk) {
		return meta.RESTScopeRoot
	}
	return meta.RESTScopeNamespace
}

// RESTMapping implements meta.RESTMapper, also for kinds without a Go type.
func (m *mapper) RESTMapping(gk schema.GroupKind, versions ...string) (*meta.RESTMapping, error) {
	if err := Ask(gk); err != nil {
		return nil, err
	}
	for _, version := range versions {
		if version == "" {
			continue
		}
		gvk := gk.WithVersion(version)
		return &meta.RESTMapping{Resource: Resource(gvk), GroupVersionKind: gvk, Scope: scope(gk)}, nil
	}
	mapping, err := m.known().RESTMapping(gk)
	if err != nil {
		return nil, err
	}
	mapping.Scope = scope(gk)
	return mapping, nil
}

// RESTMappings implements meta.RESTMapper.
func (m *mapper) RESTMappings(gk schema.GroupKind, versions ...string) ([]*meta.RESTMapping, error) {
	if err := Ask(gk); err != nil {
		return nil, err
	}
	return m.known().RESTMappings(gk, versions...)
}

// KindFor implements meta.RESTMapper.
func (m *mapper) KindFor(r schema.GroupVersionResource) (schema.GroupVersionKind, error) {
	gvk, err := m.known().KindFor(r)
	if err == nil && Ask(gvk.GroupKind()) != nil {
		err = &meta.NoResourceMatchError{PartialResource: r}
	}
	return gvk, err
}

// KindsFor implements meta.RESTMapper.
func (m *mapper) KindsFor(r schema.GroupVersionResource) ([]schema.GroupVersionKind, error) {
	return m.known().KindsFor(r)
}

// ResourceFor implements meta.RESTMapper.
func (m *mapper) ResourceFor(r schema.GroupVersionResource) (schema.GroupVersionResource, error) {
	return m.known().ResourceFor(r)
}

// ResourcesFor implements meta.RESTMapper.
func (m *mapper) ResourcesFor(r schema.GroupVersionResource) ([]schema.GroupVersionResource, error) {
	return m.known().ResourcesFor(r)
}

// ResourceSingularizer implements meta.RESTMapper.
func (m *mapper) ResourceSingularizer(resource string) (string, error) {
	return m.known().ResourceSingularizer(resource)
}

// LearnClusterScoped records that the kind is cluster-scoped.
func LearnClusterScoped(apiVersion, kind string) {
	clusterScoped[schema.FromAPIVersionAndKind(apiVersion, kind).GroupKind()] = true
}
