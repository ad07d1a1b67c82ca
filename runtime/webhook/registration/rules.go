// SPDX-License-Identifier: Apache-2.0

package registration

import rbacv1 "k8s.io/api/rbac/v1"

// Rules returns the rights that a Registrar needs: in the whole cluster, and in its namespace. It writes only the CRDs of these names; with
// none, it converts nothing.
func Rules(o *Options, crdNames ...string) (cluster, namespaced []rbacv1.PolicyRule) {
	configs := []string{"validatingwebhookconfigurations", "mutatingwebhookconfigurations"}
	cluster = []rbacv1.PolicyRule{{
		APIGroups: []string{"admissionregistration.k8s.io"}, Resources: configs, ResourceNames: []string{o.Name}, Verbs: []string{"get", "update", "delete"},
	}}
	if !o.BundlesOnly { // a name is not known when the right to create is checked
		cluster = append(cluster, rbacv1.PolicyRule{APIGroups: []string{"admissionregistration.k8s.io"}, Resources: configs, Verbs: []string{"create"}})
	}
	if len(crdNames) > 0 {
		cluster = append(cluster,
			rbacv1.PolicyRule{APIGroups: []string{crds.Group}, Resources: []string{crds.Resource}, Verbs: []string{"list"}},
			rbacv1.PolicyRule{APIGroups: []string{crds.Group}, Resources: []string{crds.Resource}, ResourceNames: crdNames, Verbs: []string{"get", "update"}})
	}
	return cluster, []rbacv1.PolicyRule{
		{APIGroups: []string{""}, Resources: []string{"configmaps"}, ResourceNames: []string{o.Name}, Verbs: []string{"get", "create", "patch", "delete"}},
	}
}
