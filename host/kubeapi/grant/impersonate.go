// SPDX-License-Identifier: Apache-2.0

package grant

import (
	"slices"

	"github.com/wasmctl/wasmctl/abi"
)

// Verbs of constrained impersonation, which API servers support from Kubernetes 1.36 on. To act as
// a service account, a client needs the first verb on the account, and the second one, combined
// with the verb of each request, on the resource of the request.
const (
	verbImpersonate   = "impersonate:serviceaccount"
	verbImpersonateOn = "impersonate-on:serviceaccount:"
)

// ImpersonateRules permit requests as any service account of a namespace (or "" for all), with all
// rights of that account.
func ImpersonateRules(namespace string) []abi.Capability {
	c := abi.Capability{Resource: "serviceaccounts", Verbs: []string{"impersonate"}}
	if namespace != "" {
		c.Namespaces = []string{namespace}
	}
	return []abi.Capability{c}
}

// ReviewRules permit requests as a service account that ask for its rights, under constrained
// impersonation.
func ReviewRules() []abi.Capability {
	return []abi.Capability{{Group: "authorization.k8s.io", Resource: "selfsubjectaccessreviews", Verbs: []string{verbImpersonateOn + "create"}}}
}

// Impersonation returns the roles with which an account may act as another one under constrained
// impersonation, limited to the given rules. The API server also checks the rights of the other
// account. own are further rights that the account gets for itself.
func Impersonation(account, as Account, rules, own []abi.Capability) []any {
	scopes := flatten(append(slices.Clip(own), abi.Capability{
		Group: "authentication.k8s.io", Resource: "serviceaccounts", Verbs: []string{verbImpersonate}, Names: []string{as.Name}, Namespaces: []string{as.Namespace},
	}))
	for ns, all := range flatten(rules) {
		if scopes[ns] == nil {
			scopes[ns] = map[right]bool{}
		}
		for r := range all {
			r.verb = verbImpersonateOn + r.verb
			scopes[ns][r] = true
		}
	}
	return roles(account, account.Name+":"+as.Namespace+":"+as.Name, scopes)
}
