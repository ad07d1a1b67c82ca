// SPDX-License-Identifier: Apache-2.0

package memapi

import (
	"cmp"
	"context"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/validation"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/wasmctl/wasmctl/host/kubeapi/kinds"
	"github.com/wasmctl/wasmctl/host/strictjson"
)

// Kind is a kind that a Server serves.
type Kind struct {
	schema.GroupVersionKind

	Resource   string // the plural
	Namespaced bool
	// Status reports whether the kind has a status subresource.
	Status bool
	// Schema is the schema of a custom resource; if nil, server-side apply treats each list
	// as one value.
	Schema *Schema

	builtIn bool
}

// clusterScoped are the cluster-scoped kinds of Kubernetes.
var clusterScoped = strings.Fields(`Namespace Node PersistentVolume ComponentStatus ClusterRole ClusterRoleBinding StorageClass CSIDriver
CSINode VolumeAttachment VolumeAttributesClass PriorityClass IngressClass RuntimeClass CertificateSigningRequest ClusterTrustBundle
ValidatingAdmissionPolicy ValidatingAdmissionPolicyBinding MutatingAdmissionPolicy MutatingAdmissionPolicyBinding
ValidatingWebhookConfiguration MutatingWebhookConfiguration FlowSchema PriorityLevelConfiguration StorageVersion StorageVersionMigration
IPAddress ServiceCIDR ResourceSlice DeviceClass DeviceTaintRule`)

// noResource are types that have metadata but are not resources of their own.
var noResource = strings.Fields(`Scale Eviction TokenRequest Binding PodStatusResult RangeAllocation TokenReview SubjectAccessReview
LocalSubjectAccessReview SelfSubjectAccessReview SelfSubjectRulesReview SelfSubjectReview ImageReview`)

// builtIns returns the kinds of Kubernetes that client-go knows, the preferred version of
// each group first. It is computed once and must not be changed.
var builtIns = sync.OnceValue(func() []Kind {
	var all []Kind
	for gvk, t := range scheme.Scheme.AllKnownTypes() {
		if _, ok := t.FieldByName("ObjectMeta"); !ok || gvk.Version == runtime.APIVersionInternal || slices.Contains(noResource, gvk.Kind) {
			continue
		}
		status, _ := t.FieldByName("Status")
		all = append(all, Kind{
			GroupVersionKind: gvk, Resource: kinds.Plural(gvk.Kind), Namespaced: !slices.Contains(clusterScoped, gvk.Kind),
			Status: status.Type != nil && status.Type.Kind() == reflect.Struct, builtIn: true,
		})
	}
	rank := func(k Kind) int {
		return slices.Index(scheme.Scheme.PrioritizedVersionsForGroup(k.Group), k.GroupVersion())
	}
	slices.SortFunc(all, func(a, b Kind) int {
		return cmp.Or(cmp.Compare(a.Group, b.Group), cmp.Compare(rank(a), rank(b)), cmp.Compare(a.Kind, b.Kind))
	})
	return all
})

// GuessKind returns a custom kind with a guessed plural and a status subresource.
func GuessKind(gvk schema.GroupVersionKind, namespaced bool) Kind {
	return Kind{GroupVersionKind: gvk, Resource: kinds.Plural(gvk.Kind), Namespaced: namespaced, Status: true}
}

// ParseCRD returns the kinds of a CustomResourceDefinition, given as JSON: one for each
// served version.
func ParseCRD(js []byte) ([]Kind, error) {
	var c apiextensionsv1.CustomResourceDefinition
	if err := strictjson.Unmarshal(js, &c); err != nil {
		return nil, fmt.Errorf("CustomResourceDefinition: %w", err)
	}
	if c.GroupVersionKind() != apiextensionsv1.SchemeGroupVersion.WithKind("CustomResourceDefinition") {
		return nil, fmt.Errorf("CustomResourceDefinition: it is a %s %s", c.APIVersion, c.Kind)
	}
	if err := validateCRD(c.DeepCopy()); err != nil {
		return nil, fmt.Errorf("CustomResourceDefinition[%s]: %w", c.Name, err)
	}
	var served []Kind
	for _, v := range c.Spec.Versions {
		if !v.Served {
			continue
		}
		s, err := newSchema(v.Schema.OpenAPIV3Schema)
		if err != nil {
			return nil, fmt.Errorf("CustomResourceDefinition[%s]: version %s: %w", c.Name, v.Name, err)
		}
		served = append(served, Kind{
			GroupVersionKind: schema.GroupVersionKind{Group: c.Spec.Group, Version: v.Name, Kind: c.Spec.Names.Kind},
			Resource:         c.Spec.Names.Plural, Namespaced: c.Spec.Scope == apiextensionsv1.NamespaceScoped,
			Status: v.Subresources != nil && v.Subresources.Status != nil, Schema: s,
		})
	}
	return served, nil
}

