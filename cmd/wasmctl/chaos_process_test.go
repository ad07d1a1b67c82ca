package main

import (
	"syscall"
	"testing"

	"github.com/wasmctl/wasmctl/devcluster/devclustertest"
)

// TestChaos_NothingIsLostWhenTheProcessDies kills wasmctl with -9 twice while
// objects change, and starts it again: in the end each object's last state was
// reconciled, children included that are to go (rule 2).
func TestChaos_NothingIsLostWhenTheProcessDies(t *testing.T) {
	t.Parallel()
	f := newFleet(t, devclustertest.Shared(t))
	const apps, rounds = 30, 3
	c := f.start("--socket", "none")
	c.wantLine("reconciling")
	wait := f.churn(t.Context(), apps, rounds)
	var runs [][]run
	for i := range int64(2) {
		f.awaitPuts((i + 1) * apps)
		c.wantLine(`"msg":"reconciled"`)
		c.signal(syscall.SIGKILL)
		<-c.done
		runs = append(runs, c.runs())
		c = f.start("--socket", "none")
	}
	wait()
	f.confirm()
	c.signal(syscall.SIGTERM)
	c.wantExit(exitOK)
	wantNoneTwice(t, append(runs, c.runs())...)
}
