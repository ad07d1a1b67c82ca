package main

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/wasmctl/wasmctl/devcluster"
	"github.com/wasmctl/wasmctl/devcluster/devclustertest"
	"github.com/wasmctl/wasmctl/host"
	"github.com/wasmctl/wasmctl/internal/enginetest"
	"github.com/wasmctl/wasmctl/runtime/admin"
)

// replace puts a module into the place of a file as one step.
func replace(t *testing.T, path string, module []byte) {
	t.Helper()
	if err := os.WriteFile(path+".new", module, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(path+".new", path); err != nil {
		t.Fatal(err)
	}
}

// newConfigMaps makes a namespace with some ConfigMaps.
func newConfigMaps(t *testing.T) (ns, kubeconfig string) {
	t.Helper()
	return newConfigMapsOn(t, devclustertest.Shared(t))
}

func newConfigMapsOn(t *testing.T, cluster *devcluster.Cluster) (ns, kubeconfig string) {
	t.Helper()
	client, err := kubernetes.NewForConfig(cluster.RESTConfig())
	if err != nil {
		t.Fatal(err)
	}
	ns = devclustertest.Namespace(t, cluster)
	for i := range 4 {
		if _, err := client.CoreV1().ConfigMaps(ns).Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: enginetest.ObjectName(i)}}, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	return ns, cluster.Kubeconfig()
}

// refusedSteer runs a steering command that must fail, and returns its exit code
// and what it prints.
func refusedSteer(t *testing.T, command, socket string, args ...string) (int, string) {
	t.Helper()
	out, err := exec.Command("wasmctl", append([]string{command, "--socket", socket}, args...)...).CombinedOutput()
	var exit *exec.ExitError
	if !errors.As(err, &exit) {
		t.Fatalf("wasmctl %s %q: %v: %s", command, args, err, out)
	}
	return exit.ExitCode(), string(out)
}

// TestSwap_FromFileSignalAndCommand: every way to start a swap, through the
// binary, and what status says of it.
func TestSwap_FromFileSignalAndCommand(t *testing.T) {
	t.Parallel()
	swapInEveryWay(t)
}

func swapInEveryWay(t *testing.T, args ...string) {
	t.Helper()
	ns, kubeconfig := newConfigMaps(t)
	dir := t.TempDir()
	file, other, bad := filepath.Join(dir, "module.wasm"), filepath.Join(dir, "other.wasm"), filepath.Join(dir, "bad.wasm")
	replace(t, file, enginetest.Worse(enginetest.Good, 1))
	replace(t, other, enginetest.Worse(enginetest.Good, 3))
	replace(t, bad, enginetest.Worse(enginetest.Traps, 4))
	socket := newSocket(t)
	c := startWasmctl(t, append([]string{file, "--for", "cm", "-n", ns, "--socket", socket, "--probation", "2s", "--kubeconfig", kubeconfig}, args...)...)
	c.wantLine(`"msg":"reconciled"`, `"object":"`+ns+`/o0"`, `"revision":1`)

	replace(t, file, enginetest.Worse(enginetest.Good, 2))
	c.wantLine(`"msg":"module swapped"`, `"why":"module file changed"`, `"revision":2`)
	c.wantLine(`"msg":"reconciled"`, `"object":"`+ns+`/o0"`, `ModuleSwapped`, `"revision":2`)
	c.wantLine(`"msg":"probation passed"`, `"revision":2`)
	if err := os.WriteFile(file, []byte("\x00asm in the middle of being wr"), 0o600); err != nil {
		t.Fatal(err)
	}
	c.wantLine(`"msg":"module not swapped in; keeping the running one"`)
	replace(t, file, enginetest.Worse(enginetest.Good, 2))
	c.wantLine(`"msg":"module file unchanged"`)

	if out := steer(t, "swap", socket, "module", other, "--wait"); !containsAll(out, []string{"is live; waiting for the end of its probation", "probation passed"}) {
		t.Errorf("swap: %s", out)
	}
	if out := steer(t, "swap", socket, "module", other); !strings.Contains(out, "unchanged") {
		t.Errorf("the same: %s", out)
	}
	c.signal(syscall.SIGHUP) // back to what the file has
	c.wantLine(`"msg":"probation passed"`, `"revision":4`)
	if got := statusOf(t, socket).Digest; got != host.DigestOf(enginetest.Worse(enginetest.Good, 2)) {
		t.Errorf("after SIGHUP %s is live", got)
	}
	if code, out := refusedSteer(t, "swap", socket, "module", bad, "--wait"); code != exitModule || !strings.Contains(out, "was rolled back: ") {
		t.Errorf("a bad one: exit code %d: %s", code, out)
	}
	enginetest.Until(t, "the one before is live again", func() bool { return statusOf(t, socket).Digest == host.DigestOf(enginetest.Worse(enginetest.Good, 2)) })
	if code, out := refusedSteer(t, "swap", socket, "module", bad); code != exitModule || !strings.Contains(out, "--force") {
		t.Errorf("the bad one again: exit code %d: %s", code, out)
	}
	if out := steer(t, "rollback", socket, "module"); !strings.Contains(out, "is live") {
		t.Errorf("rollback: %s", out)
	}
	if code, out := refusedSteer(t, "rollback", socket, "module", "--to-revision", "99"); code != exitModule || !strings.Contains(out, "kept: ") {
		t.Errorf("to one that is not there: exit code %d: %s", code, out)
	}
	if out := steer(t, "config", socket, "set", "module", "color=blue"); !strings.Contains(out, "settings applied (change 2)") {
		t.Errorf("config set: %s", out)
	}
	c.wantLine(`"msg":"reconciled"`, `ConfigChanged`)
	if code, out := refusedSteer(t, "swap", socket, "nobody", other); code != exitUsage || !strings.Contains(out, "the process runs: module") {
		t.Errorf("no such controller: exit code %d: %s", code, out)
	}
	if out := steer(t, "status", socket); !containsAll(out, []string{"REVISION", "kept", "live", "failed", "refused", "trapped"}) {
		t.Errorf("status:\n%s", out)
	}
	c.signal(syscall.SIGTERM)
	c.wantExit(exitOK)
}