// validateCRD returns the errors that the API server has for a new CustomResourceDefinition.
func validateCRD(c *apiextensionsv1.CustomResourceDefinition) error {
	apiextensionsv1.SetDefaults_CustomResourceDefinition(c)
	apiextensionsv1.SetDefaults_CustomResourceDefinitionSpec(&c.Spec)
	var internal apiextensions.CustomResourceDefinition
	if err := apiextensionsv1.Convert_v1_CustomResourceDefinition_To_apiextensions_CustomResourceDefinition(c, &internal, nil); err != nil {
		return err
	}
	if errs := validation.ValidateCustomResourceDefinition(context.Background(), &internal); len(errs) > 0 {
		return apierrors.NewInvalid(apiextensionsv1.Kind("CustomResourceDefinition"), c.Name, errs)
	}
	return nil
}

// GVR returns the kind's resource.
func (k *Kind) GVR() schema.GroupVersionResource { return k.GroupVersion().WithResource(k.Resource) }

// verbs are the verbs that all resources support.
var verbs = metav1.Verbs{"create", "delete", "get", "list", "patch", "update", "watch"}

// apiResource returns the discovery document of the kind.
func (k *Kind) apiResource() []metav1.APIResource {
	list := []metav1.APIResource{{Name: k.Resource, SingularName: strings.ToLower(k.Kind), Namespaced: k.Namespaced, Kind: k.Kind, Verbs: verbs}}
	if k.Status {
		list = append(list, metav1.APIResource{Name: k.Resource + "/status", Namespaced: k.Namespaced, Kind: k.Kind, Verbs: metav1.Verbs{"get", "patch", "update"}})
	}
	return list
}

// discover answers the requests of discovery: /api, /apis, /api/VERSION and
// /apis/GROUP/VERSION. It returns nil for any other path.
func (s *Server) discover(path []string) any {
	switch {
	case len(path) == 1 && path[0] == "api":
		return &metav1.APIVersions{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "APIVersions"}, Versions: []string{"v1"}}
	case len(path) == 1 && path[0] == "apis":
		return s.groups()
	case len(path) == 2 && path[0] == "api":
		return s.resources(schema.GroupVersion{Version: path[1]})
	case len(path) == 3 && path[0] == "apis":
		return s.resources(schema.GroupVersion{Group: path[1], Version: path[2]})
	}
	return nil
}

func (s *Server) groups() *metav1.APIGroupList {
	list := &metav1.APIGroupList{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "APIGroupList"}}
	at := map[string]int{}
	for _, k := range s.kinds {
		if k.Group == "" {
			continue
		}
		i, ok := at[k.Group]
		if !ok {
			i = len(list.Groups)
			at[k.Group] = i
			list.Groups = append(list.Groups, metav1.APIGroup{Name: k.Group})
		}
		g := &list.Groups[i]
		v := metav1.GroupVersionForDiscovery{GroupVersion: k.GroupVersion().String(), Version: k.Version}
		if !slices.Contains(g.Versions, v) {
			g.Versions = append(g.Versions, v)
			g.PreferredVersion = g.Versions[0]
		}
	}
	return list
}

func (s *Server) resources(gv schema.GroupVersion) any {
	list := &metav1.APIResourceList{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "APIResourceList"}, GroupVersion: gv.String()}
	for i := range s.kinds {
		if k := &s.kinds[i]; k.GroupVersion() == gv {
			list.APIResources = append(list.APIResources, k.apiResource()...)
		}
	}
	if len(list.APIResources) == 0 {
		return nil
	}
	return list
}
