// SPDX-License-Identifier: Apache-2.0

package devcluster

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// stopLimit is the time limit for a graceful stop, which takes about a second.
	stopLimit = 30 * time.Second
	// codeInUse is the program's exit code if the data dir is in use.
	codeInUse = 3
	// tailSize is the length of the end of the program's stderr to include in an error.
	tailSize = 4 << 10
)

// announcement is what the program prints once it is ready, and stores in its lock file. It corresponds to cluster.Info of the server.
type announcement struct {
	URL        string `json:"url"`
	Kubeconfig string `json:"kubeconfig"`
	PID        int    `json:"pid"`
	Version    string `json:"version"`
}

// process is one run of the program.
type process struct {
	cmd    *exec.Cmd
	stdin  io.Closer // closing it requests a graceful stop
	stderr *tail
	ready  chan announcement // has one value once the program is ready
	asked  atomic.Bool       // the end was requested
	done   chan struct{}     // closed when the program has ended
	err    error             // the exit error; set before done is closed
}

// endsItself is the step of the start in which kube-apiserver exits if it takes more than a minute (legacyProvider.PostStartHook of
// Kubernetes): it relies on the kubelet to start it again.
const endsItself = "start-service-ip-repair-controllers"

// startProcess starts the program, restarting it like a kubelet, and returns when it is ready. If it returns an error, no process is left.
func startProcess(ctx context.Context, cfg Config) (*process, announcement, error) {
	for {
		p, info, err := startOnce(ctx, cfg)
		if err == nil || ctx.Err() != nil || !strings.Contains(err.Error(), endsItself) {
			return p, info, err
		}
	}
}

func startOnce(ctx context.Context, cfg Config) (*process, announcement, error) {
	p, err := spawn(cfg)
	if err != nil {
		return nil, announcement{}, err
	}
	select {
	case info := <-p.ready:
		return p, info, nil
	case <-ctx.Done():
		return nil, announcement{}, errors.Join(fmt.Errorf("devcluster: start: %w", context.Cause(ctx)), p.stop())
	case <-p.done:
	}
	if p.cmd.ProcessState.ExitCode() == codeInUse {
		return nil, announcement{}, fmt.Errorf("%w: %w", ErrInUse, p.failure())
	}
	return nil, announcement{}, fmt.Errorf("devcluster: start: %w", p.failure())
}

func spawn(cfg Config) (*process, error) {
	p := &process{
		cmd:    exec.Command(cfg.Binary, cfg.args()...),
		stderr: &tail{to: cfg.Stderr},
		ready:  make(chan announcement, 1),
		done:   make(chan struct{}),
	}
	p.cmd.Stderr = p.stderr
	// It gets its own process group: Ctrl-C in a terminal goes to the whole group, and the parent may still need the control plane to
	// finish its work. Pdeathsig is not suitable, because it is sent when the thread that started the child ends, not when the parent ends.
	p.cmd.SysProcAttr = ownGroup()
	stdin, err := p.cmd.StdinPipe()
	if err != nil {
		return nil, fmt.Errorf("devcluster: %w", err)
	}
	p.stdin = stdin
	stdout, err := p.cmd.StdoutPipe()
	if err != nil {
		return nil, fmt.Errorf("devcluster: %w", err)
	}
	if err := p.cmd.Start(); err != nil {
		return nil, fmt.Errorf("devcluster[%s]: %w", cfg.Binary, err)
	}
	go p.attend(stdout)
	return p, nil
}

// attend reads the announcement and waits for the end. It is the only goroutine of the process.
func (p *process) attend(stdout io.Reader) {
	defer close(p.done)
	in := bufio.NewReader(stdout)
	line, err := in.ReadBytes('\n')
	var info announcement
	if err == nil {
		err = json.Unmarshal(line, &info)
	}
	switch {
	case err == nil && info.URL != "":
		p.ready <- info
	case len(line) > 0:
		// This is another program of the same name, or an incompatible version.
		p.err = fmt.Errorf("unexpected output %.80q: is this the devcluster of this wasmctl version?", line)
		_ = p.cmd.Process.Kill()
	}
	_, _ = io.Copy(io.Discard, in)
	if err := p.cmd.Wait(); p.err == nil {
		p.err = err
	}
}

// stop requests a graceful stop and waits for it; after stopLimit, it kills the process.
func (p *process) stop() error {
	p.asked.Store(true)
	_ = p.stdin.Close() // closed already if the program has ended
	limit := time.NewTimer(stopLimit)
	defer limit.Stop()
	select {
	case <-p.done:
	case <-limit.C:
		p.kill()
		return fmt.Errorf("devcluster: did not stop in %s: killed", stopLimit)
	}
	if p.err != nil {
		return fmt.Errorf("devcluster: stop: %w", p.failure())
	}
	return nil
}

// kill ends the process at once (SIGKILL) and waits until it is gone.
func (p *process) kill() {
	p.asked.Store(true)
	_ = p.cmd.Process.Kill() // fails only if it has ended
	<-p.done
}

// ended reports whether the process is gone.
func (p *process) ended() bool {
	select {
	case <-p.done:
		return true
	default:
		return false
	}
}

// failure returns why the process ended: its last output, or its exit status. It must have ended.
func (p *process) failure() error {
	text := strings.TrimPrefix(strings.TrimSpace(p.stderr.String()), "devcluster: ")
	switch {
	case p.err == nil:
		return errors.New("the program exited")
	case text == "":
		return p.err
	}
	return fmt.Errorf("%s (%w)", text, p.err)
}

// tail forwards the data written to it and stores the end.
type tail struct {
	to   io.Writer // may be nil
	mu   sync.Mutex
	last []byte // guarded by mu
}

func (t *tail) Write(b []byte) (int, error) {
	t.mu.Lock()
	t.last = append(t.last, b...)
	if over := len(t.last) - tailSize; over > 0 {
		t.last = append(t.last[:0], t.last[over:]...)
	}
	t.mu.Unlock()
	if t.to != nil {
		_, _ = t.to.Write(b) // a failing copy must not stop the control plane
	}
	return len(b), nil
}

func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return string(t.last)
}
