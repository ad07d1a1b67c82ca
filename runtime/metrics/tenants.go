// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"cmp"
	"maps"
	"slices"
)

// maxTenants bounds the tenants that have series of their own.
const maxTenants = 20

// largest returns the tenants with the most memory, and the sum of the others as "other".
func largest(tenants map[string]int64) map[string]int64 {
	names := slices.SortedFunc(maps.Keys(tenants), func(a, b string) int {
		return cmp.Or(cmp.Compare(tenants[b], tenants[a]), cmp.Compare(a, b))
	})
	out := map[string]int64{}
	for i, name := range names {
		if i >= maxTenants {
			name = "other"
		}
		out[name] += tenants[names[i]]
	}
	return out
}
