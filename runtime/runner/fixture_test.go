// SPDX-License-Identifier: Apache-2.0

package runner_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"

	"github.com/wasmctl/wasmctl/runtime/runner"
	"github.com/wasmctl/wasmctl/runtime/scheduler"
)

type (
	config  = runner.Config[string]
	outcome = scheduler.Next[string]
	request = scheduler.Request[string, string]
	item    = scheduler.Item[string, string]
	job     = runner.Job[string, string]
)

var errTestStop = errors.New("stopped by the test")

// fixture is a runner in the test's bubble, with the other ends of its channels.
type fixture struct {
	*runner.Runner[string, string]
	t        *testing.T
	requests chan []request
	ready    chan struct{}
	force    context.CancelFunc
	stop     context.CancelCauseFunc
	ended    chan struct{} // closed when Run has returned
	err      error         // of Run; valid once ended is closed
}

// newFixture starts a runner that is not ready yet. It is stopped by force when the test ends, so that a failing test
// does not hang.
func newFixture(t *testing.T, cfg config, run job) *fixture {
	t.Helper()
	r, err := runner.New(cfg, run)
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancelCause(t.Context())
	forceCtx, force := context.WithCancel(context.Background())
	f := &fixture{
		Runner: r, t: t, requests: make(chan []request), ready: make(chan struct{}),
		force: force, stop: stop, ended: make(chan struct{}),
	}
	go func() {
		f.err = r.Run(ctx, runner.Input[string, string]{Requests: f.requests, Ready: f.ready, Force: forceCtx.Done()})
		close(f.ended)
	}()
	t.Cleanup(func() {
		force()
		<-f.ended
	})
	return f
}

// newReady starts a runner that is ready.
func newReady(t *testing.T, cfg config, run job) *fixture {
	t.Helper()
	f := newFixture(t, cfg, run)
	close(f.ready)
	return f
}

// send sends one batch with a request for each key.
func (f *fixture) send(keys ...string) {
	f.t.Helper()
	var batch []request
	for _, key := range keys {
		batch = append(batch, request{Key: key})
	}
	f.sendBatch(batch...)
}

func (f *fixture) sendBatch(batch ...request) {
	f.t.Helper()
	select {
	case f.requests <- batch:
	case <-f.ended:
		f.t.Fatalf("Run has returned: %v", f.err)
	}
}

// hasEnded reports whether Run has returned once all goroutines of the bubble are idle.
func (f *fixture) hasEnded() bool {
	synctest.Wait()
	select {
	case <-f.ended:
		return true
	default:
		return false
	}
}

// wantStats waits until all goroutines of the bubble are idle, and fails the test if the counts differ; it ignores
// ages.
func (f *fixture) wantStats(want runner.Stats) {
	f.t.Helper()
	synctest.Wait()
	got := f.Stats()
	got.OldestReady, got.OldestRunning, got.Unfinished = 0, 0, 0
	if got != want {
		f.t.Fatalf("stats %+v, want %+v", got, want)
	}
}
