// SPDX-License-Identifier: Apache-2.0

// Package util has the functions that Athenz' library does not define for wasip1. wasmctl build
// adds the other file to that library, which Pulsar's client uses.
package util
