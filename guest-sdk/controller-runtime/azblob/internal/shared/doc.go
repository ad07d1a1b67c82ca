// Package shared is what Azure's library of blobs lacks for wasip1: wasmctl build adds the
// other file where a program uses that library.
package shared
