// SPDX-License-Identifier: Apache-2.0

package guesttest_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	wasmctl "github.com/wasmctl/wasmctl/guest-sdk/go"
	"github.com/wasmctl/wasmctl/guest-sdk/go/guesttest"
)

func TestHost_ConfigLogTimeAndCancel(t *testing.T) {
	host := guesttest.New(t, greeting())
	host.SetConfig("b", "set")
	host.Advance(time.Minute)
	host.Cancelled = true
	with(t, host, func(ctx *wasmctl.Context, _ *wasmctl.Client) {
		a, errA := ctx.Config("a")
		all, errAll := ctx.AllConfig()
		equal(t, []any{a, errA, all, errAll}, []any{"default", nil, map[string]string{"a": "default", "b": "set"}, nil})
		equal(t, []any{ctx.Cancelled(), ctx.Now().UTC()}, []any{true, time.Date(2026, 1, 1, 0, 1, 0, 0, time.UTC)})
		ctx.Log().Debug("hidden")
		ctx.Log().Warn("seen", "n", 1)
	})
	equal(t, host.Log(), []guesttest.Line{{Level: wasmctl.LevelWarn, Message: "seen", Attrs: map[string]any{"n": int64(1)}}})
}

// TestHost_FailedRunsAreCountedAndGivenToErrorPolicy tests rule 18 (attempts
// count runs and restart after success) and rule 19 (error_policy receives the
// object, the error, the attempt and the time of the first failure).
func TestHost_FailedRunsAreCountedAndGivenToErrorPolicy(t *testing.T) {
	fail := true
	var attempts []int
	r := wasmctl.Reconciler{
		Reconcile: func(ctx *wasmctl.Context, _ wasmctl.Object) (wasmctl.Action, error) {
			attempts = append(attempts, ctx.Attempt())
			if fail {
				return action, wasmctl.WithReason(wasmctl.RetryAfter(&wasmctl.Error{Status: 409}, time.Second), "Busy")
			}
			return action, nil
		},
		ErrorPolicy: func(_ *wasmctl.Context, obj wasmctl.Object, f wasmctl.Failure) wasmctl.Action {
			equal(t, obj.Name(), "hello")
			return wasmctl.Requeue(time.Duration(f.Attempt) * f.After)
		},
	}
	host := guesttest.New(t, greeting())
	start := host.Reconcile(r, ref).Failure.FirstFailed
	host.Advance(time.Hour)
	second := host.Reconcile(r, ref)
	equal(t, *second.Failure, wasmctl.Failure{
		Kind: wasmctl.FailureError, Class: wasmctl.ErrorConflict, Message: ": status 409", Reason: "Busy", After: time.Second,
		Attempt: 2, FirstFailed: start,
	})
	equal(t, second.Action, wasmctl.Requeue(2*time.Second))
	fail = false
	equal(t, host.Reconcile(r, ref), guesttest.Result{})
	fail = true
	host.Reconcile(r, ref)
	equal(t, attempts, []int{1, 2, 3, 1})
}

// TestHost_DecidesAsTheHostDoes tests rule 18 (a permanent error waits for a
// change) and rule 19 (error_policy is called once; without it the time of the
// error counts, otherwise the back-off).
func TestHost_DecidesAsTheHostDoes(t *testing.T) {
	boom := errors.New("boom")
	hour := wasmctl.Requeue(time.Hour)
	cases := []struct {
		err    error
		policy bool
		want   wasmctl.Action
		off    bool
	}{
		{boom, true, hour, false},
		{boom, false, action, true},
		{wasmctl.RetryAfter(boom, time.Second), true, hour, false},
		{wasmctl.RetryAfter(boom, time.Second), false, wasmctl.Requeue(time.Second), false},
		{wasmctl.Permanent(boom), true, action, false},
		{wasmctl.Permanent(boom), false, action, false},
	}
	for _, c := range cases {
		asked := 0
		r := wasmctl.Reconciler{Reconcile: func(*wasmctl.Context, wasmctl.Object) (wasmctl.Action, error) { return action, c.err }}
		if c.policy {
			r.ErrorPolicy = func(*wasmctl.Context, wasmctl.Object, wasmctl.Failure) wasmctl.Action { asked++; return hour }
		}
		got := guesttest.New(t, greeting()).Reconcile(r, ref)
		if got.Action != c.want || got.BackOff != c.off || c.policy != (asked == 1) {
			t.Errorf("%v, policy %v: %+v, asked %d times", c.err, c.policy, got, asked)
		}
	}
}

func TestHost_FailNextFailsOnce(t *testing.T) {
	host := guesttest.New(t, greeting())
	host.FailNext("api_apply", wasmctl.Error{Status: wasmctl.StatusUnavailable, Reason: "Unavailable", Message: "later"})
	with(t, host, func(_ *wasmctl.Context, c *wasmctl.Client) {
		_, err := c.Apply(configMap(nil), wasmctl.ApplyOptions{})
		equal(t, []any{wasmctl.IsUnavailable(err), strings.Contains(err.Error(), "later")}, []any{true, true})
		_, err = c.Apply(configMap(nil), wasmctl.ApplyOptions{})
		equal(t, status(err), 0)
	})
}

// TestHost_RunsStandAlone: two concurrent tests, and two runs of one test,
// share no state.
func TestHost_RunsStandAlone(t *testing.T) {
	for range 2 {
		t.Run("same", func(t *testing.T) {
			t.Parallel()
			host := guesttest.New(t, greeting())
			for i := range 50 {
				with(t, host, func(_ *wasmctl.Context, c *wasmctl.Client) {
					_, err := c.Apply(configMap(wasmctl.Map{"i": i}), wasmctl.ApplyOptions{})
					equal(t, status(err), 0)
				})
			}
			equal(t, []any{len(host.Calls()), host.Get(cmRef).Generation()}, []any{50, int64(50)})
		})
	}
}

func TestManifest_IsWhatDescribeSays(t *testing.T) {
	m, err := guesttest.Manifest(wasmctl.Reconciler{Manifest: wasmctl.Manifest{Name: "x"}})
	equal(t, []any{m.String("name"), m.Int("abi"), m.String("sdk"), err}, []any{"x", int64(1), "go/" + wasmctl.Version, nil})
}

func TestHost_EveryModuleMayReadItsKindAndWriteItsStatus(t *testing.T) {
	var got []int
	r := wasmctl.Reconciler{
		Manifest: wasmctl.Manifest{For: &wasmctl.Watch{Group: "example.com", Kind: "Greeting"}},
		Reconcile: func(ctx *wasmctl.Context, _ wasmctl.Object) (wasmctl.Action, error) {
			_, get := ctx.Client().Get(ref, wasmctl.GetOptions{})
			_, mark := ctx.Client().PatchStatus(ref, wasmctl.MergePatch(wasmctl.Map{"status": wasmctl.Map{"n": 1}}), wasmctl.WriteOptions{})
			_, change := ctx.Client().Patch(ref, wasmctl.MergePatch(wasmctl.Map{"spec": wasmctl.Map{"text": "no"}}), wasmctl.WriteOptions{})
			_, other := ctx.Client().Get(cmRef, wasmctl.GetOptions{})
			got = []int{status(get), status(mark), status(change), status(other)}
			return action, nil
		},
	}
	guesttest.New(t, greeting()).Reconcile(r, ref)
	equal(t, got, []int{0, 0, int(wasmctl.StatusDenied), int(wasmctl.StatusDenied)})
}
