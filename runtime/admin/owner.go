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

// errForeign is wrapped by the error of a folder, or of a socket, that somebody
// else controls: he could answer in the place of the process, or be asked to swap.
var errForeign = errors.New("not under your control alone")

// makeDir makes the folder of a socket where it is missing, and checks it.
func makeDir(path string) error {
	dir := filepath.Dir(path)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	return checkDir(dir)
}

// checkDir says why the folder of a socket cannot be trusted. The default folder
// has a name that others know, in a folder that may be theirs too: it must be ours
// alone, and no link. One that the user has named must not let others replace what
// is in it.
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

// checkPeer says why the process at the other end cannot be trusted: it must be
// this user's, or root's, which may do everything anyway.
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

// ownListener accepts connections of this user only. The mode of the socket says
// so too, but only after it was made.
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
