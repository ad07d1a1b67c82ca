// SPDX-License-Identifier: Apache-2.0

package run_test

import (
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/wasmctl/wasmctl/devcluster/devclustertest"
	"github.com/wasmctl/wasmctl/internal/enginetest"
	"github.com/wasmctl/wasmctl/runtime/applier"
	"github.com/wasmctl/wasmctl/test/e2e/internal/e2e"
)

// TestMemo_SkipsRunsAlsoAfterARestart: unchanged objects are skipped, explain gives the
// reason, and trigger --force runs them.
func TestMemo_SkipsRunsAlsoAfterARestart(t *testing.T) {
	t.Parallel()
	f, socket := e2e.NewFleet(t, devclustertest.Shared(t)), e2e.NewSocket(t)
	f.Put(t.Context(), "a", e2e.App{Image: "i:1"})
	args := []string{"--socket", socket, "--memo", filepath.Join(t.TempDir(), "memo")}
	last := func(result, why string) func() bool {
		return func() bool {
			e := explained(f, socket, "a")
			return len(e.Runs) > 0 && string(e.Runs[0].Result) == result && e.Runs[0].Error == why
		}
	}
	skipped := applier.ErrUnchanged.Error()

	c := f.Start(args...)
	f.Confirm()
	enginetest.Until(t, "a trigger is skipped", func() bool { // the first trigger may be merged with a run that its own writes have caused
		e2e.Steer(t, "trigger", socket, f.Ns+"/a")
		e2e.AwaitQuiet(t, socket)
		return last("skipped", skipped)()
	})
	e := explained(f, socket, "a")
	if !slices.ContainsFunc(e.Why, func(why string) bool { return strings.Contains(why, "wasmctl trigger --force") }) {
		t.Errorf("explain printed %q", e.Why)
	}
	e2e.Steer(t, "trigger", socket, f.Ns+"/a", "--force")
	enginetest.Until(t, "it runs", last("succeeded", ""))
	c.Signal(syscall.SIGTERM)
	c.WantExit(e2e.ExitOK)

	c = f.Start(args...)
	c.WantLine(`"msg":"reconciling"`)
	enginetest.Until(t, "its run after the restart is skipped", last("skipped", skipped))
	c.Signal(syscall.SIGTERM)
	c.WantExit(e2e.ExitOK)
}
