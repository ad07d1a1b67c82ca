// SPDX-License-Identifier: Apache-2.0

package run_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"k8s.io/client-go/rest"

	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/host/load"
	"github.com/wasmctl/wasmctl/internal/enginetest"
	"github.com/wasmctl/wasmctl/test/e2e/internal/e2e"
	"github.com/wasmctl/wasmctl/testdata/wasm"
)

// endsAtSignals sends a signal until the process has ended.
func endsAtSignals(c *e2e.Process, sig syscall.Signal) {
	c.T.Helper()
	c.Signal(sig)
	again := time.NewTicker(50 * time.Millisecond) // two signals that are pending at the same time count as one
	defer again.Stop()
	for second := time.Now(); ; {
		select {
		case <-c.Done:
			return
		case <-again.C:
			c.Signal(sig)
		}
		if time.Since(second) > e2e.WaitLimit {
			c.T.Fatal("does not end")
		}
	}
}

// TestSignals_EndAProcessUnderAttack: two signals end wasmctl during any work that a
// guest, a manifest or a file causes before the first reconcile.
func TestSignals_EndAProcessUnderAttack(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("SKIPPED: /proc is Linux's")
	}
	dir := t.TempDir()
	write := func(name string, content []byte) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, content, 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	var grant bytes.Buffer
	grant.WriteString("apiVersion: wasmctl.dev/v1\nkind: Grant\ncapabilities:\n")
	for grant.Len() < 4<<20-1000 {
		fmt.Fprintf(&grant, "- {resource: pods, verbs: [get], names: [%s]}\n", strings.Repeat("x,", 100))
	}
	crafted, grants := write("crafted.wasm", atItsBounds(t)), write("grant.yaml", grant.Bytes())
	spins, cluster := e2e.Guests+"init_spin.wasm", e2e.WriteKubeconfig(t, &rest.Config{Host: "https://127.0.0.1:1"})
	webapp := e2e.Example(t, "webapp")
	run := func(args ...string) []string {
		return append([]string{"run", "--kubeconfig", cluster, "--socket", "none", "--timeout", "1h"}, args...)
	}
	for name, args := range map[string][]string{
		"a start that spins": run(spins, "--for", "cm", "--grant-manifest"),

		"a manifest at its bounds": run(crafted, "--grant-manifest"),
		"rbac of it":               {"rbac", crafted},
		"inspect of it":            {"inspect", crafted},
		"a huge grant":             run(e2e.Guests+"empty.wasm", "--for", "cm", "--grant", grants),
		"a slow compile":           run(webapp, "--grant-manifest", "--cache-dir", "none"),
		"validate of what spins":   {"validate", spins},
	} {
		t.Run(name, func(t *testing.T) {
			cmd := exec.Command("wasmctl", args...)
			c := e2e.Start(t, cmd)
			enginetest.Until(t, "it computes, or has ended", func() bool {
				select {
				case <-c.Done:
					return true
				default:
					return cpuTime(t, cmd.Process.Pid) > 150*time.Millisecond || c.Text() != "" || e2e.ChildOf(t, cmd.Process.Pid, "compile-for-run") != 0
				}
			})
			c.Signal(syscall.SIGINT)
			endsAtSignals(c, syscall.SIGINT)
		})
	}
}

// atItsBounds returns a module whose manifest requests as much as the limits allow.
func atItsBounds(t *testing.T) []byte {
	t.Helper()
	m := &abi.Manifest{Name: "crafted", For: &abi.Watch{Version: "v1", Kind: "ConfigMap"}}
	for i := range 50 {
		m.Watches = append(m.Watches, abi.Watch{Group: fmt.Sprintf("g%d.example.com", i), Version: "v1", Kind: "Thing", Map: abi.MapOwner})
	}
	capabilities := abi.BoundOf("capabilities")
	for range capabilities {
		c := abi.Capability{Resource: "pods", Verbs: []string{"patch"}}
		for i := range abi.MaxRights / capabilities {
			c.Names = append(c.Names, fmt.Sprint("name", i))
		}
		for i := range abi.MaxFields / capabilities {
			c.Fields = append(c.Fields, fmt.Sprint("spec.a", i))
		}
		m.Capabilities = append(m.Capabilities, c)
	}
	module, err := load.WithManifest(wasm.Empty, m)
	if err != nil {
		t.Fatal(err)
	}
	return module
}

// cpuTime returns the CPU time of a process.
func cpuTime(t *testing.T, pid int) time.Duration {
	t.Helper()
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if errors.Is(err, os.ErrNotExist) || errors.Is(err, syscall.ESRCH) {
		return 0
	}
	if err != nil {
		t.Fatal(err)
	}
	_, after, _ := strings.Cut(string(stat), ") ")
	fields := strings.Fields(after)
	ticks, _ := strconv.Atoi(fields[11]) // utime, in hundredths of a second
	return time.Duration(ticks) * 10 * time.Millisecond
}
