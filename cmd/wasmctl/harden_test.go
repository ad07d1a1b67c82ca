package main

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"github.com/wasmctl/wasmctl/devcluster/devclustertest"
)

// TestRun_GivesUpWhatItDoesNotNeed: on each of its threads, and wasmctl status says
// so.
func TestRun_GivesUpWhatItDoesNotNeed(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("SKIPPED: only Linux has seccomp")
	}
	kubeconfig := devclustertest.Shared(t).Kubeconfig()
	for mode, want := range map[string]string{"auto": "2", "off": "0"} {
		socket := newSocket(t)
		c := startWasmctl(t, guests+"empty.wasm", "--for", "cm", "--kubeconfig", kubeconfig, "--socket", socket, "--harden", mode)
		c.wantLine(`"msg":"reconciled"`)
		threads, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/status", c.cmd.Process.Pid))
		if len(threads) == 0 {
			t.Error("no threads")
		}
		for _, path := range threads {
			status, err := os.ReadFile(path) //nolint:gosec // of /proc
			if err == nil && !strings.Contains(string(status), "Seccomp:\t"+want+"\n") {
				t.Errorf("--harden %s: %s:\n%s", mode, path, status)
			}
		}
		if out := steer(t, "status", socket); strings.Contains(out, "hardening: not dumpable, no_new_privs, seccomp") != (mode == "auto") {
			t.Errorf("--harden %s: status:\n%s", mode, out)
		}
		c.signal(syscall.SIGTERM)
		c.wantExit(exitOK)
	}
}
