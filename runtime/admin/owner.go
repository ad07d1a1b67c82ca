// SPDX-License-Identifier: Apache-2.0

package admin

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
)

// errForeign is wrapped by the error of a folder or a socket that another user controls:
// that user could answer in place of the process, or receive a module that is meant for it.
var errForeign = errors.New("other users can control it")

// makeDir creates the folder of a socket if it is missing, and checks it.
func makeDir(path string) error {
	dir := filepath.Dir(path)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	return checkDir(dir)
}

// checkDir returns an error if the folder of a socket cannot be trusted. Other users know
// the name of the default folder, and may be able to write to its parent: it must belong to
// this user alone, and must not be a link. A folder that the user has named must not allow
// others to replace its files.
func checkDir(dir string) error {
	const others, write = 0o077, 0o022
	stat, wanted := os.Stat, fs.FileMode(write)
	if dir == Dir() {
		stat, wanted = os.Lstat, others
	}
	info, err := stat(dir)
	if err != nil {
		return err
	}
	foreign := func(format string, args ...any) error {
		return fmt.Errorf("folder[%s]: %w: %s: set XDG_RUNTIME_DIR to a folder of yours, or choose a socket in one with --socket",
			dir, errForeign, fmt.Sprintf(format, args...))
	}
	uid, known := ownerOf(info)
	switch sticky := info.Mode()&fs.ModeSticky != 0 && dir != Dir(); {
	case !info.IsDir():
		return foreign("it is a link or a file: remove it")
	case known && uid != os.Geteuid() && (uid != 0 || dir == Dir()):
		return foreign("it belongs to user %d, and you are user %d", uid, os.Geteuid())
	case known && info.Mode()&wanted != 0 && !sticky:
		return foreign("its mode is %#o: run chmod 700", info.Mode().Perm())
	}
	return nil
}

// checkPeer returns an error if the process at the other end cannot be trusted: it must
// belong to this user or to root, which may do everything anyway.
func checkPeer(conn net.Conn) error {
	uid, known := peerOf(conn)
	if !known || uid == 0 || uid == os.Geteuid() {
		return nil
	}
	return fmt.Errorf("%w: the process at its other end belongs to user %d, and you are user %d", errForeign, uid, os.Geteuid())
}

// dial connects to a socket of this user.
func dial(ctx context.Context, d *net.Dialer, path string) (net.Conn, error) {
	conn, err := d.DialContext(ctx, "unix", path)
	if err != nil {
		return nil, err
	}
	if err := checkPeer(conn); err != nil {
		_ = conn.Close()
		return nil, err
	}
	return conn, nil
}

// ownListener accepts connections of this user only. The mode of the socket enforces the
// same, but is set only after the socket was created.
type ownListener struct{ net.Listener }

// Accept implements net.Listener.
func (l ownListener) Accept() (net.Conn, error) {
	for {
		conn, err := l.Listener.Accept()
		if err != nil || checkPeer(conn) == nil {
			return conn, err
		}
		_ = conn.Close()
	}
}