// TestSwap_CanaryAndShadowThroughTheBinary: their commands, what they print and
// their exit codes.
func TestSwap_CanaryAndShadowThroughTheBinary(t *testing.T) { canaryAndShadow(t) }

func canaryAndShadow(t *testing.T, args ...string) {
	t.Helper()
	ns, kubeconfig := newConfigMaps(t)
	dir := t.TempDir()
	file, other, bad := filepath.Join(dir, "module.wasm"), filepath.Join(dir, "other.wasm"), filepath.Join(dir, "bad.wasm")
	replace(t, file, enginetest.Worse(enginetest.Good, 1))
	replace(t, other, enginetest.Worse(enginetest.Good, 2))
	replace(t, bad, enginetest.Worse(enginetest.Traps, 3))
	socket := newSocket(t)
	c := startWasmctl(t, append([]string{file, "--for", "cm", "-n", ns, "--socket", socket, "--probation", "0", "--canary-namespace", ns, "--kubeconfig", kubeconfig}, args...)...)
	c.wantLine(`"msg":"reconciled"`, `"object":"`+ns+`/o0"`, `"revision":1`)

	if out := steer(t, "shadow", socket, "module", other, "--all", "--count", "2", "--for", "1h"); !strings.Contains(out, "compared 2 runs of 2 objects: 2 the same") {
		t.Errorf("shadow of the same: %s", out)
	}
	code, out := refusedSteer(t, "shadow", socket, "module", bad, "--all", "--count", "1", "--for", "1h", "-o", "json")
	if code != exitDiffers || !containsAll(out, []string{`"of":"error"`, `"shadow":"trap: `, `"different":1`}) {
		t.Errorf("shadow of a bad one: exit code %d: %s", code, out)
	}
	if code, out := refusedSteer(t, "shadow", socket, "module", file); code != exitModule {
		t.Errorf("shadow of itself: exit code %d: %s", code, out)
	}

	replace(t, file, enginetest.Worse(enginetest.Good, 4)) // run was told to try it
	c.wantLine(`"msg":"canary started"`, "in namespace "+ns)
	serving := regexp.MustCompile(`module: (\d+) +canary .* canary: revision (\d+) serves [45] of [45] objects \(all objects in namespace ` + ns + `, for 5m0s\)\n`)
	if out := steer(t, "status", socket); !serving.MatchString(out) || serving.FindStringSubmatch(out)[1] != serving.FindStringSubmatch(out)[2] {
		t.Errorf("status:\n%s", out)
	}
	if out := steer(t, "abort", socket, "module"); !strings.Contains(out, "revision 1 is live") {
		t.Errorf("abort: %s", out)
	}
	if code, out := refusedSteer(t, "promote", socket, "module"); code != exitModule || !strings.Contains(out, "--canary 10%") {
		t.Errorf("promote without a canary: exit code %d: %s", code, out)
	}
	if out := steer(t, "swap", socket, "module", other, "--canary", "50%", "--canary-time", "0"); !containsAll(out, []string{"is running as a canary", "wasmctl promote module"}) {
		t.Errorf("swap: %s", out)
	}
	if out := steer(t, "promote", socket, "module"); !strings.Contains(out, "is live") {
		t.Errorf("promote: %s", out)
	}
	if got := statusOf(t, socket).Digest; got != host.DigestOf(enginetest.Worse(enginetest.Good, 2)) {
		t.Errorf("%s is live", got)
	}
	if code, out := refusedSteer(t, "swap", socket, "module", bad, "--canary-time", "1h", "--wait"); code != exitModule || !strings.Contains(out, "was rolled back") {
		t.Errorf("a bad canary, on the objects that run was told: exit code %d: %s", code, out)
	}
	if out := steer(t, "swap", socket, "module", file, "--canary", "off"); !strings.Contains(out, "is live") {
		t.Errorf("swap without a canary: %s", out)
	}
	c.signal(syscall.SIGTERM)
	c.wantExit(exitOK)
}

