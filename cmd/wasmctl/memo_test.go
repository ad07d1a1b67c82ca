package main

import (
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/wasmctl/wasmctl/devcluster/devclustertest"
	"github.com/wasmctl/wasmctl/internal/enginetest"
	"github.com/wasmctl/wasmctl/runtime/applier"
)

// TestMemo_SkipsRunsAlsoAfterARestart, says so, and runs what is forced.
func TestMemo_SkipsRunsAlsoAfterARestart(t *testing.T) {
	t.Parallel()
	f, socket := newFleet(t, devclustertest.Shared(t)), newSocket(t)
	f.put(t.Context(), "a", app{image: "i:1"})
	args := []string{"--socket", socket, "--memo", filepath.Join(t.TempDir(), "memo")}
	last := func(result, why string) func() bool {
		return func() bool {
			e := f.explained(socket, "a")
			return len(e.Runs) > 0 && string(e.Runs[0].Result) == result && e.Runs[0].Error == why
		}
	}
	skipped := applier.ErrUnchanged.Error()

	c := f.start(args...)
	f.confirm()
	enginetest.Until(t, "a trigger is skipped", func() bool { // the first may find that a run of its own writes is due
		steer(t, "trigger", socket, f.ns+"/a")
		awaitQuiet(t, socket)
		return last("skipped", skipped)()
	})
	e := f.explained(socket, "a")
	if !slices.ContainsFunc(e.Why, func(why string) bool { return strings.Contains(why, "wasmctl trigger --force") }) {
		t.Errorf("explain says %q", e.Why)
	}
	steer(t, "trigger", socket, f.ns+"/a", "--force")
	enginetest.Until(t, "it runs", last("succeeded", ""))
	c.signal(syscall.SIGTERM)
	c.wantExit(exitOK)

	c = f.start(args...)
	c.wantLine(`"msg":"reconciling"`)
	enginetest.Until(t, "its run after the restart is skipped", last("skipped", skipped))
	c.signal(syscall.SIGTERM)
	c.wantExit(exitOK)
}
