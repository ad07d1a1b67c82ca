// SPDX-License-Identifier: Apache-2.0

package applier

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/runtime/applier/quarantine"
	"github.com/wasmctl/wasmctl/runtime/queue"
)

// patient is an object in a store, and the module for which it is harmful.
type patient struct {
	applier  *Applier
	module   *script
	object   map[string]any
	revision uint64
	err      error // of the next run
	log      bytes.Buffer
}

func newPatient(t *testing.T, cfg quarantine.Config) *patient {
	t.Helper()
	p := &patient{
		revision: 7, err: trapped("unreachable\nwasm stack trace:\n\tmain.reconcile"),
		object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"uid": "u"}, "data": map[string]any{"a": "1"}},
	}
	p.module = &script{reconcile: func(context.Context, *abi.Request) (abi.Result, error) { return abi.Result{}, p.err }}
	p.applier = newApplier(t, p.module, func(c *Config) {
		c.Quarantine, c.Revision = cfg, func(abi.Key) uint64 { return p.revision }
		c.Logger = slog.New(slog.NewTextHandler(&p.log, nil))
		c.Lookup = func(abi.Key) Object {
			b, err := abi.AppendValue(nil, p.object)
			return rawIf(err == nil, b)
		}
	})
	return p
}

func trapped(text string) error {
	return &abi.CallError{Kind: abi.FailureTrap, Func: abi.ExportReconcile, Err: errors.New(text)}
}

func (p *patient) run(t *testing.T, reason abi.ReasonType) Outcome {
	t.Helper()
	return p.applier.Apply(t.Context(), testKey, queue.Reasons{First: abi.Reason{Type: reason}}, time.Time{})
}

func (p *patient) quarantined() bool { return p.applier.Object(testKey).Quarantine != nil }

// An object whose runs keep trapping is quarantined, longer each time; events that do not change it do not run it, and
// its state contains the reason.
func TestQuarantine_DelaysAnObjectThatKeepsFailing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPatient(t, quarantine.Config{After: 3})
		for i := range 2 {
			if out := p.run(t, abi.ReasonObjectUpdated); out.Action.After > time.Second || p.quarantined() {
				t.Fatalf("run %d: %+v", i+1, out)
			}
		}
		out := p.run(t, abi.ReasonRetry)
		if !out.Failed() || out.DecidedBy != DecidedByQuarantine || out.Action.After < 48*time.Second || out.Action.After > time.Minute {
			t.Errorf("the third run: %+v", out)
		}
		state := p.applier.Object(testKey).Quarantine
		if state == nil || state.Runs != 3 || !strings.Contains(state.Text, "main.reconcile") || time.Until(state.Until) != out.Action.After {
			t.Fatalf("state %+v", state)
		}
		if list, n := p.applier.Quarantined(20); n != 1 || len(list) != 1 || list[0] != *state || p.applier.Stats().Quarantined != 1 {
			t.Errorf("list %+v, %d", list, n)
		}
		<-time.After(10 * time.Second)
		out2 := p.run(t, abi.ReasonObjectUpdated)
		if out2.Failed() || !errors.Is(out2.Err, ErrQuarantined) || out2.Action != (abi.Action{Requeue: true, After: out.Action.After - 10*time.Second}) {
			t.Errorf("an event meanwhile: %+v", out2)
		}
		if len(p.module.requests) != 3 {
			t.Errorf("%d runs, want 3", len(p.module.requests))
		}
		<-time.After(out2.Action.After)
		if out := p.run(t, abi.ReasonRequeue); !out.Failed() || out.Action.After < 96*time.Second {
			t.Errorf("the run when the time is over: %+v", out)
		}
		if n := strings.Count(p.log.String(), "quarantined"); n != 1 {
			t.Errorf("said %d times: %s", n, &p.log)
		}
	})
}

