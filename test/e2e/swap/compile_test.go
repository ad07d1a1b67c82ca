// SPDX-License-Identifier: Apache-2.0

package swap_test

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/wasmctl/wasmctl/devcluster/devclustertest"
	"github.com/wasmctl/wasmctl/host/load"
	"github.com/wasmctl/wasmctl/internal/enginetest"
	"github.com/wasmctl/wasmctl/runtime/admin"
	"github.com/wasmctl/wasmctl/test/e2e/internal/e2e"
)

// TestSwap_KilledWhileCompiling: kill -9 of the host while another process compiles for
// it. That process ends too, and the next start runs the module in the file.
func TestSwap_KilledWhileCompiling(t *testing.T) {
	t.Parallel()
	if runtime.GOOS != "linux" {
		t.Skip("SKIPPED: /proc is Linux's")
	}
	f := e2e.NewFleet(t, devclustertest.Shared(t))
	module, err := os.ReadFile(e2e.Example(t, "webapp"))
	if err != nil {
		t.Fatal(err)
	}
	file, socket := filepath.Join(t.TempDir(), "module.wasm"), e2e.NewSocket(t)
	e2e.Replace(t, file, module)
	run := func() *e2e.Process {
		return e2e.Run(t, file, "-n", f.Ns, "--socket", socket, "--kubeconfig", f.Cluster.Kubeconfig())
	}
	c := run()
	c.WantLine(`"msg":"reconciling"`)
	next := enginetest.Numbered(module, int(time.Now().UnixNano())) // a module without cached code
	e2e.Replace(t, file, next)
	var pid int
	enginetest.Until(t, "a process compiles", func() bool { pid = e2e.ChildOf(t, c.Cmd.Process.Pid, "compile-for-run"); return pid != 0 })
	enginetest.Until(t, "status shows it", func() bool { return strings.Contains(fmt.Sprint(revisionsOf(t, socket)), "loading") })
	c.Signal(syscall.SIGKILL)
	<-c.Done
	enginetest.Until(t, "the compiler has ended", func() bool { return !alive(pid) })
	c = run()
	c.WantLine(`"msg":"reconciling"`)
	var got []admin.Revision
	enginetest.Until(t, "it answers", func() bool { got = revisionsOf(t, socket); return len(got) > 0 })
	if len(got) != 1 || got[0].Number != 1 || got[0].Digest != load.DigestOf(next) {
		t.Errorf("runs %+v, want the file's module alone", got)
	}
	c.Signal(syscall.SIGTERM)
	c.WantExit(e2e.ExitOK)
}

// revisionsOf returns the revisions of the only controller of a process, or nil if the process does not
// answer.
func revisionsOf(t *testing.T, socket string) []admin.Revision {
	t.Helper()
	st, err := admin.NewClient(socket).Status(t.Context())
	if err != nil || len(st.Controllers) != 1 {
		return nil
	}
	return st.Controllers[0].Revisions
}

// alive reports whether a process exists and has not ended.
func alive(pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	_, after, _ := strings.Cut(string(stat), ") ")
	return err == nil && !strings.HasPrefix(after, "Z")
}
