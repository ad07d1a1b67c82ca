// Package sockaddr is what go-sockaddr lacks for wasip1: wasmctl build adds the other file
// where a program uses that library, as all do that have Vault's client. The type and the
// error are the library's.
package sockaddr

import "errors"

type routeInfo struct{} //nolint:unused // the library's

// ErrNoRoute says that routes are not known.
var ErrNoRoute = errors.New("no route info found")
