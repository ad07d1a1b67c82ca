// SPDX-License-Identifier: Apache-2.0

//go:build linux

package cluster

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
)

// TestRun_SocketsAreOfThisUserAlone: an abstract socket has no folder and no mode, so every user of the machine could
// connect to etcd.
func TestRun_SocketsAreOfThisUserAlone(t *testing.T) {
	start(t, Config{NoControllers: true})
	listening := ourSockets(t)
	if len(listening) < 2 { // clients and peers
		t.Errorf("sockets of this process: %q", listening)
	}
	for _, name := range listening {
		if strings.HasPrefix(name, "@") {
			t.Errorf("abstract socket %q", name)
			continue
		}
		info, err := os.Lstat(filepath.Dir(name))
		if err != nil || info.Mode().Perm() != 0o700 {
			t.Errorf("folder of %s: %v, %v", name, info, err)
		}
		if err := connectAsAnother(name); os.Getuid() == 0 && !errors.Is(err, syscall.EACCES) {
			t.Errorf("another user connects to %s: %v", name, err)
		}
	}
	if os.Getuid() != 0 {
		t.Log("SKIPPED: only root can connect as another user")
	}
}

// ourSockets returns the names of the unix sockets on which this process listens.
func ourSockets(t *testing.T) (names []string) {
	t.Helper()
	var inodes []string
	links, _ := filepath.Glob("/proc/self/fd/*") // the pattern is valid
	for _, link := range links {
		target, _ := os.Readlink(link)
		if inode, ok := strings.CutPrefix(target, "socket:["); ok {
			inodes = append(inodes, strings.TrimSuffix(inode, "]"))
		}
	}
	table, err := os.ReadFile("/proc/net/unix")
	if err != nil {
		t.Fatal(err)
	}
	const accepts = "00010000" // __SO_ACCEPTCON
	for line := range strings.Lines(string(table)) {
		f := strings.Fields(line)
		if len(f) == 8 && f[3] == accepts && slices.Contains(inodes, f[6]) {
			names = append(names, f[7])
		}
	}
	return names
}

// connectAsAnother connects as another user, on a thread that ends with it.
func connectAsAnother(path string) error {
	const nobody = 65534
	result := make(chan error)
	go func() {
		runtime.LockOSThread() // never unlocked: the thread belongs to the other user
		if _, _, errno := syscall.RawSyscall(syscall.SYS_SETRESUID, nobody, nobody, nobody); errno != 0 {
			result <- errno
			return
		}
		fd, err := syscall.Socket(syscall.AF_UNIX, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
		if err == nil {
			err = syscall.Connect(fd, &syscall.SockaddrUnix{Name: path})
			_ = syscall.Close(fd)
		}
		result <- err
	}()
	return <-result
}
