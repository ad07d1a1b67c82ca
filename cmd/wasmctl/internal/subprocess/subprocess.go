// Package subprocess starts processes of this binary, which run a hidden command
// of it on what strangers have written, and bounds them.
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

// Limits bound a process; zero does not. Only Linux enforces them.
type Limits struct {
	Memory int64         // bytes that the process may allocate
	Time   time.Duration // of CPUs, not of the clock: a busy machine refuses nothing; whole seconds
}

// Command is this binary with a hidden command, in a process group of its own. It
// has no environment but how many CPUs it may use, so that it has no credentials
// there.
func Command(ctx context.Context, name string, cpus int) *exec.Cmd {
	cmd := exec.CommandContext(ctx, self(), name)
	cmd.Args[0] = "wasmctl"
	cmd.Env = []string{fmt.Sprintf("GOMAXPROCS=%d", max(1, cpus))}
	cmd.Dir = "/" // a directory that is there
	cmd.WaitDelay = 10 * time.Second
	setGroup(cmd)
	return cmd
}

// Bound applies limits to this process.
func Bound(l Limits) error {
	if l.Memory > 0 {
		debug.SetMemoryLimit(l.Memory / 10 * 9) // collect garbage rather than die of it
	}
	return enforce(l)
}

// DefaultMemory is the default bound of a process: far more than any real module
// needs, and less than the container has, so that the rest keeps running.
func DefaultMemory() int64 {
	const most = 4 << 30
	if n := sysmemory.Container(); n > 0 {
		return min(most, n/4*3)
	}
	return most
}

var noMemory = regexp.MustCompile("out of memory|cannot allocate memory|pthread_create failed|failed to create new OS thread")

// OutOfMemory reports whether Go or the system has said so; a thread needs memory
// for its stack.
func OutOfMemory(text string) bool { return noMemory.MatchString(text) }

// Head keeps the first bytes of what is written, and no more. It implements
// io.Writer.
type Head struct{ Kept []byte }

const maxHead = 16 << 10

// Write implements io.Writer.
func (h *Head) Write(p []byte) (int, error) {
	h.Kept = append(h.Kept, p[:min(maxHead-len(h.Kept), len(p))]...)
	return len(p), nil
}
