package admin

import (
	"net"
	"syscall"
)

// peerOf returns the user of the process at the other end of a unix socket: of
// the one that listens, as it was when it began to.
func peerOf(conn net.Conn) (uid int, known bool) {
	c, ok := conn.(*net.UnixConn)
	if !ok {
		return 0, false
	}
	raw, err := c.SyscallConn()
	if err != nil {
		return 0, false
	}
	_ = raw.Control(func(fd uintptr) { // it fails on a closed one only
		if cred, err := syscall.GetsockoptUcred(int(fd), syscall.SOL_SOCKET, syscall.SO_PEERCRED); err == nil {
			uid, known = int(cred.Uid), true
		}
	})
	return uid, known
}
