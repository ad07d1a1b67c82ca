// SPDX-License-Identifier: Apache-2.0

package share

// OwnTenant returns the tenant of a controller that is its own tenant. The slash keeps it
// apart from tenants that are namespaces.
func OwnTenant(controller string) string { return "controller/" + controller }
