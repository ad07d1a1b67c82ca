// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bufio"
	"errors"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/wasmctl/wasmctl/internal/enginetest"
)

// Process is a process of wasmctl. It is killed when its test ends.
type Process struct {
	T    *testing.T
	Cmd  *exec.Cmd
	Done chan struct{} // closed when it has ended

	mu      sync.Mutex
	lines   []string      // of stderr, only ever appended to; guarded by mu
	changed chan struct{} // closed and replaced at each line; guarded by mu
}

// WaitLimit bounds each wait for a process. A wait that takes longer fails its test.
const WaitLimit = 3 * time.Minute

// ShortLeases are the flags of leases that a replica on a busy machine can still renew. Another replica takes over
// after them.
var ShortLeases = []string{"--leader-elect-lease-duration", "20s", "--leader-elect-renew-deadline", "16s", "--leader-elect-retry-period", "500ms"}

// Run starts "wasmctl run" with JSON logs.
func Run(t *testing.T, args ...string) *Process {
	t.Helper()
	return RunEnv(t, nil, args...)
}

// RunEnv is Run with further environment variables.
func RunEnv(t *testing.T, env []string, args ...string) *Process {
	t.Helper()
	return RunIn(t, env, nil, args...)
}

// RunIn is RunEnv with an stdin.
func RunIn(t *testing.T, env []string, stdin io.Reader, args ...string) *Process {
	t.Helper()
	args = append([]string{"run", "--log-format", "json", "--cache-dir", CodeDir}, args...)
	if !slices.Contains(args, "-f") && !slices.ContainsFunc(args, func(a string) bool { return strings.HasPrefix(a, "--grant") }) { // the file of -f has its own grants
		args = append(args, "--grant-manifest")
	}
	cmd := exec.Command("wasmctl", args...)
	cmd.Env, cmd.Stdin = append(os.Environ(), env...), stdin
	return Start(t, cmd)
}

// Start starts a command of wasmctl that logs JSON and runs until a signal ends it.
func Start(t *testing.T, cmd *exec.Cmd) *Process {
	t.Helper()
	c := &Process{T: t, Cmd: cmd, Done: make(chan struct{}), changed: make(chan struct{})}
	r, err := c.Cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		c.read(r)
		_ = c.Cmd.Wait() // WantExit checks the exit code
		close(c.Done)
	}()
	t.Cleanup(func() {
		_ = c.Cmd.Process.Kill()
		<-c.Done
		if t.Failed() {
			t.Logf("%s\n%s", strings.Join(cmd.Args, " "), c.Tail())
		}
	})
	return c
}

func (c *Process) read(r io.Reader) {
	for in := bufio.NewReader(r); ; { // not a Scanner: the process would wait after a line that is too long for one
		line, err := in.ReadString('\n')
		if err != nil && line == "" {
			return
		}
		c.mu.Lock()
		c.lines = append(c.lines, strings.TrimSuffix(line, "\n"))
		close(c.changed)
		c.changed = make(chan struct{})
		c.mu.Unlock()
	}
}

// Text returns the present output of the process on stderr.
func (c *Process) Text() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return strings.Join(c.lines, "\n")
}

// Tail returns the last lines of Text, after the first warnings and errors among the
// lines before them.
func (c *Process) Tail() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	const most = 20
	var shown []string
	last := max(0, len(c.lines)-most)
	for _, line := range c.lines[:last] {
		if len(shown) < most && (strings.Contains(line, `"level":"WARN"`) || strings.Contains(line, `"level":"ERROR"`)) {
			shown = append(shown, line)
		}
	}
	return strings.Join(append(shown, c.lines[last:]...), "\n")
}

// WantExit waits for the end of the process and checks its exit code.
func (c *Process) WantExit(code int) {
	c.T.Helper()
	select {
	case <-c.Done:
	case <-time.After(WaitLimit):
		c.T.Fatal("does not end")
	}
	if got := c.Cmd.ProcessState.ExitCode(); got != code {
		c.T.Errorf("exit code %d, want %d", got, code)
	}
}

// Until is like enginetest.Until, but fails at once if the process ends.
func (c *Process) Until(what string, ok func() bool) {
	c.T.Helper()
	enginetest.Until(c.T, what, func() bool {
		select {
		case <-c.Done:
			if !ok() {
				c.T.Fatalf("ended with exit code %d, and not yet: %s", c.Cmd.ProcessState.ExitCode(), what)
			}
			return true
		default:
			return ok()
		}
	})
}

// Signal sends a signal. It does nothing if the process has ended.
func (c *Process) Signal(sig syscall.Signal) {
	c.T.Helper()
	if err := c.Cmd.Process.Signal(sig); err != nil && !errors.Is(err, syscall.ESRCH) && !errors.Is(err, os.ErrProcessDone) {
		c.T.Fatal(err)
	}
}
