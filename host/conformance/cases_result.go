// SPDX-License-Identifier: Apache-2.0

package conformance

import (
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/wasmctl/wasmctl/abi"
)

// resultCases are about the results of reconcile and finalize.
func resultCases() []Case {
	cases := []Case{
		resultCase("await", "the default is to wait for a change", object{}, abi.Result{}),
		resultCase("await-explicit", "action await", object{"action": "await"}, abi.Result{}),
		resultCase("requeue", "action requeue without a time is at once", object{"action": "requeue"}, abi.Result{Action: abi.Action{Requeue: true}}),
		declaredCase("apply", "children keep their order and all of their fields", object{"apply": list{child("a"), child("größe")}}),
		declaredCase("apply-many", "1,000 children", object{"apply": children(1000)}),
		declaredCase("prune", "prune with children", object{"apply": list{child("a")}, "prune": true}),
		declaredCase("prune-all", "prune without children", object{"prune": true}),
		declaredCase("force", "force together with children", object{"apply": list{child("a")}, "force": true}),
		declaredCase("requeue-apply", "a requeue together with children", object{"action": "requeue", "after_ms": 1, "apply": list{child("a")}}),
	}
	for _, ms := range []int64{1, 999, 60_000, 1 << 31, 365 * 24 * 3600 * 1000, 9_000_000_000_000} {
		cases = append(cases, resultCase(fmt.Sprintf("after.%d", ms), fmt.Sprintf("a requeue after %d ms", ms), object{"action": "requeue", "after_ms": ms},
			abi.Result{Action: abi.Action{Requeue: true, After: time.Duration(ms) * time.Millisecond}}))
	}
	for _, class := range []string{"transient", "permanent", "conflict"} {
		want := abi.ResultError{Class: abi.ErrorClass(class), Message: "it went wrong: größe"}
		cases = append(cases, resultCase("error."+class, "an error of class "+class, object{"error": object{"class": class, "message": want.Message}}, abi.Result{Error: &want}))
	}
	return append(
		cases,
		resultCase("error.reason", "an error with a reason", object{"error": object{"class": "permanent", "message": "m", "reason": "NotOwned"}},
			abi.Result{Error: &abi.ResultError{Class: abi.ErrorPermanent, Message: "m", Reason: "NotOwned"}}),
		resultCase("error.after", "an error with a time", object{"error": object{"class": "transient", "message": "m", "after_ms": 5000}},
			abi.Result{Error: &abi.ResultError{Class: abi.ErrorTransient, Message: "m", After: 5 * time.Second}}),
		resultCase("error.long", "an error with a message of 10,000 bytes", object{"error": object{"class": "transient", "message": strings.Repeat("long ", 2000)}},
			abi.Result{Error: &abi.ResultError{Class: abi.ErrorTransient, Message: strings.Repeat("long ", 2000)}}),
	)
}

// resultCase expects the same result of both entries. The status is the report, which readReport
// checks, also together with an error.
func resultCase(id, about string, then object, want abi.Result) Case {
	return Case{"result." + id, 4, about, func(p *probe) error {
		for _, entry := range []string{abi.ExportReconcile, abi.ExportFinalize} {
			got, err := p.then(entry, then)
			if err != nil {
				return fmt.Errorf("%s: %w", entry, err)
			}
			if got.Action != want.Action {
				return fmt.Errorf("%s: action: got %v, want %v", entry, got.Action, want.Action)
			}
			if (got.Error == nil) != (want.Error == nil) || got.Error != nil && *got.Error != *want.Error {
				return fmt.Errorf("%s: error: got %s, want %s", entry, errorText(got.Error), errorText(want.Error))
			}
		}
		return nil
	}}
}

func errorText(e *abi.ResultError) string {
	if e == nil {
		return "none"
	}
	return fmt.Sprintf("%+v", *e)
}

// declaredCase expects the declarations of spec.then.
func declaredCase(id, about string, then object) Case {
	return Case{"declared." + id, 4, about, func(p *probe) error {
		got, err := p.then(abi.ExportReconcile, then)
		if err != nil {
			return err
		}
		want, _ := then["apply"].(list)
		if len(got.Declared.Apply) != len(want) {
			return fmt.Errorf("apply: got %d children, want %d", len(got.Declared.Apply), len(want))
		}
		for i, b := range got.Declared.Apply {
			child, err := abi.DecodeObject(b)
			if err = first(err, same(fmt.Sprintf("apply[%d]", i), child, want[i])); err != nil {
				return err
			}
		}
		return first(
			same("prune", got.Declared.Prune, then["prune"] == true), same("force", got.Declared.Force, then["force"] == true),
			same("requeue", got.Action.Requeue, then["action"] == "requeue"),
		)
	}}
}

