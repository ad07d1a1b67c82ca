// SPDX-License-Identifier: Apache-2.0

package chaos_test

import (
	"syscall"
	"testing"

	"github.com/wasmctl/wasmctl/devcluster/devclustertest"
	"github.com/wasmctl/wasmctl/test/e2e/internal/e2e"
)

// TestChaos_NothingIsLostWhenTheProcessDies kills wasmctl with -9 twice while objects
// change, and starts it again: in the end the last state of each object was reconciled,
// and undeclared children were deleted (rule 2).
func TestChaos_NothingIsLostWhenTheProcessDies(t *testing.T) {
	t.Parallel()
	f := e2e.NewFleet(t, devclustertest.Shared(t))
	const apps, rounds = 30, 3
	c := f.Start("--socket", "none")
	c.WantLine("reconciling")
	wait := f.Churn(t.Context(), apps, rounds)
	var runs [][]e2e.Reconcile
	for i := range int64(2) {
		f.AwaitPuts((i + 1) * apps)
		c.WantLine(`"msg":"reconciled"`)
		c.Signal(syscall.SIGKILL)
		<-c.Done
		runs = append(runs, c.Reconciles())
		c = f.Start("--socket", "none")
	}
	wait()
	f.Confirm()
	c.Signal(syscall.SIGTERM)
	c.WantExit(e2e.ExitOK)
	e2e.WantNoneTwice(t, append(runs, c.Reconciles())...)
}
