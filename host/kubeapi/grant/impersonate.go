package grant

import (
	"github.com/wasmctl/wasmctl/abi"
)

// Verbs of constrained impersonation, which API servers know from Kubernetes 1.36
// on: who acts as a service account needs the first on the account, and the second
// with the verb of each request on what that is for.
const (
	verbImpersonate   = "impersonate:serviceaccount"
	verbImpersonateOn = "impersonate-on:serviceaccount:"
)

// ImpersonateRules let requests be sent as any service account of a namespace, ""
// for all of them: with all rights that the account has.
func ImpersonateRules(namespace string) []abi.Capability {
	c := abi.Capability{Resource: "serviceaccounts", Verbs: []string{"impersonate"}}
	if namespace != "" {
		c.Namespaces = []string{namespace}
	}
	return []abi.Capability{c}
}

// ReviewRules let requests that are sent as a service account ask what this may do,
// under constrained impersonation.
func ReviewRules() []abi.Capability {
	return []abi.Capability{{Group: "authorization.k8s.io", Resource: "selfsubjectaccessreviews", Verbs: []string{verbImpersonateOn + "create"}}}
}

// Impersonation returns the roles by which an account may act as another one, for
// what rules allow and nothing else: constrained impersonation. The API server
// asks whether the other one may do it as well.
func Impersonation(account, as Account, rules []abi.Capability) []any {
	scopes := map[string]map[right]bool{
		as.Namespace: {{group: "authentication.k8s.io", resource: "serviceaccounts", verb: verbImpersonate, name: as.Name}: true},
	}
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
