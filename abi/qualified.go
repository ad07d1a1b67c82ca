// SPDX-License-Identifier: Apache-2.0

package abi

import (
	"regexp"
	"slices"
	"strings"
)

// Lengths of Kubernetes' names, in bytes.
const (
	maxNamePart  = 63
	maxSubdomain = 253
)

var (
	namePart  = regexp.MustCompile(`^[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?$`)
	subdomain = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$`)
)

// isQualifiedName reports whether s may be the key of a label or annotation: a name, or a DNS subdomain, a slash and a name. The rules are
// those of apimachinery's validation.IsQualifiedName, which this package must not import.
func isQualifiedName(s string) bool {
	domain, name, found := strings.Cut(s, "/")
	if found && (len(domain) > maxSubdomain || !subdomain.MatchString(domain)) {
		return false
	}
	if !found {
		name = s
	}
	return len(name) <= maxNamePart && namePart.MatchString(name)
}

// Kubernetes' own finalizers, which protect something that does not belong to the module. Those without a domain are for the garbage
// collector and namespaces.
var (
	reservedDomains    = []string{"kubernetes.io", "k8s.io"}
	reservedFinalizers = []string{"foregroundDeletion", "orphan", "kubernetes"}
)

// isReserved reports whether a finalizer is one of Kubernetes' own.
func isReserved(finalizer string) bool {
	domain, _, _ := strings.Cut(finalizer, "/")
	return slices.Contains(reservedFinalizers, finalizer) ||
		slices.ContainsFunc(reservedDomains, func(d string) bool { return domain == d || strings.HasSuffix(domain, "."+d) })
}
