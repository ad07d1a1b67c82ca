package abi

import "strings"

// Lengths of Kubernetes' names, in bytes.
const (
	maxNamePart  = 63
	maxSubdomain = 253
)

// isQualifiedName reports whether s may be the key of a label or annotation: a
// name, or a DNS subdomain, a slash and a name. The rules are those of
// apimachinery's validation.IsQualifiedName, which this package must not import.
func isQualifiedName(s string) bool {
	domain, name, found := strings.Cut(s, "/")
	if !found {
		domain, name = "", s
	}
	return isNamePart(name) && (!found || isSubdomain(domain))
}

// isFinalizer reports whether s may be the name of a custom finalizer, which
// the API server wants to have a domain.
func isFinalizer(s string) bool { return strings.Contains(s, "/") && isQualifiedName(s) }

func isNamePart(s string) bool {
	return len(s) <= maxNamePart && isAlnumBetween(s, func(c byte) bool { return isUpper(c) || isLowerOrDigit(c) }, "-_.")
}

func isSubdomain(s string) bool {
	if len(s) > maxSubdomain {
		return false
	}
	for label := range strings.SplitSeq(s, ".") {
		if !isAlnumBetween(label, isLowerOrDigit, "-") {
			return false
		}
	}
	return true
}

// isAlnumBetween reports whether s is not empty, starts and ends with what
// alnum accepts, and has nothing but that and the bytes of inner between.
func isAlnumBetween(s string, alnum func(byte) bool, inner string) bool {
	for i := range len(s) {
		edge := i == 0 || i == len(s)-1
		if !alnum(s[i]) && (edge || !strings.Contains(inner, s[i:i+1])) {
			return false
		}
	}
	return s != ""
}

func isUpper(c byte) bool { return c >= 'A' && c <= 'Z' }

func isLowerOrDigit(c byte) bool { return c >= 'a' && c <= 'z' || c >= '0' && c <= '9' }
