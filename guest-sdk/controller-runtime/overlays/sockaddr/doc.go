// SPDX-License-Identifier: Apache-2.0

// Package sockaddr has the functions that go-sockaddr does not define for wasip1. wasmctl build
// adds the other file to that library, which Vault's client uses. The library has the type and
// the error.
package sockaddr

import "errors"

type routeInfo struct{} //nolint:unused // by the other file, for wasip1

// ErrNoRoute is the error of a system without known routes.
var ErrNoRoute = errors.New("no route info found")
