// Package fileutil is what the libraries of etcd lack for wasip1: wasmctl build adds the
// other file where a program uses them. The type is the library's.
package fileutil

import "os"

// LockedFile is one that this process has locked.
type LockedFile struct{ *os.File }
