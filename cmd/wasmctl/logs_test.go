package main

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
)

// TestLogs_OfARunningController: its lines, of one object, as they come; and its
// level, changed while it runs.
func TestLogs_OfARunningController(t *testing.T) {
	t.Parallel()
	f, socket := newFleet(t, devclustertest.Shared(t)), newSocket(t)
	f.put(t.Context(), "a", app{image: "i:1"})
	f.put(t.Context(), "b", app{image: "i:1"})
	c := f.start("--socket", socket)
	f.confirm()
	c.wantLine(`"msg":"reconciled"`, `"object":"`+f.ns+`/b"`)
	text := steer(t, "logs", socket, "webapp", "--object", f.ns+"/a")
	if !strings.Contains(text, "reconciled object="+f.ns+"/a") || strings.Contains(text, f.ns+"/b") {
		t.Errorf("of one object:\n%s", text)
	}
	if text := steer(t, "logs", socket, "webapp", "--tail", "1", "-o", "json"); strings.Count(text, "\n") != 1 || !json.Valid([]byte(text)) {
		t.Errorf("the last line:\n%s", text)
	}
	if got := steer(t, "log-level", socket, "webapp"); got != "info\n" {
		t.Errorf("the level is %q", got)
	}
	steer(t, "log-level", socket, "webapp", "error")
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	first := make(chan string, 1)
	go func() {
		_ = admin.NewClient(socket).Logs(ctx, "webapp", admin.LogQuery{Follow: true, Tail: 0}, func(line []byte) error {
			first <- string(line)
			return fmt.Errorf("enough")
		})
	}()
	f.put(t.Context(), "a", app{image: "i:2"})
	f.confirm() // nothing is logged of it
	steer(t, "log-level", socket, "webapp", "debug")
	select {
	case line := <-first:
		if !strings.Contains(line, "log level changed") {
			t.Errorf("at level error something was logged: %s", line)
		}
	case <-time.After(waitLimit):
		t.Error("nothing comes")
	}
	c.signal(syscall.SIGTERM)
	c.wantExit(exitOK)
}
