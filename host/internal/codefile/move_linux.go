package codefile

import (
	"errors"
	"fmt"
	"os"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/wasmctl/wasmctl/internal/aside"
)

// spare is how many times the size of the code has to be free in the directory.
const spare = 4

// Move moves code, which is as wazero has mapped it and which nobody executes yet, into
// a file in the directory. An error that does not match ErrLost says that the code is
// where it was.
//
// Safe: the file has the bytes of the code, which were authenticated before wazero got
// them. It is made for this user alone and loses its name at once, so no other user can
// open it, and nobody writes to it after that. Its mapping has the same bytes, the same
// protection and, in pages, the same length as the one that it replaces in one step. So
// all addresses into the code stay good, those of its end too, and wazero unmaps it as
// what it has mapped. The code has no addresses of its own: wazero loads it anywhere.
func Move(code []byte, dir string) error {
	if len(code) == 0 || uintptr(unsafe.Pointer(&code[0]))%uintptr(os.Getpagesize()) != 0 {
		return errors.New("BUG: the code is no mapping of its own")
	}
	if err := Suits(dir, len(code)); err != nil {
		return err
	}
	f, err := aside.Write(dir, code)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }() // the mapping stays
	// Elsewhere first: a file system may refuse, which must not cost the code.
	at, err := unix.MmapPtr(int(f.Fd()), 0, nil, uintptr(len(code)), unix.PROT_READ|unix.PROT_EXEC, unix.MAP_PRIVATE)
	if err != nil {
		return os.NewSyscallError("mmap", err)
	}
	size := uintptr(len(code))
	if _, err := unix.MremapPtr(at, size, unsafe.Pointer(&code[0]), size, unix.MREMAP_MAYMOVE|unix.MREMAP_FIXED); err != nil {
		return fmt.Errorf("%w: %w", ErrLost, errors.Join(os.NewSyscallError("mremap", err), unix.MunmapPtr(at, size)))
	}
	return nil
}

// Rest drops what of code that was moved is in memory. What is executed later comes from
// the file again; the system mostly still has that.
//
// Safe at any time, also while the code is executed: its pages are those of a file that
// nobody changes.
func Rest(code []byte) error {
	return os.NewSyscallError("madvise", unix.Madvise(code, unix.MADV_DONTNEED))
}

// Suits says whether a file in the directory spares memory: not where files are in
// memory themselves, nor where the code would fill the disk.
func Suits(dir string, size int) error {
	var s unix.Statfs_t
	if err := unix.Statfs(dir, &s); err != nil {
		return fmt.Errorf("%s: %w", dir, os.NewSyscallError("statfs", err))
	}
	if kind := int64(s.Type); kind == unix.TMPFS_MAGIC || kind == unix.RAMFS_MAGIC { //nolint:unconvert // 32 bits elsewhere
		return fmt.Errorf("%s: %w: its files are in memory", dir, ErrUnsuited)
	}
	if free := s.Bavail * uint64(s.Bsize); free < uint64(size)*spare { //nolint:gosec // not negative
		return fmt.Errorf("%s: %w: %d bytes are free", dir, ErrUnsuited, free)
	}
	return nil
}
