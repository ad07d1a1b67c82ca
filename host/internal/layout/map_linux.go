// SPDX-License-Identifier: Apache-2.0

package layout

import (
	"errors"
	"fmt"
	"io"
	"os"

	"golang.org/x/sys/unix"

	"github.com/wasmctl/wasmctl/internal/spill"
)

// mapped reports whether Map works on this system.
const mapped = true

// spare is how many times the size of the code must be free in the directory.
const spare = 4

// Map maps machine code, which is all size bytes of in. The code lies in a file in the
// first suitable directory, or otherwise in memory. It can be executed, but not written.
//
// This is safe because the file belongs to this user and loses its name before it has any
// content, so no other user can open it. Nothing writes to it after Map.
func Map(size int64, in io.Reader, dirs ...string) (code []byte, inFile bool, err error) {
	for _, dir := range dirs {
		f, code := open(dir, size)
		if f == nil {
			continue
		}
		n, err := io.Copy(struct{ io.Writer }{f}, in) // in parts as large as those of in
		if err == nil && n != size {
			err = io.ErrUnexpectedEOF
		}
		if err = errors.Join(err, f.Close()); err != nil {
			return nil, false, errors.Join(err, Unmap(code))
		}
		return code, true, nil
	}
	if code, err = unix.Mmap(-1, 0, int(size), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON); err != nil {
		return nil, false, os.NewSyscallError("mmap", err)
	}
	if _, err = io.ReadFull(in, code); err == nil {
		err = os.NewSyscallError("mprotect", unix.Mprotect(code, unix.PROT_READ|unix.PROT_EXEC))
	}
	if err != nil {
		return nil, false, errors.Join(err, Unmap(code))
	}
	return code, false, nil
}

// open makes a file for code in a directory, and maps it before it has content, because a
// file system may refuse to map it. A page that is read later has the content that the
// file has then. The file is nil if the directory cannot be used.
func open(dir string, size int64) (*os.File, []byte) {
	if Suits(dir, int(size)) != nil {
		return nil, nil
	}
	f, err := spill.Create(dir)
	if err != nil {
		return nil, nil
	}
	code, err := unix.Mmap(int(f.Fd()), 0, int(size), unix.PROT_READ|unix.PROT_EXEC, unix.MAP_PRIVATE)
	if err != nil {
		_ = f.Close() // it has no content
		return nil, nil
	}
	return f, code
}

// Unmap unmaps code that was not installed.
func Unmap(code []byte) error { return os.NewSyscallError("munmap", unix.Munmap(code)) }

// Rest releases the memory of code in a file. Code that is executed later is read from
// the file again; usually the system still has it in its page cache.
//
// It is safe at any time, also while the code is executed, because the pages are those of
// a file that never changes.
func Rest(code []byte) error {
	return os.NewSyscallError("madvise", unix.Madvise(code, unix.MADV_DONTNEED))
}

// Suits returns nil if a file in the directory saves memory. It returns an error if the
// directory's files are in memory themselves, or if the code would fill the disk.
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
