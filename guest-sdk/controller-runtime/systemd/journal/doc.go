// Package journal is what go-systemd lacks for wasip1: wasmctl build adds the other file
// where a program uses that library. The type is the library's.
package journal

// Priority is that of a message.
type Priority int
