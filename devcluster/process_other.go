//go:build !unix

package devcluster

import "syscall"

// ownGroup does nothing on systems without process groups.
func ownGroup() *syscall.SysProcAttr { return nil }
