// SPDX-License-Identifier: Apache-2.0

package swap_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/wasmctl/wasmctl/host/load"
	"github.com/wasmctl/wasmctl/internal/enginetest"
	"github.com/wasmctl/wasmctl/runtime/admin"
	"github.com/wasmctl/wasmctl/test/e2e/internal/e2e"
)

// TestSwap_FromFileSignalAndCommand: every way to start a swap, through the binary, and
// the status afterwards.
func TestSwap_FromFileSignalAndCommand(t *testing.T) {
	t.Parallel()
	swapInEveryWay(t)
}

func swapInEveryWay(t *testing.T, args ...string) {
	t.Helper()
	ns, kubeconfig := e2e.NewConfigMaps(t)
	dir := t.TempDir()
	file, other, bad := filepath.Join(dir, "module.wasm"), filepath.Join(dir, "other.wasm"), filepath.Join(dir, "bad.wasm")
	e2e.Replace(t, file, enginetest.Worse(enginetest.Good, 1))
	e2e.Replace(t, other, enginetest.Worse(enginetest.Good, 3))
	e2e.Replace(t, bad, enginetest.Worse(enginetest.Traps, 4))
	socket := e2e.NewSocket(t)
	c := e2e.Run(t, append([]string{file, "--for", "cm", "-n", ns, "--socket", socket, "--probation", "2s", "--kubeconfig", kubeconfig}, args...)...)
	c.WantLine(`"msg":"reconciled"`, `"object":"`+ns+`/o0"`, `"revision":1`)

	e2e.Replace(t, file, enginetest.Worse(enginetest.Good, 2))
	c.WantLine(`"msg":"module swapped"`, `"why":"module file changed"`, `"revision":2`)
	c.WantLine(`"msg":"reconciled"`, `"object":"`+ns+`/o0"`, `ModuleSwapped`, `"revision":2`)
	c.WantLine(`"msg":"probation passed"`, `"revision":2`)
	if err := os.WriteFile(file, []byte("\x00asm in the middle of being wr"), 0o600); err != nil {
		t.Fatal(err)
	}
	c.WantLine(`"msg":"module not swapped in; keeping the running one"`)
	e2e.Replace(t, file, enginetest.Worse(enginetest.Good, 2))
	c.WantLine(`"msg":"module file unchanged"`)

	if out := e2e.Steer(t, "swap", socket, "module", other, "--wait"); !e2e.ContainsAll(out, []string{"is live; waiting for the end of its probation", "probation passed"}) {
		t.Errorf("swap: %s", out)
	}
	if out := e2e.Steer(t, "swap", socket, "module", other); !strings.Contains(out, "unchanged") {
		t.Errorf("the same: %s", out)
	}
	c.Signal(syscall.SIGHUP) // back to the module in the file
	c.WantLine(`"msg":"probation passed"`, `"revision":4`)
	if got := e2e.StatusOf(t, socket).Digest; got != load.DigestOf(enginetest.Worse(enginetest.Good, 2)) {
		t.Errorf("after SIGHUP %s is live", got)
	}
	if code, out := e2e.Refused(t, "swap", socket, "module", bad, "--wait"); code != e2e.ExitModule || !strings.Contains(out, "was rolled back: ") {
		t.Errorf("a bad one: exit code %d: %s", code, out)
	}
	enginetest.Until(t, "the one before is live again", func() bool {
		return e2e.StatusOf(t, socket).Digest == load.DigestOf(enginetest.Worse(enginetest.Good, 2))
	})
	if code, out := e2e.Refused(t, "swap", socket, "module", bad); code != e2e.ExitModule || !strings.Contains(out, "--force") {
		t.Errorf("the bad one again: exit code %d: %s", code, out)
	}
	if out := e2e.Steer(t, "rollback", socket, "module"); !strings.Contains(out, "is live") {
		t.Errorf("rollback: %s", out)
	}
	if code, out := e2e.Refused(t, "rollback", socket, "module", "--to-revision", "99"); code != e2e.ExitError || !strings.Contains(out, "kept: ") {
		t.Errorf("to one that is not there: exit code %d: %s", code, out)
	}
	if out := e2e.Steer(t, "config", socket, "set", "module", "color=blue"); !strings.Contains(out, "settings applied (change 2)") {
		t.Errorf("config set: %s", out)
	}
	c.WantLine(`"msg":"reconciled"`, `ConfigChanged`)
	if code, out := e2e.Refused(t, "swap", socket, "nobody", other); code != e2e.ExitUsage || !strings.Contains(out, "the process runs: module") {
		t.Errorf("no such controller: exit code %d: %s", code, out)
	}
	if out := e2e.Steer(t, "status", socket); !e2e.ContainsAll(out, []string{"REVISION", "kept", "live", "failed", "refused", "trapped"}) {
		t.Errorf("status:\n%s", out)
	}
	c.Signal(syscall.SIGTERM)
	c.WantExit(e2e.ExitOK)
}

// TestSwap_CanaryAndShadowThroughTheBinary: their commands, output and exit codes.
func TestSwap_CanaryAndShadowThroughTheBinary(t *testing.T) { canaryAndShadow(t) }