// TestSwap_KilledRunsOneWholeModuleAfterwards: kill -9 at each step of a swap.
// Nothing of a swap is stored, so the next start runs what the file has, and
// nothing else.
func TestSwap_KilledRunsOneWholeModuleAfterwards(t *testing.T) {
	t.Parallel()
	ns, kubeconfig := newConfigMaps(t)
	dir := t.TempDir()
	canaryFlags := []string{"--canary-namespace", ns, "--canary-time", "1s"}
	for name, step := range map[string]struct {
		next  []byte
		flags []string
		at    []string // the line after which it is killed; none: at once
	}{
		"before anything":    {next: enginetest.Worse(enginetest.Good, 2)},
		"on probation":       {next: enginetest.Worse(enginetest.Good, 2), at: []string{`"msg":"module swapped"`, `"revision":2`}},
		"proven":             {next: enginetest.Worse(enginetest.Good, 2), flags: []string{"--probation", "300ms"}, at: []string{`"msg":"probation passed"`, `"revision":2`}},
		"being rolled back":  {next: enginetest.Worse(enginetest.Traps, 2), at: []string{"rolling back: the new module failed probation"}},
		"rolled back":        {next: enginetest.Worse(enginetest.Traps, 2), at: []string{`"msg":"module swapped"`, `"revision":3`}},
		"tried":              {next: enginetest.Worse(enginetest.Good, 2), flags: canaryFlags, at: []string{`"msg":"canary started"`, `"revision":2`}},
		"tried and failed":   {next: enginetest.Worse(enginetest.Traps, 2), flags: canaryFlags, at: []string{`"msg":"canary ended`, `"revision":2`}},
		"tried and promoted": {next: enginetest.Worse(enginetest.Good, 2), flags: canaryFlags, at: []string{`"msg":"canary promoted"`, `"revision":2`}},
	} {
		file := filepath.Join(dir, "module.wasm")
		replace(t, file, enginetest.Worse(enginetest.Good, 1))
		socket := newSocket(t)
		run := func() *child {
			return startWasmctl(t, append([]string{file, "--for", "cm", "-n", ns, "--socket", socket, "--kubeconfig", kubeconfig}, step.flags...)...)
		}
		c := run()
		c.wantLine(`"msg":"reconciled"`, `"revision":1`)
		replace(t, file, step.next)
		if step.at != nil {
			c.wantLine(step.at...)
		}
		c.signal(syscall.SIGKILL)
		<-c.done
		c = run()
		c.wantLine(`"msg":"reconciling"`)
		c.wantLine(`"msg":"reconcil`, `"revision":1`)
		var numbers []admin.Revision
		enginetest.Until(t, name+": it answers", func() bool {
			st, err := admin.NewClient(socket).Status(t.Context())
			if err != nil || len(st.Controllers) != 1 {
				return false
			}
			numbers = st.Controllers[0].Revisions
			return true
		})
		if len(numbers) != 1 || numbers[0].Number != 1 || numbers[0].Digest != host.DigestOf(step.next) {
			t.Errorf("%s: runs %+v, want the file's module alone", name, numbers)
		}
		c.signal(syscall.SIGTERM)
		c.wantExit(exitOK)
	}
}
