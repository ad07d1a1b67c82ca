// SPDX-License-Identifier: Apache-2.0

package linear

import (
	"errors"
	"os"
	"unsafe"

	"golang.org/x/sys/unix"
)

// hugePage is the least size of a huge page: a shorter mapping has none.
const hugePage = 2 << 20

// imageSource is a file without a name, in memory; or a copy, where the system grants
// no such file.
type imageSource struct {
	fd   int
	copy copySource // used where it has content
}

// create asks for a file that can never be executed: a hardened process gets no other.
func (s *imageSource) create(size int) error {
	fd, err := unix.MemfdCreate("wasmctl-image", unix.MFD_CLOEXEC|unix.MFD_NOEXEC_SEAL)
	if errors.Is(err, unix.EINVAL) { // a kernel before 6.3
		fd, err = unix.MemfdCreate("wasmctl-image", unix.MFD_CLOEXEC)
	}
	if err != nil {
		s.fd = -1
		return s.copy.create(size)
	}
	s.fd = fd
	if err := unix.Ftruncate(fd, int64(size)); err != nil {
		s.close()
		return os.NewSyscallError("ftruncate", err)
	}
	return nil
}

func (s *imageSource) write(b []byte, at int) error {
	if s.fd < 0 {
		return s.copy.write(b, at)
	}
	for len(b) > 0 {
		n, err := unix.Pwrite(s.fd, b, int64(at))
		if err != nil {
			return os.NewSyscallError("pwrite", err)
		}
		b, at = b[n:], at+n
	}
	return nil
}

// load maps the file in the place of the memory's pages: a page is shared until the
// memory writes to it, and then its own.
//
// Safe: the address and the length are those of a part of Memory.space, which is a
// mapping of ours that nobody else can free meanwhile, as the memory belongs to one
// goroutine. MAP_FIXED replaces pages of that part alone, and the file is as long. So
// views of it stay views of mapped, writable memory. Where it fails, the system may have
// taken the old pages away: the caller frees the memory, which unmaps all of space.
func (s *imageSource) load(m *Memory, size int) error {
	if s.fd < 0 {
		return s.copy.load(m, size)
	}
	space := m.space[:size]
	_, err := unix.MmapPtr(s.fd, 0, unsafe.Pointer(&space[0]), uintptr(len(space)), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_FIXED)
	if err != nil {
		return os.NewSyscallError("mmap", err)
	}
	if size >= hugePage {
		keepSmall(space)
	}
	return nil
}

func (s *imageSource) close() {
	if s.fd >= 0 {
		_ = unix.Close(s.fd) // memory, which has no errors to tell
	}
	s.copy.close()
}
