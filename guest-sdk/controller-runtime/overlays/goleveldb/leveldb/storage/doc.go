// SPDX-License-Identifier: Apache-2.0

// Package storage has the functions that goleveldb does not define for wasip1. wasmctl build adds
// the other file to that library, which has the type.
package storage

type fileLock interface{ release() error } //nolint:unused // the library uses it
