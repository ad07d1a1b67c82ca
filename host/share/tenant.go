// SPDX-License-Identifier: Apache-2.0

package share

import "strings"

// OwnTenant returns the tenant of a controller that is its own tenant. The slash keeps it
// apart from tenants that are namespaces.
func OwnTenant(controller string) string { return ownTenant + controller }

// IsOwnTenant reports whether a tenant is a controller.
func IsOwnTenant(tenant string) bool { return strings.HasPrefix(tenant, ownTenant) }

const ownTenant = "controller/"

// Usage is the row of a tenant in the ledger: what it uses of a process, and its share.
type Usage struct {
	Tenant string `json:"tenant"`
	// Memory is the memory that is charged to the tenant, in bytes, and Kinds its parts that
	// are not 0, by name. Pinned is the part that cannot be taken back, such as compiled code.
	// Share is the fair share.
	Memory int64            `json:"memory"`
	Kinds  map[string]int64 `json:"kinds"`
	Pinned int64            `json:"pinned"`
	Share  int64            `json:"share"`
	// Refused counts the requests for memory that were refused, and Reclaimed the running
	// guests that were interrupted for the shares of others.
	Refused   uint64 `json:"refused"`
	Reclaimed uint64 `json:"reclaimed"`
}
