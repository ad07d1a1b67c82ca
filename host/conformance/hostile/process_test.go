// SPDX-License-Identifier: Apache-2.0

package hostile_test

import (
	"bufio"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/wasmctl/wasmctl/devcluster"
	"github.com/wasmctl/wasmctl/devcluster/devclustertest"
	"github.com/wasmctl/wasmctl/runtime/admin"
	"github.com/wasmctl/wasmctl/testdata/wasm"
)

// builtWasmctl is the command as users have it: built once, with the defaults. It
// lies where make clean finds it.
var builtWasmctl = sync.OnceValues(func() (string, error) {
	path, err := filepath.Abs("../../../bin/hostile/wasmctl")
	if err != nil {
		return "", err
	}
	cmd := exec.Command("go", "build", "-trimpath", "-ldflags=-s -w", "-o", path, "../../../cmd/wasmctl") // as make build, for its cache
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", errors.New(string(out))
	}
	return path, nil
})

func wasmctlBinary(t *testing.T) string {
	t.Helper()
	path, err := builtWasmctl()
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// giveUp is the time after which a process is considered to hang, in addition to the computing time
// of others.
const giveUp = 20 * time.Second

// controllerEntry is one of the controllers' file.
type controllerEntry map[string]any

// process is a "wasmctl run -f" with attacks, next to a harmless neighbor.
type process struct {
	t       *testing.T
	cmd     *exec.Cmd
	dir     string
	cluster *devcluster.Cluster
	client  kubernetes.Interface
	ns      string
	admin   *admin.Client
	done    chan struct{}
	base    int64 // of the machine's memory, before all attacks

	mu    sync.Mutex
	lines []string // of stderr; guarded by mu
}

// neighbourName is the controller that does no harm. Its object is that of its
// name, as of each.
const neighbourName = "neighbour"

// startProcess starts the command on files of modules, one controller for each,
// which reconciles the ConfigMaps of a label with its name.
func startProcess(t *testing.T, modules map[string][]byte, entry controllerEntry, args ...string) *process {
	t.Helper()
	cluster := devclustertest.Shared(t)
	client, err := kubernetes.NewForConfig(cluster.RESTConfig())
	if err != nil {
		t.Fatal(err)
	}
	p := &process{t: t, dir: t.TempDir(), cluster: cluster, client: client, ns: devclustertest.Namespace(t, cluster), done: make(chan struct{})}
	file := map[string]any{"apiVersion": "wasmctl.dev/v1", "kind": "Controllers"}
	controllers := []any{p.entry(neighbourName, wasm.Empty, nil)}
	for name, module := range modules {
		controllers = append(controllers, p.entry(name, module, entry))
	}
	file["controllers"] = controllers
	b, err := json.Marshal(file)
	if err != nil {
		t.Fatal(err)
	}
	p.write("controllers.yaml", b)
	p.admin = admin.NewClient(p.socket())
	p.start(args...)
	return p
}

// entry writes a module, and returns its entry of the controllers' file.
func (p *process) entry(name string, module []byte, more controllerEntry) controllerEntry {
	p.t.Helper()
	file := name + ".wasm"
	p.write(file, module)
	e := controllerEntry{"name": name, "module": file, "for": "configmaps", "namespaces": []string{p.ns}, "selector": "attack=" + name, "grant": map[string]any{"manifest": true}}
	maps.Copy(e, more)
	return e
}

func (p *process) write(name string, b []byte) {
	p.t.Helper()
	if err := os.WriteFile(filepath.Join(p.dir, name), b, 0o600); err != nil {
		p.t.Fatal(err)
	}
}

func (p *process) socket() string { return filepath.Join(p.dir, "s") }

func (p *process) start(args ...string) {
	p.t.Helper()
	args = append([]string{"run", "-f", filepath.Join(p.dir, "controllers.yaml"), "--log-format", "json", "--cache-dir", "none", "--socket", p.socket(), "--kubeconfig", p.cluster.Kubeconfig()}, args...)
	p.cmd = exec.Command(wasmctlBinary(p.t), args...) //nolint:gosec // what we have built
	stderr, err := p.cmd.StderrPipe()
	if err != nil {
		p.t.Fatal(err)
	}
	if err := p.cmd.Start(); err != nil {
		p.t.Fatal(err)
	}
	go func() {
		defer close(p.done)
		for in := bufio.NewReader(stderr); ; {
			line, err := in.ReadString('\n')
			p.mu.Lock()
			p.lines = append(p.lines, line)
			p.mu.Unlock()
			if err != nil {
				break
			}
		}
		_, _ = io.Copy(io.Discard, stderr)
		_ = p.cmd.Wait() // how it ended is asked for
	}()
	p.t.Cleanup(p.kill)
}

func (p *process) pid() int { return p.cmd.Process.Pid }

// kill ends the process at once, whatever it does.
func (p *process) kill() {
	_ = p.cmd.Process.Kill()
	<-p.done
	if p.t.Failed() {
		p.t.Logf("the last lines of the process:\n%s", p.tail())
	}
}

// tail is the last lines, as far as they can be shown.
func (p *process) tail() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	var b strings.Builder
	for _, line := range p.lines[max(0, len(p.lines)-8):] {
		b.WriteString(line[:min(len(line), 600)])
		b.WriteByte('\n')
	}
	return b.String()
}

