// SPDX-License-Identifier: Apache-2.0

package kubeapi

import "strings"

// checkPointers checks that the paths of a JSON patch are JSON pointers (RFC 6901). The API server
// accepts others too, with its own interpretation.
func checkPointers(ops []any) error {
	for i, op := range ops {
		o, ok := op.(map[string]any)
		if !ok {
			return badf("patch: operation %d: must be a map", i)
		}
		for _, key := range []string{"path", "from"} {
			pointer, given := o[key]
			text, ok := pointer.(string)
			if given && (!ok || !isPointer(text)) || !given && key == "path" {
				return badf("patch: operation %d: %s: must be a JSON pointer, for example /metadata/labels", i, key)
			}
		}
	}
	return nil
}

func isPointer(s string) bool {
	if s != "" && s[0] != '/' {
		return false
	}
	for i := range len(s) {
		if s[i] == '~' && (i+1 == len(s) || s[i+1] != '0' && s[i+1] != '1') {
			return false
		}
	}
	return true
}

// leadsToManagers reports whether a JSON pointer leads to the managed fields, to a parent of them,
// or into them.
func leadsToManagers(pointer any) bool {
	p, _ := pointer.(string)
	p = strings.NewReplacer("~1", "/", "~0", "~").Replace(p)
	return p == "" || p == "/metadata" || p == "/metadata/managedFields" || strings.HasPrefix(p, "/metadata/managedFields/")
}