func TestQuarantine_EndsWithAnyChangeOrOnDemand(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(p *patient)
		reason abi.ReasonType
		runs   bool
	}{
		"nothing":           {func(*patient) {}, abi.ReasonObjectUpdated, false},
		"a resync":          {func(*patient) {}, abi.ReasonResync, false},
		"content":           {func(p *patient) { p.object["data"] = map[string]any{"a": "2"} }, abi.ReasonObjectUpdated, true},
		"status":            {func(p *patient) { p.object["status"] = map[string]any{"a": "2"} }, abi.ReasonObjectUpdated, false},
		"labels":            {func(p *patient) { p.meta()["labels"] = map[string]any{"a": "2"} }, abi.ReasonObjectUpdated, false},
		"uid":               {func(p *patient) { p.meta()["uid"] = "other" }, abi.ReasonObjectUpdated, true},
		"generation":        {func(p *patient) { p.meta()["generation"] = int64(2) }, abi.ReasonObjectUpdated, true},
		"deletion":          {func(p *patient) { p.meta()["deletionTimestamp"] = "now" }, abi.ReasonObjectUpdated, true},
		"the module":        {func(p *patient) { p.revision++ }, abi.ReasonRelated, true},
		"wasmctl trigger":   {func(*patient) {}, abi.ReasonTriggered, true},
		"the settings":      {func(*patient) {}, abi.ReasonConfigChanged, true},
		"a resync's retry ": {func(*patient) {}, abi.ReasonRetry, false},
	} {
		synctest.Test(t, func(t *testing.T) {
			p := newPatient(t, quarantine.Config{After: 1})
			p.run(t, abi.ReasonListed)
			p.err = nil
			tc.change(p)
			out := p.run(t, tc.reason)
			if ran := len(p.module.requests) == 2; ran != tc.runs || p.quarantined() == tc.runs || errors.Is(out.Err, ErrQuarantined) == tc.runs {
				t.Errorf("%s: ran %v, %+v", name, ran, out)
			}
			if said := strings.Contains(p.log.String(), "no longer quarantined"); said != tc.runs {
				t.Errorf("%s: the log: %s", name, &p.log)
			}
		})
	}
}

func (p *patient) meta() map[string]any { return p.object["metadata"].(map[string]any) }