func canaryAndShadow(t *testing.T, args ...string) {
	t.Helper()
	ns, kubeconfig := e2e.NewConfigMaps(t)
	dir := t.TempDir()
	file, other, bad := filepath.Join(dir, "module.wasm"), filepath.Join(dir, "other.wasm"), filepath.Join(dir, "bad.wasm")
	e2e.Replace(t, file, enginetest.Worse(enginetest.Good, 1))
	e2e.Replace(t, other, enginetest.Worse(enginetest.Good, 2))
	e2e.Replace(t, bad, enginetest.Worse(enginetest.Traps, 3))
	socket := e2e.NewSocket(t)
	c := e2e.Run(t, append([]string{file, "--for", "cm", "-n", ns, "--socket", socket, "--probation", "0", "--canary-namespace", ns, "--kubeconfig", kubeconfig}, args...)...)
	c.WantLine(`"msg":"reconciled"`, `"object":"`+ns+`/o0"`, `"revision":1`)

	if out := e2e.Steer(t, "shadow", socket, "module", other, "--all", "--count", "2", "--for", "1h"); !strings.Contains(out, "compared 2 runs of 2 objects: 2 the same") {
		t.Errorf("shadow of the same: %s", out)
	}
	code, out := e2e.Refused(t, "shadow", socket, "module", bad, "--all", "--count", "1", "--for", "1h", "-o", "json")
	if code != e2e.ExitDiffers || !e2e.ContainsAll(out, []string{`"of":"error"`, `"shadow":"trap: `, `"different":1`}) {
		t.Errorf("shadow of a bad one: exit code %d: %s", code, out)
	}
	if code, out := e2e.Refused(t, "shadow", socket, "module", file); code != e2e.ExitModule {
		t.Errorf("shadow of itself: exit code %d: %s", code, out)
	}

	e2e.Replace(t, file, enginetest.Worse(enginetest.Good, 4)) // the flags of run request a canary
	c.WantLine(`"msg":"canary started"`, "in namespace "+ns)
	serving := regexp.MustCompile(`module: (\d+) +canary .* canary: revision (\d+) serves [45] of [45] objects \(all objects in namespace ` + ns + `, for 5m0s\)\n`)
	if out := e2e.Steer(t, "status", socket); !serving.MatchString(out) || serving.FindStringSubmatch(out)[1] != serving.FindStringSubmatch(out)[2] {
		t.Errorf("status:\n%s", out)
	}
	if out := e2e.Steer(t, "abort", socket, "module"); !strings.Contains(out, "revision 1 is live") {
		t.Errorf("abort: %s", out)
	}
	if code, out := e2e.Refused(t, "promote", socket, "module"); code != e2e.ExitError || !strings.Contains(out, "swap in a module with a canary first") {
		t.Errorf("promote without a canary: exit code %d: %s", code, out)
	}
	if out := e2e.Steer(t, "swap", socket, "module", other, "--canary", "50%", "--canary-time", "0"); !e2e.ContainsAll(out, []string{"is running as a canary", "wasmctl promote module"}) {
		t.Errorf("swap: %s", out)
	}
	if out := e2e.Steer(t, "promote", socket, "module"); !strings.Contains(out, "is live") {
		t.Errorf("promote: %s", out)
	}
	if got := e2e.StatusOf(t, socket).Digest; got != load.DigestOf(enginetest.Worse(enginetest.Good, 2)) {
		t.Errorf("%s is live", got)
	}
	if code, out := e2e.Refused(t, "swap", socket, "module", bad, "--canary-time", "1h", "--wait"); code != e2e.ExitModule || !strings.Contains(out, "was rolled back") {
		t.Errorf("a bad canary, on the objects of run's flags: exit code %d: %s", code, out)
	}
	if out := e2e.Steer(t, "swap", socket, "module", file, "--canary", "off"); !strings.Contains(out, "is live") {
		t.Errorf("swap without a canary: %s", out)
	}
	c.Signal(syscall.SIGTERM)
	c.WantExit(e2e.ExitOK)
}

// TestSwap_KilledRunsOneWholeModuleAfterwards: kill -9 at each step of a swap. A swap
// stores nothing, so the next start runs the module in the file, and no other.
func TestSwap_KilledRunsOneWholeModuleAfterwards(t *testing.T) {
	t.Parallel()
	ns, kubeconfig := e2e.NewConfigMaps(t)
	dir := t.TempDir()
	canaryFlags := []string{"--canary-namespace", ns, "--canary-time", "1s"}
	for name, step := range map[string]struct {
		next  []byte
		flags []string
		at    []string // parts of the line after which the process is killed; if empty, it is killed at once
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
		e2e.Replace(t, file, enginetest.Worse(enginetest.Good, 1))
		socket := e2e.NewSocket(t)
		run := func() *e2e.Process {
			return e2e.Run(t, append([]string{file, "--for", "cm", "-n", ns, "--socket", socket, "--kubeconfig", kubeconfig}, step.flags...)...)
		}
		c := run()
		c.WantLine(`"msg":"reconciled"`, `"revision":1`)
		e2e.Replace(t, file, step.next)
		if step.at != nil {
			c.WantLine(step.at...)
		}
		c.Signal(syscall.SIGKILL)
		<-c.Done
		c = run()
		c.WantLine(`"msg":"reconciling"`)
		c.WantLine(`"msg":"reconcil`, `"revision":1`)
		var numbers []admin.Revision
		enginetest.Until(t, name+": it answers", func() bool {
			st, err := admin.NewClient(socket).Status(t.Context())
			if err != nil || len(st.Controllers) != 1 {
				return false
			}
			numbers = st.Controllers[0].Revisions
			return true
		})
		if len(numbers) != 1 || numbers[0].Number != 1 || numbers[0].Digest != load.DigestOf(step.next) {
			t.Errorf("%s: runs %+v, want the file's module alone", name, numbers)
		}
		c.Signal(syscall.SIGTERM)
		c.WantExit(e2e.ExitOK)
	}
}
