// SPDX-License-Identifier: Apache-2.0

package run_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/wasmctl/wasmctl/devcluster/devclustertest"
	"github.com/wasmctl/wasmctl/runtime/admin"
	"github.com/wasmctl/wasmctl/test/e2e/internal/e2e"
)

// TestLogs_OfARunningController: wasmctl logs prints its lines, those of one object, and
// new ones; wasmctl log-level changes its level while it runs.
func TestLogs_OfARunningController(t *testing.T) {
	t.Parallel()
	f, socket := e2e.NewFleet(t, devclustertest.Shared(t)), e2e.NewSocket(t)
	f.Put(t.Context(), "a", e2e.App{Image: "i:1"})
	f.Put(t.Context(), "b", e2e.App{Image: "i:1"})
	c := f.Start("--socket", socket)
	f.Confirm()
	c.WantLine(`"msg":"reconciled"`, `"object":"`+f.Ns+`/b"`)
	text := e2e.Steer(t, "logs", socket, "webapp", "--object", f.Ns+"/a")
	if !strings.Contains(text, "reconciled object="+f.Ns+"/a") || strings.Contains(text, f.Ns+"/b") {
		t.Errorf("of one object:\n%s", text)
	}
	if text := e2e.Steer(t, "logs", socket, "webapp", "--tail", "1", "-o", "json"); strings.Count(text, "\n") != 1 || !json.Valid([]byte(text)) {
		t.Errorf("the last line:\n%s", text)
	}
	if got := e2e.Steer(t, "log-level", socket, "webapp"); got != "info\n" {
		t.Errorf("the level is %q", got)
	}
	e2e.Steer(t, "log-level", socket, "webapp", "error")
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	first := make(chan string, 1)
	go func() {
		_ = admin.NewClient(socket).Logs(ctx, "webapp", admin.LogQuery{Follow: true, Tail: 0}, func(line []byte) error {
			first <- string(line)
			return fmt.Errorf("enough")
		})
	}()
	f.Put(t.Context(), "a", e2e.App{Image: "i:2"})
	f.Confirm() // these runs log nothing
	e2e.Steer(t, "log-level", socket, "webapp", "debug")
	select {
	case line := <-first:
		if !strings.Contains(line, "log level changed") {
			t.Errorf("at level error something was logged: %s", line)
		}
	case <-time.After(e2e.WaitLimit):
		t.Error("nothing comes")
	}
	c.Signal(syscall.SIGTERM)
	c.WantExit(e2e.ExitOK)
}
