// SPDX-License-Identifier: Apache-2.0

package admin

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
)

// greeting is what Pipe writes first. It shows that the other end has reached a process.
const greeting = "wasmctl admin 1\n"

// errNoGreeting is the error of a stream that does not begin with the greeting.
var errNoGreeting = errors.New("the answer is not that of wasmctl")

// Pipe connects a stream to a socket of this user, until either end closes it. A read from in that is under way
// may outlive it.
func Pipe(ctx context.Context, path string, in io.Reader, out io.Writer) error {
	conn, err := dial(ctx, &net.Dialer{}, path)
	if err != nil {
		return fmt.Errorf("admin socket[%s]: %w", path, err)
	}
	defer func() { _ = conn.Close() }()
	defer context.AfterFunc(ctx, func() { _ = conn.Close() })()
	if _, err := io.WriteString(out, greeting); err != nil {
		return err
	}
	go func() {
		_, _ = io.Copy(conn, in)
		_ = conn.Close() // the client is gone, and with it its requests
	}()
	if _, err = io.Copy(out, conn); errors.Is(err, net.ErrClosed) {
		return nil
	}
	return err
}

// ReadGreeting reads the greeting of Pipe from the other end of a stream.
func ReadGreeting(r io.Reader) error {
	got := make([]byte, len(greeting))
	if _, err := io.ReadFull(r, got); err != nil || string(got) != greeting {
		return errNoGreeting
	}
	return nil
}
