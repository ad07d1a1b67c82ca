// SPDX-License-Identifier: Apache-2.0

package kubeapi

import "strings"

// String returns the policy as one line: "get, patch configmaps in all
// namespaces; ...", or "nothing".
func (p *Policy) String() string {
	if len(p.rules) == 0 && !p.all {
		return "nothing"
	}
	return strings.Join(p.Describe(), "; ")
}
