// SPDX-License-Identifier: Apache-2.0

// Package spill stores rarely read bytes outside of the memory of the process. On the heap, Go's garbage collector would also reserve the
// same amount of free memory for them.
package spill

import (
	"errors"
	"fmt"
	"os"
	"sync/atomic"
)

// minSize is the minimum size in bytes for which a file is worthwhile.
const minSize = 64 << 10

// Bytes are immutable bytes in an unnamed file, which is closed once the Bytes are unreachable. They are in memory if they are small, or if
// no file can be created.
type Bytes struct {
	file *os.File // nil if the bytes are in memory
	size int
	here []byte

	charged atomic.Bool
}

// Put stores b, which must not change.
func Put(b []byte) *Bytes {
	if len(b) >= minSize {
		if file, err := write(b); err == nil {
			return &Bytes{file: file, size: len(b)}
		}
	}
	return &Bytes{here: b}
}

// Get returns the bytes. The caller must not change them, and should verify them if their integrity matters: a disk may fail.
func (b *Bytes) Get() ([]byte, error) {
	if b.file == nil {
		return b.here, nil
	}
	out := make([]byte, b.size)
	if _, err := b.file.ReadAt(out, 0); err != nil {
		return nil, fmt.Errorf("read bytes from a temporary file: %w", err)
	}
	return out, nil
}

// Size returns the number of bytes that Get reads into memory: 0 if they are there already.
func (b *Bytes) Size() int64 {
	if b.file == nil {
		return 0
	}
	return int64(b.size)
}

// Charge reports whether it is called for the first time. Its caller accounts for the Bytes.
func (b *Bytes) Charge() (first bool) { return !b.charged.Swap(true) }

// close closes the file of Bytes that no caller has.
func (b *Bytes) close() error {
	if b.file == nil {
		return nil
	}
	return b.file.Close()
}

// write writes b to a file in the directory for temporary files.
func write(b []byte) (*os.File, error) {
	f, err := Create("")
	if err != nil {
		return nil, err
	}
	if _, err := f.Write(b); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// Create creates an empty file that only this user can access, in a directory or, if dir is "", in the directory for temporary files. The
// file has no name any more when Create returns.
func Create(dir string) (*os.File, error) {
	f, err := os.CreateTemp(dir, "wasmctl-spill-")
	if err != nil {
		return nil, err
	}
	if err := os.Remove(f.Name()); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}
