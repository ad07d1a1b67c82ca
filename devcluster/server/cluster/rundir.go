// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
)

// runDirPrefix is the prefix of the names of private directories.
const runDirPrefix = "devcluster-run-"

// maxSocketDir is the maximum length of a directory for a unix socket: the kernel allows 103 bytes on macOS (107 on Linux), including
// "/etcd.sock".
const maxSocketDir = 90

// runDir is a private directory of one Run, for etcd's sockets and for temporary data. A unix socket needs no port, is not accessible to
// other users of the machine, and cannot be in the data dir, whose path may be too long for a socket.
//
// The directory is locked during its Run. An unlocked one is left over from a kill -9; every Run removes such directories when it starts.
type runDir struct {
	path string
	lock *os.File // the directory, opened and locked
}

// runDirBase returns the parent of private directories: the system's temporary directory, or /tmp if its path is too long for sockets.
func runDirBase() string {
	if base := os.TempDir(); len(base)+1+len(runDirPrefix)+10 <= maxSocketDir {
		return base
	}
	return "/tmp"
}

// newRunDir removes the stale directories in base and creates a new one.
func newRunDir(base string) (*runDir, error) {
	removeStaleRunDirs(base)
	for {
		path, err := os.MkdirTemp(base, runDirPrefix)
		if err != nil {
			return nil, fmt.Errorf("run dir: make: %w", err)
		}
		// Between the two steps, another process may consider the new directory stale. Then it is gone, or soon will be, so create another
		// one.
		lock, err := lockRunDir(path)
		if err == nil {
			return &runDir{path: path, lock: lock}, nil
		}
		if !errors.Is(err, os.ErrNotExist) && !errors.Is(err, syscall.EWOULDBLOCK) {
			os.Remove(path)
			return nil, fmt.Errorf("run dir[%s]: lock: %w", path, err)
		}
	}
}

// lockRunDir locks the directory at path. The error is os.ErrNotExist if the path is not, or no longer, that directory, and EWOULDBLOCK if
// it is locked.
func lockRunDir(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_DIRECTORY|syscall.O_NOFOLLOW, 0)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		f.Close()
		return nil, err
	}
	held, err := f.Stat()
	if err == nil {
		var now os.FileInfo
		if now, err = os.Lstat(path); err == nil && !os.SameFile(held, now) {
			err = os.ErrNotExist
		}
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

// removeStaleRunDirs removes directories in base that killed processes of this user have left. Those that cannot be locked or removed are
// in use, or belong to others.
func removeStaleRunDirs(base string) {
	entries, _ := filepath.Glob(filepath.Join(base, runDirPrefix+"*"))
	for _, path := range entries {
		if !ownedByUs(path) {
			continue
		}
		if lock, err := lockRunDir(path); err == nil {
			(&runDir{path: path, lock: lock}).remove()
		}
	}
}

// ownedByUs reports whether path is a directory of this process's user, because root could remove those of others.
func ownedByUs(path string) bool {
	info, err := os.Lstat(path)
	if err != nil || !info.IsDir() {
		return false
	}
	st, ok := info.Sys().(*syscall.Stat_t)
	return ok && int(st.Uid) == os.Getuid()
}

// remove removes the directory and its contents.
func (d *runDir) remove() {
	_ = os.RemoveAll(d.path) // the rest is removed by the next start
	d.lock.Close()
}
