// SPDX-License-Identifier: Apache-2.0

// Package subprocess starts processes of this binary that run a hidden command on untrusted input,
// and limits them.
package subprocess

import (
	"context"
	"fmt"
	"os/exec"
	"regexp"
	"runtime/debug"
	"time"

	"github.com/wasmctl/wasmctl/cmd/wasmctl/internal/sysmemory"
)

// Limits limit a process. A zero field is no limit. Only Linux enforces them.
type Limits struct {
	Memory int64         // bytes that the process may allocate
	Time   time.Duration // CPU time, not wall time: a busy machine refuses nothing; whole seconds
}

// Command returns this binary with a hidden command, in a process group of its own. Its environment
// has only the number of CPUs, and thus no credentials.
func Command(ctx context.Context, name string, cpus int) *exec.Cmd {
	cmd := exec.CommandContext(ctx, self(), name)
	cmd.Args[0] = "wasmctl"
	cmd.Env = []string{fmt.Sprintf("GOMAXPROCS=%d", max(1, cpus))}
	cmd.Dir = "/" // a directory that exists
	cmd.WaitDelay = 10 * time.Second
	setGroup(cmd)
	return cmd
}

// Bound applies limits to this process.
func Bound(l Limits) error {
	if l.Memory > 0 {
		debug.SetMemoryLimit(l.Memory / 10 * 9) // collect garbage before the limit is reached
	}
	return enforce(l)
}

// DefaultMemory returns the default memory limit of a process. It is far more than a real module
// needs, and less than the container has, so that the rest continues.
func DefaultMemory() int64 {
	const most = 4 << 30
	if n := sysmemory.Container(); n > 0 {
		return min(most, n/4*3)
	}
	return most
}

var noMemory = regexp.MustCompile("out of memory|cannot allocate memory|pthread_create failed|failed to create new OS thread")

// OutOfMemory reports whether Go or the system has reported a lack of memory, for example for the
// stack of a thread.
func OutOfMemory(text string) bool { return noMemory.MatchString(text) }

// Head stores the first bytes of a stream, and discards the rest. It implements io.Writer.
type Head struct{ Bytes []byte }

const maxHead = 16 << 10

// Write implements io.Writer.
func (h *Head) Write(p []byte) (int, error) {
	h.Bytes = append(h.Bytes, p[:min(maxHead-len(h.Bytes), len(p))]...)
	return len(p), nil
}
