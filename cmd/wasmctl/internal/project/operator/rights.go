// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"cmp"
	"slices"
	"strings"

	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/host/kubeapi"
)

// capabilities returns the rights of rules in the form of a manifest, each once and in a fixed
// order. A manifest names each group, so rules for all groups are in refused. The module itself
// knows the resources of a group (package rules of the stand-in for controller-runtime). Watches
// need no right. The host does what only the manager needs rights for. guards reports whether the
// manager guards its metrics.
func capabilities(rules []rule, guards bool) (asked []abi.Capability, refused []string) {
	type about struct{ group, resource, sub, namespace, names string }
	verbs := map[about][]string{}
	for _, r := range rules {
		for _, group := range r.groups {
			for _, resource := range r.resources {
				a := about{group: group, namespace: r.namespace, names: strings.Join(r.names, ";")}
				if a.group == "core" {
					a.group = ""
				}
				a.resource, a.sub, _ = strings.Cut(resource, "/")
				switch {
				case a.group == "*":
					refused = append(refused, a.group+"/"+resource)
				case a.resource == "events" && (a.group == "" || a.group == "events.k8s.io"):
					verbs[about{group: "events.k8s.io", resource: "events"}] = []string{"create", "patch"}
				case !ofManager(a.group, a.resource, guards):
					verbs[a] = append(verbs[a], known(r.verbs)...)
				}
			}
		}
	}
	for a, list := range verbs {
		slices.Sort(list)
		list = slices.Compact(list)
		if len(list) == 0 {
			continue
		}
		c := abi.Capability{Group: a.group, Resource: a.resource, Verbs: list}
		if a.sub != "" {
			c.Subresources = []string{a.sub}
		}
		if a.namespace != "" {
			c.Namespaces = []string{a.namespace}
		}
		if a.names != "" {
			c.Names = strings.Split(a.names, ";")
		}
		asked = append(asked, c)
	}
	slices.SortFunc(asked, func(a, b abi.Capability) int {
		return cmp.Or(cmp.Compare(a.Group, b.Group), cmp.Compare(a.Resource, b.Resource), slices.Compare(a.Subresources, b.Subresources),
			slices.Compare(a.Namespaces, b.Namespaces), slices.Compare(a.Names, b.Names))
	})
	slices.Sort(refused)
	return asked, slices.Compact(refused)
}

// ofManager reports whether only a manager uses a resource: for leader election, or to guard its
// metrics.
func ofManager(group, resource string, guards bool) bool {
	switch group {
	case "coordination.k8s.io":
		return resource == "leases"
	case "authentication.k8s.io":
		return guards && resource == "tokenreviews"
	case "authorization.k8s.io":
		return guards && resource == "subjectaccessreviews"
	}
	return false
}

// known returns the verbs that a capability can have. Objects are deleted one by one. A right to
// list implies get, because a Get from a native cache needs only list.
func known(verbs []string) []string {
	var list []string
	for _, v := range verbs {
		switch v {
		case "list":
			list = append(list, "get", "list")
		case "get", "create", "update", "patch", "delete":
			list = append(list, v)
		case "deletecollection":
			list = append(list, "list", "delete")
		case "*":
			return []string{"*"}
		default:
			if slices.Contains(kubeapi.AdmissionVerbs, v) {
				list = append(list, v)
			}
		}
	}
	return list
}
