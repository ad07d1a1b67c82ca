// SPDX-License-Identifier: Apache-2.0

package grant

import (
	"bytes"
	"cmp"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/host/kubeapi"
)

// Account is the service account of a controller. Its roles have the same name. A ClusterRole is
// called Namespace:Name, because it has no namespace.
type Account struct{ Namespace, Name string }

// LeaseRules returns the rights for an election: a Lease of this name. Kubernetes cannot limit a
// create to a name.
func LeaseRules(namespace, name string) []abi.Capability {
	lease := abi.Capability{Group: "coordination.k8s.io", Resource: "leases", Namespaces: []string{namespace}}
	create, use := lease, lease
	create.Verbs = []string{kubeapi.VerbCreate, kubeapi.VerbList} // list shows other groups that run the same objects
	use.Verbs, use.Names = []string{kubeapi.VerbGet, kubeapi.VerbUpdate}, []string{name}
	return []abi.Capability{create, use}
}

// ShardRules returns the rights of replicas that share the objects: Leases with names that are not
// known in advance, one for each replica. Their watch must show all of them.
func ShardRules(namespace string) []abi.Capability {
	return []abi.Capability{{
		Group: "coordination.k8s.io", Resource: "leases", Namespaces: []string{namespace},
		Verbs: []string{kubeapi.VerbGet, kubeapi.VerbList, kubeapi.VerbWatch, kubeapi.VerbCreate, kubeapi.VerbUpdate, kubeapi.VerbDelete},
	}}
}

// EventRules returns the rights for events in a namespace, or in all if it is "".
func EventRules(namespace string) []abi.Capability {
	c := abi.Capability{Group: "events.k8s.io", Resource: "events", Verbs: []string{kubeapi.VerbCreate, kubeapi.VerbPatch}}
	if namespace != "" {
		c.Namespaces = []string{namespace}
	}
	return []abi.Capability{c}
}

// RBAC returns the objects that give an account the rights of rules, as far as RBAC supports them:
// the ServiceAccount, a ClusterRole for all namespaces and a Role for each other namespace, each
// with its binding. RBAC has no fields: a rule limited to fields is allowed completely, and get is
// added for the comparison. RBAC also cannot limit creation to names.
func RBAC(account Account, rules []abi.Capability) []any {
	sa := &corev1.ServiceAccount{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ServiceAccount"}, ObjectMeta: meta(account.Namespace, account.Name)}
	return append([]any{sa}, roles(account, account.Name, flatten(rules))...)
}

func meta(namespace, name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: map[string]string{"app.kubernetes.io/managed-by": "wasmctl"}}
}

// roles returns the roles of this name that give an account its rights, by namespace, with their
// bindings.
func roles(account Account, name string, scopes map[string]map[right]bool) (objects []any) {
	subjects := []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: account.Namespace, Name: account.Name}}
	typed := func(kind string) metav1.TypeMeta {
		return metav1.TypeMeta{APIVersion: rbacv1.SchemeGroupVersion.String(), Kind: kind}
	}
	for _, ns := range slices.Sorted(maps.Keys(scopes)) {
		policy := policyRules(scopes[ns], scopes[""], ns)
		if len(policy) == 0 {
			continue
		}
		if ns == "" {
			m := meta("", account.Namespace+":"+name)
			objects = append(objects,
				&rbacv1.ClusterRole{TypeMeta: typed("ClusterRole"), ObjectMeta: m, Rules: policy},
				&rbacv1.ClusterRoleBinding{
					TypeMeta: typed("ClusterRoleBinding"), ObjectMeta: m, Subjects: subjects,
					RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: m.Name},
				})
			continue
		}
		objects = append(objects,
			&rbacv1.Role{TypeMeta: typed("Role"), ObjectMeta: meta(ns, name), Rules: policy},
			&rbacv1.RoleBinding{
				TypeMeta: typed("RoleBinding"), ObjectMeta: meta(ns, name), Subjects: subjects,
				RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: name},
			})
	}
	return objects
}

