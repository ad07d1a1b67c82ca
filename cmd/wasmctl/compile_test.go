package main

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/wasmctl/wasmctl/cmd/wasmctl/internal/compiler"
	"github.com/wasmctl/wasmctl/devcluster/devclustertest"
	"github.com/wasmctl/wasmctl/host"
	"github.com/wasmctl/wasmctl/internal/enginetest"
	"github.com/wasmctl/wasmctl/runtime/admin"
)

// TestSwap_KilledWhileCompiling: kill -9 of the host while another process
// compiles for it. That process ends too, and the next start runs what the file
// has.
func TestSwap_KilledWhileCompiling(t *testing.T) {
	t.Parallel()
	if runtime.GOOS != "linux" {
		t.Skip("SKIPPED: /proc is Linux's")
	}
	f := newFleet(t, devclustertest.Shared(t))
	module, err := os.ReadFile(exampleWasm(t, "webapp"))
	if err != nil {
		t.Fatal(err)
	}
	file, socket := filepath.Join(t.TempDir(), "module.wasm"), newSocket(t)
	replace(t, file, module)
	run := func() *child {
		return startWasmctl(t, file, "-n", f.ns, "--socket", socket, "--kubeconfig", f.cluster.Kubeconfig())
	}
	c := run()
	c.wantLine(`"msg":"reconciling"`)
	next := enginetest.Numbered(module, int(time.Now().UnixNano())) // of which nobody has the code
	replace(t, file, next)
	var pid int
	enginetest.Until(t, "a process compiles", func() bool { pid = compilerOf(t, c.cmd.Process.Pid); return pid != 0 })
	enginetest.Until(t, "status shows it", func() bool { return strings.Contains(fmt.Sprint(revisionsOf(t, socket)), "loading") })
	c.signal(syscall.SIGKILL)
	<-c.done
	enginetest.Until(t, "the compiler has ended", func() bool { return !alive(pid) })
	c = run()
	c.wantLine(`"msg":"reconciling"`)
	var got []admin.Revision
	enginetest.Until(t, "it answers", func() bool { got = revisionsOf(t, socket); return len(got) > 0 })
	if len(got) != 1 || got[0].Number != 1 || got[0].Digest != host.DigestOf(next) {
		t.Errorf("runs %+v, want the file's module alone", got)
	}
	c.signal(syscall.SIGTERM)
	c.wantExit(exitOK)
}

// revisionsOf returns the revisions of a process's only controller, or
// nothing while it does not answer.
func revisionsOf(t *testing.T, socket string) []admin.Revision {
	t.Helper()
	st, err := admin.NewClient(socket).Status(t.Context())
	if err != nil || len(st.Controllers) != 1 {
		return nil
	}
	return st.Controllers[0].Revisions
}

// compilerOf returns the process that compiles for another one, or 0.
func compilerOf(t *testing.T, parent int) int {
	t.Helper()
	lists, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", parent))
	if err != nil {
		t.Fatal(err)
	}
	for _, list := range lists {
		children, err := os.ReadFile(list)
		if err != nil {
			continue // the thread has ended
		}
		for child := range strings.FieldsSeq(string(children)) {
			line, err := os.ReadFile(filepath.Join("/proc", child, "cmdline"))
			if pid, _ := strconv.Atoi(child); err == nil && strings.Contains(string(line), compiler.Command) {
				return pid
			}
		}
	}
	return 0
}

// alive reports whether a process is there and has not ended.
func alive(pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	_, after, _ := strings.Cut(string(stat), ") ")
	return err == nil && !strings.HasPrefix(after, "Z")
}
