// SPDX-License-Identifier: Apache-2.0

package restapi

import (
	"cmp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"sigs.k8s.io/controller-runtime/pkg/internal/kinds"
)

// discover answers discovery requests. main sends them before the host has an
// API server, so the answer comes from the manager's scheme, like that of the
// mapper. It returns nil for other paths.
func (s Server) discover(path string) any {
	parts := strings.Split(strings.Trim(path, "/"), "/")
	switch {
	case parts[0] == "api" && len(parts) == 1:
		return &metav1.APIVersions{Versions: []string{"v1"}}
	case parts[0] == "api" && len(parts) == 2:
		return s.resources(schema.GroupVersion{Version: parts[1]})
	case parts[0] != "apis":
		return nil
	case len(parts) == 1:
		list := &metav1.APIGroupList{}
		for _, name := range s.groups() {
			list.Groups = append(list.Groups, *s.group(name))
		}
		return list
	case len(parts) == 2:
		if g := s.group(parts[1]); len(g.Versions) > 0 {
			return g
		}
	case len(parts) == 3:
		return s.resources(schema.GroupVersion{Group: parts[1], Version: parts[2]})
	}
	return nil
}

// groups returns the named groups.
func (s Server) groups() []string {
	var names []string
	for _, gv := range s.Client.Scheme().PrioritizedVersionsAllGroups() {
		if gv.Group != "" && len(s.served(gv)) > 0 {
			names = append(names, gv.Group)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

func (s Server) group(name string) *metav1.APIGroup {
	g := &metav1.APIGroup{Name: name}
	for _, gv := range s.Client.Scheme().PrioritizedVersionsForGroup(name) {
		if len(s.served(gv)) > 0 {
			g.Versions = append(g.Versions, metav1.GroupVersionForDiscovery{GroupVersion: gv.String(), Version: gv.Version})
		}
	}
	if len(g.Versions) > 0 {
		g.PreferredVersion = g.Versions[0]
	}
	return g
}

func (s Server) resources(gv schema.GroupVersion) any {
	list := &metav1.APIResourceList{GroupVersion: gv.String()}
	for _, m := range s.served(gv) {
		list.APIResources = append(list.APIResources, metav1.APIResource{
			Name: m.Resource.Resource, SingularName: strings.ToLower(m.GroupVersionKind.Kind), Kind: m.GroupVersionKind.Kind,
			Namespaced: m.Scope.Name() == meta.RESTScopeNameNamespace,
			Verbs:      metav1.Verbs{"create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"},
		})
	}
	if len(list.APIResources) == 0 {
		return nil
	}
	return list
}

// served returns the kinds of a version that can be listed. As in API servers,
// versions of built-in groups that are not stable are left out.
func (s Server) served(gv schema.GroupVersion) (list []*meta.RESTMapping) {
	if kinds.OfKubernetes(gv.Group) && strings.Trim(gv.Version, "v0123456789") != "" {
		return nil
	}
	known := s.Client.Scheme().KnownTypes(gv)
	for kind := range known {
		if known[kind+"List"] == nil {
			continue
		}
		if m, err := s.Mapper.RESTMapping(schema.GroupKind{Group: gv.Group, Kind: kind}, gv.Version); err == nil {
			list = append(list, m)
		}
	}
	slices.SortFunc(list, func(a, b *meta.RESTMapping) int { return cmp.Compare(a.Resource.Resource, b.Resource.Resource) })
	return list
}