// YAML writes objects as documents of one file.
func YAML(objects []any) ([]byte, error) {
	var b bytes.Buffer
	for i, o := range objects {
		doc, err := yaml.Marshal(o)
		if err != nil {
			return nil, err
		}
		if i > 0 {
			b.WriteString("---\n")
		}
		b.Write(doc)
	}
	return b.Bytes(), nil
}

// right is the smallest unit of RBAC: one verb on one resource, for one name or, if that is "", for
// any.
type right struct{ group, resource, verb, name string }

// flatten splits rules into rights, by namespace. "" means all namespaces.
func flatten(rules []abi.Capability) map[string]map[right]bool {
	scopes := map[string]map[right]bool{}
	for i := range rules {
		for _, ns := range kubeapi.OrAny(rules[i].Namespaces) {
			if scopes[ns] == nil {
				scopes[ns] = map[right]bool{}
			}
			rights(&rules[i], func(r right) { scopes[ns][r] = true })
		}
	}
	return scopes
}

func rights(c *abi.Capability, yield func(right)) {
	if isWebhook(c) {
		return
	}
	verbs, names := kubeapi.SpellOut(c.Verbs), kubeapi.OrAny(c.Names)
	if len(c.Fields) > 0 && slices.ContainsFunc(verbs, compares) {
		for _, name := range names {
			yield(right{c.Group, c.Resource, kubeapi.VerbGet, name})
		}
	}
	for _, sub := range kubeapi.OrAny(c.Subresources) {
		resource := strings.TrimSuffix(c.Resource+"/"+sub, "/")
		for _, verb := range verbs {
			for _, name := range names {
				if verb == kubeapi.VerbCreate && sub == "" {
					name = ""
				}
				yield(right{c.Group, resource, verb, name})
			}
		}
	}
}

// compares reports whether limited fields of a verb are enforced by reading the current object.
func compares(verb string) bool { return verb == kubeapi.VerbUpdate || verb == kubeapi.VerbPatch }

// policyRules combines the rights of one namespace into few rules. It omits rights that also exist
// for all namespaces or for any name.
func policyRules(rights, everywhere map[right]bool, ns string) []rbacv1.PolicyRule {
	type thing struct{ group, resource, verb string }
	names := map[thing][]string{} // if nil, any
	for r := range rights {
		any := r
		any.name = ""
		if r.name != "" && rights[any] || ns != "" && (everywhere[r] || everywhere[any]) {
			continue
		}
		t := thing{r.group, r.resource, r.verb}
		names[t] = append(names[t], orNone(r.name)...)
	}
	verbs := map[rule][]string{} // by group, resource and names
	for t, list := range names {
		slices.Sort(list)
		key := rule{t.group, t.resource, strings.Join(list, " ")}
		verbs[key] = append(verbs[key], t.verb)
	}
	resources := map[rule][]string{} // by group, verbs and names
	for key, list := range verbs {
		slices.SortFunc(list, byVerb)
		same := rule{key.group, strings.Join(list, " "), key.names}
		resources[same] = append(resources[same], key.of)
	}
	policy := make([]rbacv1.PolicyRule, 0, len(resources))
	for same, list := range resources {
		slices.Sort(list)
		policy = append(policy, rbacv1.PolicyRule{
			APIGroups: []string{same.group}, Resources: list, Verbs: strings.Fields(same.of), ResourceNames: strings.Fields(same.names),
		})
	}
	slices.SortFunc(policy, func(a, b rbacv1.PolicyRule) int {
		return cmp.Or(slices.Compare(a.APIGroups, b.APIGroups), slices.Compare(a.Resources, b.Resources), slices.Compare(a.ResourceNames, b.ResourceNames))
	})
	return policy
}

// rule is the key by which rights are combined.
type rule struct{ group, of, names string }

func orNone(name string) []string {
	if name == "" {
		return nil
	}
	return []string{name}
}

func byVerb(a, b string) int {
	all := kubeapi.SpellOut([]string{"*"})
	return cmp.Or(cmp.Compare(slices.Index(all, a), slices.Index(all, b)), cmp.Compare(a, b)) // others are specific to RBAC
}
