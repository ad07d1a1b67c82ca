// SPDX-License-Identifier: Apache-2.0

// Package fileutil has the functions that Prometheus does not define for wasip1. wasmctl build adds
// the other file to that library, which has the type.
package fileutil

// Releaser releases a lock.
type Releaser interface{ Release() error }
