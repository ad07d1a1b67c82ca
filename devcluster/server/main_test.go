// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/wasmctl/wasmctl/devcluster/server/cluster"
)

// asDevcluster makes the test binary act as devcluster: the tests run the real program in its own process, without
// building it first.
const asDevcluster = "DEVCLUSTER_TEST_AS_MAIN"

func TestMain(m *testing.M) {
	if os.Getenv(asDevcluster) != "" {
		os.Unsetenv(asDevcluster)
		main()
	}
	os.Exit(m.Run())
}

// process is devcluster in its own process.
type process struct {
	cmd    *exec.Cmd
	info   cluster.Info
	stdin  io.Closer
	stderr *lines
}

// lines collects the output of a process and reports when it contains a text.
type lines struct {
	mu   sync.Mutex
	text bytes.Buffer  // guarded by mu
	more chan struct{} // has a value when text has grown
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	select {
	case l.more <- struct{}{}:
	default:
	}
	return l.text.Write(p)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// await returns when the process has printed text.
func (l *lines) await(t *testing.T, text string) {
	t.Helper()
	limit := time.After(30 * time.Second)
	for !strings.Contains(l.String(), text) {
		select {
		case <-l.more:
		case <-limit:
			t.Fatalf("no %q on stderr, only:\n%s", text, l)
		}
	}
}

func newProcess(t *testing.T, tmp string, args ...string) *process {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0], args...)
	cmd.Env = append(os.Environ(), asDevcluster+"=1", "TMPDIR="+tmp)
	p := &process{cmd: cmd, stderr: &lines{more: make(chan struct{}, 1)}}
	cmd.Stderr = p.stderr
	return p
}

// startServer starts devcluster and waits for its announcement.
func startServer(t *testing.T, tmp string, args ...string) *process {
	t.Helper()
	p := newProcess(t, tmp, append(args, "--unsafe-no-fsync", "--no-controllers")...)
	stdout, err := p.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if p.stdin, err = p.cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(stdout).ReadBytes('\n')
	if err != nil {
		t.Fatalf("no announcement: %v; stderr:\n%s", err, p.stderr)
	}
	if err := json.Unmarshal(line, &p.info); err != nil {
		t.Fatalf("announcement %q: %v", line, err)
	}
	return p
}

func (p *process) signal(t *testing.T, sig os.Signal) {
	t.Helper()
	if err := p.cmd.Process.Signal(sig); err != nil {
		t.Fatal(err)
	}
}

// wait returns the exit code as a shell would give it.
func (p *process) wait(t *testing.T) int {
	t.Helper()
	_ = p.cmd.Wait() // ProcessState contains everything
	return stateCode(p.cmd.ProcessState)
}

func (p *process) client(t *testing.T) kubernetes.Interface {
	t.Helper()
	rc, err := clientcmd.BuildConfigFromFlags("", p.info.Kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	c, err := kubernetes.NewForConfig(rc)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// shortTemp returns a temporary directory with a path that is short enough for a socket, unlike that of t.TempDir,
// which contains the test's name.
func shortTemp(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "dc-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

func privateDirs(t *testing.T, tmp string) []string {
	t.Helper()
	dirs, err := filepath.Glob(filepath.Join(tmp, "devcluster-run-*"))
	if err != nil {
		t.Fatal(err)
	}
	return dirs
}

func TestServe_KilledAndStartedAgainKeepsDataPortAndNoLitter(t *testing.T) {
	dir, tmp := t.TempDir(), shortTemp(t)
	first := startServer(t, tmp, "--data-dir", dir)
	if first.info.PID != first.cmd.Process.Pid || first.info.Version != cluster.Version() {
		t.Errorf("announced %+v, want pid %d and version %s", first.info, first.cmd.Process.Pid, cluster.Version())
	}
	cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "kept"}}
	if _, err := first.client(t).CoreV1().ConfigMaps("default").Create(t.Context(), cm, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	first.signal(t, syscall.SIGKILL)
	if code := first.wait(t); code != 128+9 {
		t.Fatalf("exit code after kill -9: %d", code)
	}
	if got := privateDirs(t, tmp); len(got) != 1 {
		t.Fatalf("private dirs after kill -9: %v, want one, or the next check checks nothing", got)
	}

	port := first.info.URL[strings.LastIndexByte(first.info.URL, ':')+1:]
	second := startServer(t, tmp, "--data-dir", dir, "--port", port)
	if second.info.URL != first.info.URL {
		t.Errorf("URL %s, want the same as before, %s", second.info.URL, first.info.URL)
	}
	if got := privateDirs(t, tmp); len(got) != 1 {
		t.Errorf("private dirs after a restart: %v, want the new one only", got)
	}
	if _, err := second.client(t).CoreV1().ConfigMaps("default").Get(t.Context(), "kept", metav1.GetOptions{}); err != nil {
		t.Errorf("after kill -9 and restart: %v", err)
	}

	third := newProcess(t, tmp, "--data-dir", dir)
	err := third.cmd.Run()
	if code := third.cmd.ProcessState.ExitCode(); code != exitDataInUse {
		t.Errorf("on a data dir in use: exit code %d (%v), want %d", code, err, exitDataInUse)
	}
	for _, want := range []string{dir, "pid " + strconv.Itoa(second.info.PID)} {
		if !strings.Contains(third.stderr.String(), want) {
			t.Errorf("on a data dir in use: %q, want %q in it", third.stderr, want)
		}
	}

	second.signal(t, syscall.SIGTERM)
	if code := second.wait(t); code != exitOK {
		t.Errorf("exit code after SIGTERM: %d; stderr:\n%s", code, second.stderr)
	}
	if got := privateDirs(t, tmp); len(got) != 0 {
		t.Errorf("left after an ordered stop: %v", got)
	}
	wantOwnLinesOnly(t, second.stderr.String())
}

// wantOwnLinesOnly fails if stderr contains lines that are not from devcluster itself.
func wantOwnLinesOnly(t *testing.T, stderr string) {
	t.Helper()
	for line := range strings.Lines(stderr) {
		if !strings.HasPrefix(line, "devcluster: ") {
			t.Errorf("noise on stderr: %s", line)
		}
	}
}

func TestServe_SecondSignalEndsAtOnce(t *testing.T) {
	p := startServer(t, shortTemp(t), "--data-dir", t.TempDir())
	p.signal(t, syscall.SIGTERM)
	p.stderr.await(t, "stopping") // a graceful stop takes another second
	p.signal(t, syscall.SIGTERM)
	if code := p.wait(t); code != 128+int(syscall.SIGTERM) {
		t.Errorf("exit code %d, want that of a killed process; stderr:\n%s", code, p.stderr)
	}
}

// A watch is open while stdin is closed, as when a test binary dies: the server must end it, and not wait for it.
func TestServe_StopsWhenStdinEnds(t *testing.T) {
	tmp := shortTemp(t)
	p := startServer(t, tmp, "--exit-on-stdin-close")
	w, err := p.client(t).CoreV1().ConfigMaps("").Watch(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Stop()
	start := time.Now()
	p.stdin.Close()
	if code := p.wait(t); code != exitOK {
		t.Errorf("exit code %d; stderr:\n%s", code, p.stderr)
	}
	if took := time.Since(start); took > 30*time.Second {
		t.Errorf("the stop took %s with a watch open", took)
	}
	if got := privateDirs(t, tmp); len(got) != 0 {
		t.Errorf("left: %v, data dir and all", got)
	}
}