// If the object has a generation, only that determines whether it has changed.
func TestFingerprint_GoesByTheGenerationWhereThereIsOne(t *testing.T) {
	object := func(generation int64, spec string) []byte {
		b, err := abi.AppendValue(nil, map[string]any{"metadata": map[string]any{"uid": "u", "generation": generation}, "spec": spec})
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	if fingerprint(object(1, "a")) != fingerprint(object(1, "b")) || fingerprint(object(1, "a")) == fingerprint(object(2, "a")) {
		t.Error("the generation does not decide")
	}
	for _, bad := range []string{"", "\x80", "\x81", "\xc1", "\x81\xa8metadata\xa1x"} {
		_ = fingerprint([]byte(bad)) // any bytes will do
	}
}

// Failures that are not the object's fault do not count, and neither does an error that the guest returns.
func TestQuarantine_OnlyHarmfulRunsCount(t *testing.T) {
	limit := func(name abi.LimitName, waited bool) error {
		return &abi.CallError{Kind: abi.FailureTimeout, Func: abi.ExportReconcile, Err: fmt.Errorf("x: %w", &abi.LimitError{Limit: name, Waited: waited})}
	}
	call := func(kind abi.FailureKind, fn string) error {
		return &abi.CallError{Kind: kind, Func: fn, Err: errors.New("x")}
	}
	for name, tc := range map[string]struct {
		err    error
		counts bool
	}{
		"trap":               {call(abi.FailureTrap, abi.ExportReconcile), true},
		"trap in finalize":   {call(abi.FailureTrap, abi.ExportFinalize), true},
		"output":             {call(abi.FailureOutput, abi.ExportReconcile), true},
		"memory":             {limit(abi.LimitMemory, false), true},
		"timeout":            {limit(abi.LimitTimeout, false), true},
		"fuel":               {limit(abi.LimitFuel, false), true},
		"waited for the API": {limit(abi.LimitTimeout, true), false},
		"memory budget":      {limit(abi.LimitMemoryBudget, false), false},
		"start of the guest": {call(abi.FailureTrap, abi.ExportInitialize), false},
		"an error":           {&abi.ResultError{Message: "no"}, false},
	} {
		p := newPatient(t, quarantine.Config{After: 1})
		p.err = tc.err
		if p.run(t, abi.ReasonListed); p.quarantined() != tc.counts {
			t.Errorf("%s: quarantined %v", name, p.quarantined())
		}
	}
	p := newPatient(t, quarantine.Config{After: 1})
	p.module.acquire = call(abi.FailureTrap, abi.ExportReconcile)
	if p.run(t, abi.ReasonListed); p.quarantined() {
		t.Error("an object without a guest is quarantined")
	}
}

// A success in between, or the deletion of the object, restarts the count.
func TestQuarantine_InARowOnly(t *testing.T) {
	p := newPatient(t, quarantine.Config{After: 2})
	poisonous := p.err
	for i, err := range []error{poisonous, nil, poisonous, &abi.ResultError{Message: "no"}, poisonous} {
		p.err = err
		if p.run(t, abi.ReasonObjectUpdated); p.quarantined() {
			t.Errorf("quarantined after run %d", i+1)
		}
	}
	if p.run(t, abi.ReasonObjectUpdated); !p.quarantined() {
		t.Error("not quarantined after two in a row")
	}
	p.applier.cfg.Lookup = func(abi.Key) Object { return nil }
	if p.run(t, abi.ReasonObjectDeleted); p.quarantined() || p.applier.quarantine.known.Load() != 0 {
		t.Error("an object that is gone is still quarantined")
	}
}

// error_policy is called as usual; only its delay is overridden, and a decision to wait for a change is respected.
func TestQuarantine_ErrorPolicyIsStillAsked(t *testing.T) {
	p := newPatient(t, quarantine.Config{After: 1})
	p.module.policy = policyReturns(abi.Action{Requeue: true, After: time.Hour})
	if out := p.run(t, abi.ReasonListed); out.DecidedBy != DecidedByErrorPolicy || out.Action.After != time.Hour {
		t.Errorf("a longer delay of error_policy: %+v", out)
	}
	p = newPatient(t, quarantine.Config{After: 1})
	p.module.policy = policyReturns(abi.Action{})
	if out := p.run(t, abi.ReasonListed); out.DecidedBy != DecidedByErrorPolicy || out.Action.Requeue || len(p.module.failures) != 1 {
		t.Errorf("await change: %+v", out)
	}
}

// Many objects at once, half of them harmful, with concurrent readers.
func TestQuarantine_Hammer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, err := New(Config{
			Controller: "test", Module: &poisoner{}, Quarantine: quarantine.Config{After: 2},
			Lookup: func(abi.Key) Object { return raw{0x80} },
		})
		if err != nil {
			t.Fatal(err)
		}
		const workers, objects, rounds = 4, 10, 200
		var wg sync.WaitGroup
		for worker := range workers {
			wg.Go(func() {
				for i := range rounds {
					a.Apply(t.Context(), abi.Key{Namespace: strconv.Itoa(worker), Name: strconv.Itoa(i % objects)}, testReason, time.Time{})
				}
			})
			wg.Go(func() {
				for i := range rounds {
					a.Quarantined(5)
					a.Object(abi.Key{Namespace: strconv.Itoa(worker), Name: strconv.Itoa(i % objects)})
				}
			})
		}
		wg.Wait()
		if list, n := a.Quarantined(5); n != workers*objects/2 || len(list) != 5 {
			t.Errorf("%d are quarantined, want %d; %d are listed", n, workers*objects/2, len(list))
		}
	})
}

// poisoner is a module with many guests that traps on every second object.
type poisoner struct{ busy }

func (p *poisoner) Acquire(context.Context) (abi.Guest, func(), error) { return p, func() {}, nil }

func (p *poisoner) Reconcile(_ context.Context, req *abi.Request) (abi.Result, error) {
	if n, _ := strconv.Atoi(req.Key.Name); n%2 == 1 {
		return abi.Result{}, trapped("unreachable")
	}
	return abi.Result{}, nil
}
