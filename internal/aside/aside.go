// Package aside keeps bytes that are seldom read out of the memory of the process. On
// the heap, Go's garbage collector would keep as much free memory beside them.
package aside

import (
	"errors"
	"fmt"
	"os"
)

// minSize is the size in bytes from which on a file is worth it.
const minSize = 64 << 10

// Bytes are bytes in a file without a name, which is closed once nobody has them any
// longer; or in memory, where they are few or there is no room for such a file. They do
// not change.
type Bytes struct {
	file *os.File // nil: memory has them
	size int
	here []byte
}

// Put keeps b, which does not change.
func Put(b []byte) *Bytes {
	if len(b) >= minSize {
		if file, err := write(b); err == nil {
			return &Bytes{file: file, size: len(b)}
		}
	}
	return &Bytes{here: b}
}

// Get returns the bytes. The caller does not change them, and checks them where that
// matters: a disk may fail.
func (b *Bytes) Get() ([]byte, error) {
	if b.file == nil {
		return b.here, nil
	}
	out := make([]byte, b.size)
	if _, err := b.file.ReadAt(out, 0); err != nil {
		return nil, fmt.Errorf("read bytes that were kept in a file: %w", err)
	}
	return out, nil
}

// write writes b into a file in the directory of temporary files.
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

// Create makes an empty file of this user alone, in a directory or, for "", in that of
// temporary files. It has lost its name before anything is in it.
func Create(dir string) (*os.File, error) {
	f, err := os.CreateTemp(dir, "wasmctl-aside-")
	if err != nil {
		return nil, err
	}
	if err := os.Remove(f.Name()); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}