func child(name string) object {
	return object{
		"apiVersion": "v1", "kind": "ConfigMap", "metadata": object{"name": name, "labels": object{"größe": "klein"}},
		"data": object{"text": "hello", "empty": ""}, "list": list{1, -1, 1.5, true, nil, object{}}, "large": int64(1<<63 - 1),
	}
}

func children(n int) list {
	out := make(list, n)
	for i := range out {
		out[i] = child(fmt.Sprintf("child-%d", i))
	}
	return out
}

// policyCases are about error_policy.
func policyCases() []Case {
	failure := func() *abi.Failure {
		return &abi.Failure{
			ID: "run-1", Key: key, Kind: abi.FailureError, Attempt: 2, FirstFailed: time.UnixMilli(nowMS - 1000),
			Error:  abi.ResultError{Class: abi.ErrorTransient, Message: "it went wrong"},
			Object: encode(caseObject(object{"policy": object{"action": "requeue", "after_ms": 1500}})),
		}
	}
	c := func(id, about string, change func(f *abi.Failure)) Case {
		return Case{"error_policy." + id, 4, about, func(p *probe) error {
			f := failure()
			change(f)
			want := abi.Action{Requeue: true, After: 1500 * time.Millisecond}
			if f.Object == nil { // without the object, there is no answer to return
				want = abi.Action{}
			}
			return p.policy(f, want)
		}}
	}
	cases := []Case{
		c("absent-object", "a failure without an object", func(f *abi.Failure) { f.Object = nil }),
		c("reason", "the error has a reason and a time", func(f *abi.Failure) { f.Error.Reason, f.Error.After = "NotOwned", 5*time.Second }),
		c("permanent", "a permanent error", func(f *abi.Failure) { f.Error.Class = abi.ErrorPermanent }),
		c("conflict", "a conflict", func(f *abi.Failure) { f.Error.Class = abi.ErrorConflict }),
		c("attempt", "the largest attempt", func(f *abi.Failure) { f.Attempt = math.MaxInt32 }),
		{"error_policy.await", 4, "error_policy awaits a change", func(p *probe) error {
			f := failure()
			f.Object = encode(caseObject(object{"policy": object{"action": "await"}}))
			return p.policy(f, abi.Action{})
		}},
		{"error_policy.operations", 5, "operations work in error_policy", func(p *probe) error {
			f := failure()
			f.Object = encode(caseObject(object{"policy": object{"steps": list{do("op", "op", "api_get", "request", configMap("a"))}}}))
			p.rig.api.set(abi.Response{Status: 404})
			if err := p.policy(f, abi.Action{}); err != nil {
				return err
			}
			return p.asked(asked{abi.OpAPIGet, encode(configMap("a"))})
		}},
	}
	for _, kind := range []abi.FailureKind{abi.FailureError, abi.FailureTrap, abi.FailureTimeout, abi.FailureMemory, abi.FailureOutput} {
		cases = append(cases, c("kind."+string(kind), "a failure of kind "+string(kind), func(f *abi.Failure) { f.Kind = kind }))
	}
	return cases
}

// policy passes a failure to error_policy, and compares report and answer.
func (p *probe) policy(f *abi.Failure, want abi.Action) error {
	guest, release, err := p.rig.module.Acquire(p.ctx)
	if err != nil {
		return err
	}
	defer release()
	res, err := guest.ErrorPolicy(p.ctx, f)
	if err != nil {
		return err
	}
	if res.Error != nil || res.Action != want {
		return fmt.Errorf("got %v and error %s, want %v", res.Action, errorText(res.Error), want)
	}
	report, _, err := p.reported(abi.ExportErrorPolicy)
	if err != nil {
		return err
	}
	delete(report, "steps")
	return alike("report", report, object{
		"entry": "error_policy", "id": f.ID, "key": object{"namespace": f.Key.Namespace, "name": f.Key.Name}, "attempt": f.Attempt,
		"first_failed_ms": f.FirstFailed.UnixMilli(), "kind": string(f.Kind), "class": string(f.Error.Class), "message": f.Error.Message,
		"reason": f.Error.Reason, "after_ms": f.Error.After.Milliseconds(), "object": f.Object != nil,
	})
}
