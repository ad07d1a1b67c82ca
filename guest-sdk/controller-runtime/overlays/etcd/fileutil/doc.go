// SPDX-License-Identifier: Apache-2.0

// Package fileutil has the functions that etcd's library does not define for wasip1. wasmctl
// build adds the other file to that library, which has the type.
package fileutil

import "os"

// LockedFile is a file that this process has locked.
type LockedFile struct{ *os.File }
