// SPDX-License-Identifier: Apache-2.0

package admin

import (
	"context"
	"fmt"
	"net"
	"os/user"
	"strconv"
)

// peerKey is the key of the user's ID in the context of a connection.
type peerKey struct{}

// withPeer adds the user at the other end of a connection to its context.
func withPeer(ctx context.Context, conn net.Conn) context.Context {
	if uid, known := peerOf(conn); known {
		return context.WithValue(ctx, peerKey{}, uid)
	}
	return ctx
}

// Caller returns the user whose process has sent a request, such as "root (uid 0)", according to the
// operating system. It is empty if that is unknown.
func Caller(ctx context.Context) string {
	uid, known := ctx.Value(peerKey{}).(int)
	if !known {
		return ""
	}
	if u, err := user.LookupId(strconv.Itoa(uid)); err == nil {
		return fmt.Sprintf("%s (uid %d)", u.Username, uid)
	}
	return fmt.Sprintf("uid %d", uid)
}
