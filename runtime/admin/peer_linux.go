// SPDX-License-Identifier: Apache-2.0

package admin

import (
	"net"
	"syscall"
)

// peerOf returns the user of the process at the other end of a unix socket. For a listening
// process, it is the user at the time of the listen call.
func peerOf(conn net.Conn) (uid int, known bool) {
	c, ok := conn.(*net.UnixConn)
	if !ok {
		return 0, false
	}
	raw, err := c.SyscallConn()
	if err != nil {
		return 0, false
	}
	_ = raw.Control(func(fd uintptr) { // it fails only on a closed connection
		if cred, err := syscall.GetsockoptUcred(int(fd), syscall.SOL_SOCKET, syscall.SO_PEERCRED); err == nil {
			uid, known = int(cred.Uid), true
		}
	})
	return uid, known
}
