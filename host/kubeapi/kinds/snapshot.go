// SPDX-License-Identifier: Apache-2.0

package kinds

import (
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// snapshot is the API server's information about its kinds at one time. It never changes.
type snapshot struct {
	// kinds are in the API server's order of groups. In a group, the preferred version comes first.
	kinds []Kind
	byGVK map[schema.GroupVersionKind]int
	// Indices into kinds by lower-case plural and singular, by short name and by lower-case kind,
	// in the order of kinds.
	byName, byShort, byKind map[string][]int
}

// newSnapshot builds a snapshot from an answer of discovery. It copies failed group versions from
// the old snapshot, because an aggregated API may be down only for a while.
func newSnapshot(groups []*metav1.APIGroup, lists []*metav1.APIResourceList, old *snapshot, failed map[schema.GroupVersion]error) *snapshot {
	byGV := make(map[string][]Kind, len(lists))
	for _, list := range lists {
		byGV[list.GroupVersion] = kindsOf(list)
	}
	s := &snapshot{
		byGVK: map[schema.GroupVersionKind]int{}, byName: map[string][]int{}, byShort: map[string][]int{}, byKind: map[string][]int{},
	}
	for _, group := range groups {
		for _, gv := range versions(group) {
			s.add(byGV[gv])
		}
	}
	if old == nil {
		return s
	}
	for _, k := range old.kinds {
		if _, ok := failed[k.GVK().GroupVersion()]; ok {
			s.add([]Kind{k})
		}
	}
	return s
}

// versions returns the group versions of a group, the preferred one first.
func versions(group *metav1.APIGroup) []string {
	list := make([]string, 0, len(group.Versions)+1)
	if group.PreferredVersion.GroupVersion != "" {
		list = append(list, group.PreferredVersion.GroupVersion)
	}
	for _, v := range group.Versions {
		if !slices.Contains(list, v.GroupVersion) {
			list = append(list, v.GroupVersion)
		}
	}
	return list
}

func kindsOf(list *metav1.APIResourceList) []Kind {
	gv, err := schema.ParseGroupVersion(list.GroupVersion)
	if err != nil {
		return nil // an aggregated API may return anything
	}
	var kinds []Kind
	subs := map[string]map[string]schema.GroupVersionKind{}
	for i := range list.APIResources {
		r := &list.APIResources[i]
		resource, sub, isSub := strings.Cut(r.Name, "/")
		if isSub {
			if subs[resource] == nil {
				subs[resource] = map[string]schema.GroupVersionKind{}
			}
			subs[resource][sub] = subresourceGVK(r, gv)
			continue
		}
		k := Kind{
			Group: gv.Group, Version: gv.Version, Kind: r.Kind, Resource: r.Name, Singular: r.SingularName,
			ShortNames: r.ShortNames, Namespaced: r.Namespaced, Verbs: r.Verbs,
		}
		if k.Singular == "" {
			k.Singular = strings.ToLower(r.Kind)
		}
		kinds = append(kinds, k)
	}
	for i := range kinds {
		kinds[i].Subresources = subs[kinds[i].Resource]
	}
	return kinds
}

func subresourceGVK(r *metav1.APIResource, gv schema.GroupVersion) schema.GroupVersionKind {
	gvk := gv.WithKind(r.Kind)
	if r.Version != "" {
		gvk.Group, gvk.Version = r.Group, r.Version
	}
	return gvk
}

func (s *snapshot) add(kinds []Kind) {
	for i := range kinds {
		k := &kinds[i]
		n := len(s.kinds)
		s.kinds = append(s.kinds, *k)
		if _, twice := s.byGVK[k.GVK()]; !twice {
			s.byGVK[k.GVK()] = n
		}
		plural, singular := strings.ToLower(k.Resource), strings.ToLower(k.Singular)
		index(s.byName, plural, n)
		if singular != plural {
			index(s.byName, singular, n)
		}
		index(s.byKind, strings.ToLower(k.Kind), n)
		for _, short := range k.ShortNames {
			index(s.byShort, short, n)
		}
	}
}

func index(m map[string][]int, key string, n int) {
	m[key] = append(m[key], n)
}
