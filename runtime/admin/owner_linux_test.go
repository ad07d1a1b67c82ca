// SPDX-License-Identifier: Apache-2.0

package admin

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
)

const nobody = 65534

// folder returns a short path for the default folder, which does not exist yet.
func folder(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "admin-") //nolint:usetesting // t.TempDir's path can be too long for a socket
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	t.Setenv("XDG_RUNTIME_DIR", dir)
	return Dir()
}

// refused checks that no process serves in the folder and that no client connects there,
// with an error that explains what to do.
func refused(t *testing.T, want string) {
	t.Helper()
	err := New(DefaultPath(1), &process{}, slog.New(slog.DiscardHandler)).Run(t.Context())
	_, found := Find(t.Context())
	for _, err := range []error{err, found} {
		if !errors.Is(err, errForeign) || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "XDG_RUNTIME_DIR") {
			t.Errorf("got %v, want one that says %q", err, want)
		}
	}
}

// TestSocket_AFolderOfOthersIsRefused: other users know the name of the default folder, and
// may have created it first.
func TestSocket_AFolderOfOthersIsRefused(t *testing.T) {
	t.Run("a link", func(t *testing.T) {
		dir, target := folder(t), t.TempDir()
		if err := os.Symlink(target, dir); err != nil {
			t.Fatal(err)
		}
		refused(t, "a link")
	})
	t.Run("open to others", func(t *testing.T) {
		dir := folder(t)
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(dir, 0o710); err != nil { //nolint:gosec // what is refused
			t.Fatal(err)
		}
		refused(t, "chmod 700")
	})
	t.Run("of another user", func(t *testing.T) {
		asRoot(t)
		dir := folder(t)
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.Chown(dir, nobody, nobody); err != nil {
			t.Fatal(err)
		}
		refused(t, "belongs to user 65534")
	})
	t.Run("named, and writable by others", func(t *testing.T) {
		dir := t.TempDir()
		if err := os.Chmod(dir, 0o777); err != nil { //nolint:gosec // what is refused
			t.Fatal(err)
		}
		if err := New(filepath.Join(dir, "s"), &process{}, slog.New(slog.DiscardHandler)).Run(t.Context()); !errors.Is(err, errForeign) {
			t.Errorf("got %v", err)
		}
		if err := os.Chmod(dir, 0o777|os.ModeSticky); err != nil { //nolint:gosec // as /tmp is
			t.Fatal(err)
		}
		if err := checkDir(dir); err != nil {
			t.Errorf("a folder as /tmp: %v", err)
		}
	})
}

// TestSocket_OfAnotherUserIsNotAsked: another user may create a socket at a path that the
// user names.
func TestSocket_OfAnotherUserIsNotAsked(t *testing.T) {
	asRoot(t)
	dir := t.TempDir()
	if err := os.Chmod(dir, 0o777); err != nil { //nolint:gosec // so that another user can listen
		t.Fatal(err)
	}
	for parent := filepath.Dir(dir); parent != os.TempDir() && len(parent) > 1; parent = filepath.Dir(parent) {
		_ = os.Chmod(parent, 0o755) //nolint:gosec // so that another user gets there
	}
	path := filepath.Join(dir, "s")
	as(t, nobody, func(fd int) error {
		return errors.Join(syscall.Bind(fd, &syscall.SockaddrUnix{Name: path}), syscall.Listen(fd, 1))
	})
	if _, err := NewClient(path).Status(t.Context()); !errors.Is(err, errForeign) || !strings.Contains(err.Error(), "user 65534") {
		t.Errorf("got %v", err)
	}
}

// TestSocket_AnswersItsUserAlone: even if its mode allows others to connect.
func TestSocket_AnswersItsUserAlone(t *testing.T) {
	asRoot(t)
	_, path := serve(t, &process{})
	for _, p := range []string{filepath.Dir(filepath.Dir(path)), filepath.Dir(path), path} {
		if err := os.Chmod(p, 0o777); err != nil { //nolint:gosec // as it is between listen and chmod
			t.Fatal(err)
		}
	}
	as(t, nobody, func(fd int) error {
		if err := syscall.Connect(fd, &syscall.SockaddrUnix{Name: path}); err != nil {
			return err
		}
		_, _ = syscall.Write(fd, []byte("GET /v1/status HTTP/1.0\r\n\r\n")) // it may be closed already
		if n, err := syscall.Read(fd, make([]byte, 1)); n > 0 {
			t.Errorf("another user is answered: %v", err)
		}
		return nil
	})
}

// TestCaller_IsTheUserAtTheOtherEnd: the operating system names it, not the request.
func TestCaller_IsTheUserAtTheOtherEnd(t *testing.T) {
	p := &process{}
	c, _ := serve(t, p)
	if _, err := c.Swap(t.Context(), "web", []byte("wasm"), SwapOptions{From: "a.wasm"}); err != nil {
		t.Fatal(err)
	}
	if want := fmt.Sprintf("uid %d", os.Getuid()); !strings.Contains(p.caller, want) || p.options.From != "a.wasm" {
		t.Errorf("%q, want %s; from %q", p.caller, want, p.options.From)
	}
	if caller := Caller(t.Context()); caller != "" {
		t.Errorf("without a connection: %q", caller)
	}
}

func asRoot(t *testing.T) {
	t.Helper()
	if os.Getuid() != 0 {
		t.Skip("SKIPPED: only root can act as another user")
	}
}

// as performs an action with a socket as another user, on a thread that ends with the
// action. The socket stays open until the test ends.
func as(t *testing.T, uid uintptr, do func(fd int) error) {
	t.Helper()
	result := make(chan error)
	go func() {
		runtime.LockOSThread() // never unlocked: the thread belongs to another user
		if _, _, errno := syscall.RawSyscall(syscall.SYS_SETRESUID, uid, uid, uid); errno != 0 {
			result <- errno
			return
		}
		fd, err := syscall.Socket(syscall.AF_UNIX, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
		if err == nil {
			t.Cleanup(func() { _ = syscall.Close(fd) })
			err = do(fd)
		}
		result <- err
	}()
	if err := <-result; err != nil {
		t.Fatal(err)
	}
}
