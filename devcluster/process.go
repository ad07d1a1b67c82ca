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
	// stopLimit is how long an ordered stop may take. It takes about a second.
	stopLimit = 30 * time.Second
	// codeInUse is the program's exit code for a data dir that is in use.
	codeInUse = 3
	// tailSize is how much of the program's stderr goes into an error.
	tailSize = 4 << 10
)

// announcement is what the program prints, and keeps in its lock file, once it
// is ready. Its other half is cluster.Info of the server.
type announcement struct {
	URL        string `json:"url"`
	Kubeconfig string `json:"kubeconfig"`
	PID        int    `json:"pid"`
	Version    string `json:"version"`
}

// process is one run of the program.
type process struct {
	cmd    *exec.Cmd
	stdin  io.Closer // closing it asks for an ordered stop
	stderr *tail
	ready  chan announcement // has one value once the program is ready
	asked  atomic.Bool       // the end was asked for
	done   chan struct{}     // closed when the program has ended
	err    error             // how it ended; set before done is closed
}

// endsItself is the step of its start at which kube-apiserver ends where it takes
// more than a minute (legacyProvider.PostStartHook of Kubernetes): it counts on the
// kubelet, which starts it again.
const endsItself = "start-service-ip-repair-controllers"

// startProcess starts the program, as a kubelet does, and returns when it is ready.
// Whenever there is an error, no process is left.
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
	// A group of its own: Ctrl-C in a terminal goes to the whole group, and the
	// parent may still need the control plane to finish its work. Not Pdeathsig,
	// which strikes when the thread that started the child ends, not the parent.
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

// attend reads the announcement and waits for the end. It is the process's only
// goroutine.
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
		// Something else answers to the name, or a version that speaks otherwise.
		p.err = fmt.Errorf("unexpected output %.80q: is this the devcluster of this wasmctl version?", line)
		_ = p.cmd.Process.Kill()
	}
	_, _ = io.Copy(io.Discard, in)
	if err := p.cmd.Wait(); p.err == nil {
		p.err = err
	}
}

// stop asks for an ordered stop and waits for it; past stopLimit it kills.
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

// kill ends the process at once (SIGKILL) and waits for it to be gone.
func (p *process) kill() {
	p.asked.Store(true)
	_ = p.cmd.Process.Kill() // fails only if it has ended
	<-p.done
}

// ended says whether the process is gone.
func (p *process) ended() bool {
	select {
	case <-p.done:
		return true
	default:
		return false
	}
}

// failure says why the process ended: what it printed last, or its exit status.
// It must have ended.
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

// tail passes on what is written to it and keeps the end.
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
