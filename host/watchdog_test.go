// SPDX-License-Identifier: Apache-2.0

package host

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/host/operation"
	"github.com/wasmctl/wasmctl/host/share"
	"github.com/wasmctl/wasmctl/testdata/wasm"
)

// hangingAPI is a host that is broken: it minds no deadline, until it is closed.
type hangingAPI chan struct{}

func (h hangingAPI) Call(context.Context, abi.Op, []byte) abi.Response {
	<-h
	return abi.Response{}
}

// A host function that takes more than twice the timeout of its call makes the
// check fail, with the module and the function, and is logged once with the
// stack of its goroutine. When it returns, the check passes and the call has timed
// out.
func TestWatchdog_NamesTheFunctionThatHangs(t *testing.T) {
	inThisProcess(t)
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		w := share.NewWatchdog()
		go w.Run(ctx)
		var log bytes.Buffer
		hang := make(hangingAPI)
		const timeout = 5 * time.Second
		m := loaded(t, wasm.Calls, Config{
			Name: "web", Process: Process{Watchdog: w}, Limits: share.Limits{Timeout: timeout}, Logger: slog.New(slog.NewTextHandler(&log, nil)),
			API: func(*abi.Manifest) (operation.API, error) { return hang, nil },
		})
		g := acquire(t, m)
		ended := make(chan error)
		go func() {
			req := request(0)
			req.Object = sequence([]hostCall{{"api_get", [4]uint32{requestAt, 4, dstAt, 1000}}})
			_, err := g.Reconcile(t.Context(), req)
			ended <- err
		}()
		<-time.After(2*timeout + share.WatchGrace/2)
		if err := w.Check(); err != nil {
			t.Errorf("too early: %v", err)
		}
		<-time.After(time.Minute)
		if err := w.Check(); err == nil || err.Error() != "calls do not end with their time: module web in reconciler_v1.api_get" {
			t.Errorf("got %v", err)
		}
		if text := log.String(); strings.Count(text, "does not end") != 1 || !strings.Contains(text, "hangingAPI.Call") {
			t.Errorf("want one line with the stack: %s", text)
		}
		close(hang)
		if ce := callError(t, <-ended); ce.Kind != abi.FailureTimeout {
			t.Errorf("got %v", ce)
		}
		if err := w.Check(); err != nil {
			t.Errorf("afterwards: %v", err)
		}
	})
}

// Calls that do end are none of its business, and instances that are gone are
// forgotten.
func TestWatchdog_ForgetsInstances(t *testing.T) {
	w := share.NewWatchdog()
	m, err := Load(t.Context(), wasm.Modes, Config{Process: Process{Watchdog: w}})
	if err != nil {
		t.Fatal(err)
	}
	g, release, err := m.Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, mode := range []byte{0, 1, 11} {
		_, _ = g.Reconcile(t.Context(), request(mode))
	}
	release()
	if err := w.Check(); err != nil {
		t.Error(err)
	}
	if err := m.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
}