// has reports whether a line from one on contains all parts, and which.
func (p *process) has(from int, parts ...string) (string, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, line := range p.lines[min(from, len(p.lines)):] {
		found := 0
		for _, part := range parts {
			if strings.Contains(line, part) {
				found++
			}
		}
		if found == len(parts) {
			return line, true
		}
	}
	return "", false
}

func (p *process) logged() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.lines)
}

// await waits until check holds, and reports whether it did before the process was
// taken to hang.
func (p *process) await(check func() bool) bool {
	p.t.Helper()
	return p.awaitEvery(5*time.Millisecond, check)
}

// awaitEvery is await for a check that the process itself answers.
func (p *process) awaitEvery(period time.Duration, check func() bool) bool {
	p.t.Helper()
	watch := startWatch(p.t, p.pid())
	every := time.NewTicker(period)
	defer every.Stop()
	for !check() {
		select {
		case <-p.done:
			return check()
		case <-every.C:
		}
		if took, delay := watch.read(p.t); took > giveUp+delay {
			return check()
		}
	}
	return true
}

// create creates an object of a controller.
func (p *process) create(controller, name string) {
	p.t.Helper()
	_, err := p.client.CoreV1().ConfigMaps(p.ns).Create(p.t.Context(), &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"attack": controller}},
	}, metav1.CreateOptions{})
	if err != nil {
		p.t.Fatal(err)
	}
}

// remove deletes it, so that it is not tried again.
func (p *process) remove(name string) {
	p.t.Helper()
	if err := p.client.CoreV1().ConfigMaps(p.ns).Delete(p.t.Context(), name, metav1.DeleteOptions{}); err != nil {
		p.t.Error(err)
	}
}

// ran reports whether an object's run has ended, since a line of the log.
func (p *process) ran(since int, name string) bool {
	object := `"object":"` + p.ns + "/" + name + `"`
	if _, ok := p.has(since, `"msg":"reconciled"`, object); ok {
		return true
	}
	_, ok := p.has(since, `"msg":"reconcile failed"`, object)
	return ok
}

// served checks that the neighbor reconciles a new object.
func (p *process) served(name string) (took time.Duration) {
	p.t.Helper()
	start, since := time.Now(), p.logged()
	p.create(neighbourName, name)
	if !p.await(func() bool { return p.ran(since, name) }) {
		p.t.Errorf("the neighbour was not served within %v", time.Since(start))
	}
	p.remove(name)
	return time.Since(start)
}

// wantEnd checks that the process ends in time.
func (p *process) wantEnd(within time.Duration) {
	p.t.Helper()
	watch := startWatch(p.t, p.pid())
	every := time.NewTicker(5 * time.Millisecond)
	defer every.Stop()
	for {
		took, delay := watch.read(p.t)
		select {
		case <-p.done:
			if took > within+delay {
				p.t.Errorf("ended after %v, want %v, and %v in which others computed", took, within, delay)
			}
			return
		case <-every.C:
			if took > within+delay+giveUp {
				p.t.Errorf("does not end within %v, want %v", took, within)
				return
			}
		}
	}
}

func (p *process) signal(sig syscall.Signal) {
	p.t.Helper()
	if err := p.cmd.Process.Signal(sig); err != nil && !errors.Is(err, os.ErrProcessDone) {
		p.t.Fatal(err)
	}
}

// interruptTwice sends a second SIGINT after the first was taken: two that are
// under way at once are one.
func (p *process) interruptTwice() {
	p.t.Helper()
	p.signal(syscall.SIGINT)
	p.await(func() bool { _, ok := p.has(0, "stopping; waiting for running reconciles"); return ok })
	p.signal(syscall.SIGINT)
}
