// SPDX-License-Identifier: Apache-2.0

package wasmctl

import (
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/wasmctl/wasmctl/api/v1alpha1"
	"github.com/wasmctl/wasmctl/devcluster/devclustertest"
	"github.com/wasmctl/wasmctl/internal/enginetest"
)

// probed loads a module with objects to run, whose swaps are on probation.
func (r *guests) probed(wasm []byte) *Controller {
	r.t.Helper()
	o := r.options("probed")
	o.Rollout = &v1alpha1.Rollout{Probation: "1h"}
	c, err := r.Load(r.t.Context(), Bytes(wasm), o)
	if err != nil {
		r.t.Fatal(err)
	}
	return c
}

// live returns the digest of the running module, and failed the modules that were rolled
// back according to the status.
func (r *guests) live() (digest, failed string) {
	for _, g := range r.Admin().Status().Controllers[0].Revisions {
		switch g.State {
		case "live", "probation":
			digest = g.Digest
		case "failed":
			failed += g.Digest + " " + g.Reason
		}
	}
	return digest, failed
}

func (r *guests) rollsBack(c *Controller, bad []byte) {
	r.t.Helper()
	good, _ := r.live()
	if _, err := c.Swap(r.t.Context(), Bytes(bad), SwapOptions{}); err != nil {
		r.t.Fatal(err)
	}
	enginetest.Until(r.t, "it is rolled back", func() bool {
		live, failed := r.live()
		return live == good && failed != ""
	})
}

// changed waits until the history of the controller has these results.
func (r *guests) changed(want ...string) {
	r.t.Helper()
	enginetest.Until(r.t, "the history has "+strings.Join(want, ", "), func() bool {
		list, err := r.Admin().History("probed")
		var got []string
		for _, c := range list {
			if got = append(got, c.Result); c.Digest == "" || c.Time.IsZero() {
				r.t.Errorf("%+v", c)
			}
		}
		return err == nil && slices.Equal(got, want)
	})
}

// If the file has a module that was rolled back, a restart runs the module that was live,
// and does not try the other again.
func TestState_RestartRunsWhatWasLive(t *testing.T) {
	ns := devclustertest.Namespace(t, devclustertest.Shared(t))
	good, bad, state := enginetest.Worse(enginetest.Good, 1), enginetest.Worse(enginetest.Traps, 1), t.TempDir()
	first := newGuestsIn(t, ns, Options{StateDir: state})
	for i := range 5 {
		first.create(enginetest.ObjectName(i))
	}
	first.rollsBack(first.probed(good), bad)
	want, _ := first.live()
	first.changed("started", "swapped", "rolled_back")
	if err := first.stop(); err != nil {
		t.Fatal(err)
	}

	second := newGuestsIn(t, ns, Options{StateDir: state})
	c := second.probed(bad)
	enginetest.Until(t, "it runs", func() bool { return second.runs() >= 5 })
	if live, failed := second.live(); live != want || !strings.Contains(failed, "was rolled back at") {
		t.Errorf("live %s, want %s; failed: %s", live, want, failed)
	}
	if _, err := c.Swap(t.Context(), Bytes(bad), SwapOptions{}); err == nil || !strings.Contains(err.Error(), "was rolled back") {
		t.Errorf("it is swapped in again: %v", err)
	}
	second.changed("started", "swapped", "rolled_back", "started", "refused")
}

// Two replicas have the same file: the leader rolls its module back, and a standby that
// takes over does not run it on any object.
func TestState_ReplicasShareWhatWasRolledBack(t *testing.T) {
	ns := devclustertest.Namespace(t, devclustertest.Shared(t))
	good, bad := enginetest.Worse(enginetest.Good, 2), enginetest.Worse(enginetest.Traps, 2)
	election := func() Options {
		return Options{Election: &Election{Namespace: ns, Name: "shared", LeaseDuration: 15 * time.Second, RenewDeadline: 10 * time.Second, RetryPeriod: 100 * time.Millisecond}}
	}
	leader := newGuestsIn(t, ns, election())
	for i := range 5 {
		leader.create(enginetest.ObjectName(i))
	}
	c := leader.probed(good)
	enginetest.Until(t, "the leader runs", func() bool { return leader.runs() >= 5 })

	standby := newGuestsIn(t, ns, election())
	s := standby.probed(good)
	if _, err := s.Swap(t.Context(), Bytes(bad), SwapOptions{}); err != nil {
		t.Fatal(err)
	}
	enginetest.Until(t, "the standby has a queue", func() bool {
		return strings.Contains(standby.metrics(), `depth{controller="probed",name="probed",priority="-100"} 6`)
	})
	if page := standby.metrics(); !strings.Contains(page, `wasmctl_queue_oldest_seconds{controller="probed"} 0`+"\n") {
		t.Errorf("its queue is late:\n%s", page)
	}
	leader.rollsBack(c, bad)
	want, _ := leader.live()
	if err := leader.stop(); err != nil {
		t.Fatal(err)
	}
	enginetest.Until(t, "the standby takes over", func() bool { return standby.runs() >= 5 })
	if live, failed := standby.live(); live != want || failed == "" {
		t.Errorf("live %s, want %s; failed: %q", live, want, failed)
	}
	if page := standby.metrics(); !strings.Contains(page, `result="error"} 0`) {
		t.Errorf("runs of the bad module:\n%s", page)
	}

	third, err := New(standby.cluster.RESTConfig(), election())
	if err != nil {
		t.Fatal(err)
	}
	_, err = third.Load(t.Context(), Bytes(bad), standby.options("probed"))
	if !errors.Is(err, ErrModule) || !strings.Contains(fmt.Sprint(err), "deploy another module") {
		t.Errorf("a replica that has only the bad one: %v", err)
	}
}

// What loads leave is collected at its bound, and not before.
func TestGarbage_IsCollectedAtItsBound(t *testing.T) {
	var g garbage
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	g.add(maxGarbage - 1)
	if g.bytes != maxGarbage-1 {
		t.Errorf("%d bytes are left below the bound", g.bytes)
	}
	g.add(1)
	if runtime.ReadMemStats(&after); g.bytes != 0 || after.NumForcedGC == before.NumForcedGC {
		t.Errorf("%d bytes are left at the bound", g.bytes)
	}
}
