package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/wasmctl/wasmctl/cmd/wasmctl/internal/flags"
	"github.com/wasmctl/wasmctl/cmd/wasmctl/internal/project"
	"github.com/wasmctl/wasmctl/runtime/applier"
)

// child is a wasmctl process of a test. It is killed when the test ends.
type child struct {
	t    *testing.T
	cmd  *exec.Cmd
	done chan struct{} // closed when it has ended

	mu      sync.Mutex
	lines   []string      // of stderr; guarded by mu
	changed chan struct{} // closed and replaced at each line; guarded by mu
}

// waitLimit bounds each wait for a process; a wait that is as long has failed.
const waitLimit = 3 * time.Minute

// compiledModules is where all tests keep compiled modules: compiling one of the
// standard toolchain takes seconds, and more where the machine is busy.
var compiledModules = filepath.Join(builtGuests, "compiled")

// buildProject builds, and keeps the compiled code where startWasmctl looks for it.
func buildProject(t *testing.T, dir string, o project.Options) (project.Result, error) {
	t.Helper()
	o.CacheDir, o.CacheKey = flags.CodeCache(compiledModules)
	return project.Build(t.Context(), dir, o)
}

// startWasmctl starts "wasmctl run" with JSON logs.
func startWasmctl(t *testing.T, args ...string) *child {
	t.Helper()
	return startWasmctlEnv(t, nil, args...)
}

// startWasmctlEnv is startWasmctl with further environment variables.
func startWasmctlEnv(t *testing.T, env []string, args ...string) *child {
	t.Helper()
	return startWasmctlIn(t, env, nil, args...)
}

// startWasmctlIn is startWasmctlEnv with something to read on stdin.
func startWasmctlIn(t *testing.T, env []string, stdin io.Reader, args ...string) *child {
	t.Helper()
	args = append([]string{"run", "--log-format", "json", "--cache-dir", compiledModules}, args...)
	if !slices.Contains(args, "-f") && !slices.ContainsFunc(args, func(a string) bool { return strings.HasPrefix(a, "--grant") }) { // else the file says it
		args = append(args, "--grant-manifest")
	}
	cmd := exec.Command("wasmctl", args...)
	cmd.Env, cmd.Stdin = append(os.Environ(), env...), stdin
	return startChild(t, cmd)
}

// startChild starts a wasmctl that logs JSON and is told to end by the test.
func startChild(t *testing.T, cmd *exec.Cmd) *child {
	t.Helper()
	c := &child{t: t, cmd: cmd, done: make(chan struct{}), changed: make(chan struct{})}
	r, err := c.cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		c.read(r)
		_ = c.cmd.Wait() // the exit code is asked for below
		close(c.done)
	}()
	t.Cleanup(func() {
		_ = c.cmd.Process.Kill()
		<-c.done
		if t.Failed() {
			t.Logf("%s\n%s", strings.Join(cmd.Args, " "), c.tail())
		}
	})
	return c
}

func (c *child) read(r io.Reader) {
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

// text returns what the process has written to stderr.
func (c *child) text() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return strings.Join(c.lines, "\n")
}

// tail returns the last lines of it, after the first warnings and errors of those
// that are left out.
func (c *child) tail() string {
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

// wantLine waits for a line that contains all parts, and returns it.
func (c *child) wantLine(parts ...string) string {
	c.t.Helper()
	limit := time.After(waitLimit)
	for {
		c.mu.Lock()
		changed := c.changed
		for _, line := range c.lines {
			if containsAll(line, parts) {
				c.mu.Unlock()
				return line
			}
		}
		c.mu.Unlock()
		select {
		case <-changed:
		case <-c.done:
			c.t.Fatalf("ended without a line with %q", parts)
		case <-limit:
			c.t.Fatalf("no line with %q", parts)
		}
	}
}

// failures returns the lines of runs that failed, but for conflicts that the next
// run resolves: users write and delete while a run is going on.
func (c *child) failures() (failed []string) {
	c.t.Helper()
	for line := range strings.Lines(c.text()) {
		if l := parseLine(c.t, line); l.Msg == "reconcile failed" && !l.conflict() {
			failed = append(failed, line)
		}
	}
	return failed
}

func containsAll(line string, parts []string) bool {
	for _, p := range parts {
		if !strings.Contains(line, p) {
			return false
		}
	}
	return true
}

// wantExit waits for the end of the process and checks its exit code.
func (c *child) wantExit(code int) {
	c.t.Helper()
	select {
	case <-c.done:
	case <-time.After(waitLimit):
		c.t.Fatal("does not end")
	}
	if got := c.cmd.ProcessState.ExitCode(); got != code {
		c.t.Errorf("exit code %d, want %d", got, code)
	}
}

func (c *child) signal(sig syscall.Signal) {
	c.t.Helper()
	if err := c.cmd.Process.Signal(sig); err != nil && !errors.Is(err, syscall.ESRCH) && !errors.Is(err, os.ErrProcessDone) {
		c.t.Fatal(err)
	}
}

// logLine is one line of the JSON log.
type logLine struct {
	Level, Msg, Object, Error, Action string
	Attempt                           int
	DecidedBy                         string `json:"decided_by"`
}

// lateUpdate is how the API server refuses an update of a Service or another object that
// an update may create: it was deleted since it was read.
const lateUpdate = "resourceVersion should not be set on objects to be created"

// conflict reports whether a run failed with a conflict that is retried at once:
// nothing else has that delay whatever the module says. Or it has updated what was
// deleted meanwhile.
func (l *logLine) conflict() bool {
	return strings.Contains(l.Error, lateUpdate) || l.DecidedBy == string(applier.DecidedByError) && l.Action == "requeue after "+applier.ConflictDelay.String()
}

func parseLine(t *testing.T, line string) logLine {
	t.Helper()
	var l logLine
	if err := json.Unmarshal([]byte(line), &l); err != nil {
		t.Fatalf("%q: %v", line, err)
	}
	return l
}

// writeKubeconfig writes a client configuration as a kubeconfig file.
func writeKubeconfig(t *testing.T, rc *rest.Config) string {
	t.Helper()
	c := clientcmdapi.NewConfig()
	c.Clusters["c"] = &clientcmdapi.Cluster{Server: rc.Host, CertificateAuthorityData: rc.CAData}
	c.AuthInfos["u"] = &clientcmdapi.AuthInfo{Token: rc.BearerToken, ClientCertificateData: rc.CertData, ClientKeyData: rc.KeyData}
	c.Contexts["x"] = &clientcmdapi.Context{Cluster: "c", AuthInfo: "u"}
	c.CurrentContext = "x"
	path := filepath.Join(t.TempDir(), "kubeconfig")
	if err := clientcmd.WriteToFile(*c, path); err != nil {
		t.Fatal(err)
	}
	return path
}
