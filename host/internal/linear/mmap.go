// SPDX-License-Identifier: Apache-2.0

//go:build unix

package linear

import (
	"os"
	"unsafe"

	"golang.org/x/sys/unix"
)

// reserve maps inaccessible pages, which the system never counts as memory.
func reserve(n int) ([]byte, error) {
	space, err := unix.Mmap(-1, 0, n, unix.PROT_NONE, unix.MAP_PRIVATE|unix.MAP_ANON)
	if err != nil {
		return nil, os.NewSyscallError("mmap", err)
	}
	keepSmall(space)
	return space, nil
}

func (m *Memory) commit(n int) error {
	return os.NewSyscallError("mprotect", unix.Mprotect(m.space[:n], unix.PROT_READ|unix.PROT_WRITE))
}

func (m *Memory) free() {
	var err error
	if KeepFreed.Load() {
		// A mapping again, and not one whose pages are taken away: the system puts it
		// together with those beside it, and never has too many.
		_, err = unix.MmapPtr(-1, 0, unsafe.Pointer(&m.space[0]), uintptr(len(m.space)), unix.PROT_NONE, unix.MAP_PRIVATE|unix.MAP_ANON|unix.MAP_FIXED)
		keepSmall(m.space)
	} else {
		err = unix.Munmap(m.space)
	}
	if err != nil {
		panic("BUG: memory: release: " + err.Error())
	}
}
