// SPDX-License-Identifier: Apache-2.0

package guestprocess

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"syscall"

	"github.com/wasmctl/wasmctl/cmd/wasmctl/internal/harden"
	"github.com/wasmctl/wasmctl/cmd/wasmctl/internal/subprocess"
	"github.com/wasmctl/wasmctl/host/isolate"
)

// ErrNoJob is the error of Serve if stdin has no job, for example because somebody typed the
// command.
var ErrNoJob = errors.New("guests-for-run: for internal use: wasmctl run --isolate starts it to run modules in a separate process")

// maxJob limits the size of the job on stdin.
const maxJob = 64 << 10

// Serve runs a guest process. It reads its job, and serves the connections that it receives until
// its parent ends.
func Serve(in io.Reader) error {
	var j job
	b, err := io.ReadAll(io.LimitReader(in, maxJob))
	if err != nil || json.Unmarshal(b, &j) != nil || j.CPUs < 1 {
		return ErrNoJob
	}
	control, err := connOf(controlFD)
	if err != nil {
		return ErrNoJob
	}
	if err := subprocess.Bound(subprocess.Limits{Memory: j.Memory}); err != nil {
		return fmt.Errorf("guest process: bounds: %w", err)
	}
	// A guest that escapes finds only compiled code of its own class: no network, no programs and
	// no other files.
	policy := harden.Policy{Alone: true}
	if j.Dir != "" {
		policy.Read = []string{j.Dir}
	}
	if _, err := harden.Apply(j.Harden, &policy); err != nil {
		return fmt.Errorf("guest process: %w", err)
	}
	err = isolate.Serve(func() (isolate.Conn, error) { return accept(control) }, j.CPUs)
	if errors.Is(err, io.EOF) {
		return nil
	}
	return fmt.Errorf("guest process: %w", err)
}

// accept receives a connection.
func accept(control *net.UnixConn) (isolate.Conn, error) {
	var b [1]byte
	rights := make([]byte, syscall.CmsgSpace(4))
	n, size, _, _, err := control.ReadMsgUnix(b[:], rights)
	if err != nil {
		return nil, err
	}
	if n == 0 {
		return nil, io.EOF
	}
	messages, err := syscall.ParseSocketControlMessage(rights[:size])
	if err != nil || len(messages) != 1 {
		return nil, errors.Join(err, errors.New("no connection"))
	}
	fds, err := syscall.ParseUnixRights(&messages[0])
	if err != nil || len(fds) != 1 {
		return nil, errors.Join(err, errors.New("no connection"))
	}
	return connOf(fds[0])
}
