// SPDX-License-Identifier: Apache-2.0

package sockaddr

// NewRouteInfo returns an error: a module has no network.
func NewRouteInfo() (routeInfo, error) { return routeInfo{}, ErrNoRoute }

// GetDefaultInterfaceName returns an error: a module has no network.
func (routeInfo) GetDefaultInterfaceName() (string, error) { return "", ErrNoRoute }
