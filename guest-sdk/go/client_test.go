// SPDX-License-Identifier: Apache-2.0

package wasmctl

import (
	"errors"
	"maps"
	"math"
	"testing"

	"github.com/wasmctl/wasmctl/guest-sdk/go/internal/wire"
)

// TestSubresource_NamesTheObjectBesideTheBody: the body may be of another kind
// than the object (abi/ABI.md, section 6).
func TestSubresource_NamesTheObjectBesideTheBody(t *testing.T) {
	web := ObjectRef{APIVersion: "apps/v1", Kind: "Deployment", Namespace: "shop", Name: "web"}
	named := Map{"apiVersion": "apps/v1", "kind": "Deployment", "namespace": "shop", "name": "web", "subresource": "scale"}
	with := func(more Map) any {
		m := map[string]any{}
		for _, part := range []Map{named, more} {
			maps.Copy(m, part)
		}
		return m
	}
	body := Map{"apiVersion": "autoscaling/v1", "kind": "Scale"}
	calls := map[string]struct {
		call func(s Subresource) error
		want any
	}{
		"api_get":    {func(s Subresource) error { _, err := s.Get(); return err }, with(nil)},
		"api_create": {func(s Subresource) error { _, err := s.Create(body, WriteOptions{}); return err }, with(Map{"object": body})},
		"api_update": {
			func(s Subresource) error { _, err := s.Update(body, WriteOptions{DryRun: true}); return err },
			with(Map{"object": body, "dryRun": true}),
		},
		"api_apply": {
			func(s Subresource) error { _, err := s.Apply(body, ApplyOptions{Force: true}); return err },
			with(Map{"object": body, "force": true}),
		},
		"api_patch": {
			func(s Subresource) error { _, err := s.Patch(MergePatch(Map{}), WriteOptions{}); return err },
			with(Map{"patchType": "merge", "patch": Map{}}),
		},
	}
	for op, c := range calls {
		host := &scriptHost{}
		host.answer(t, 0, body)
		run(t, host, golden(t, "request-minimal"), func(ctx *Context, _ Object) (Action, error) {
			s := ctx.Client().Subresource(web, "scale")
			equal(t, c.call(s), nil)
			equal(t, []any{host.op, host.asked(t)}, []any{op, c.want})
			host.op = ""
			if _, err := s.Create(math.NaN(), WriteOptions{}); err == nil || host.op != "" {
				t.Errorf("%s: what cannot be sent: %v, op %q", op, err, host.op)
			}
			return AwaitChange(), nil
		})
	}
}

// countedHost offers a budget, and random bytes unless it is dry.
type countedHost struct {
	scriptHost
	dry bool
}

func (c *countedHost) Metric(kind int32, name string, value float64) int32 {
	if kind == int32(MetricGauge) && name == "größe" && value == 1.5 {
		return 0
	}
	return StatusTooLarge
}

func (c *countedHost) Budget(kind int32) int64 { return int64(kind)*10 - 1 }

func (c *countedHost) Random(b []byte) bool {
	for i := range b {
		b[i] = 7
	}
	return !c.dry
}

func TestContext_HostFunctionsAreReached(t *testing.T) {
	host := &countedHost{}
	run(t, host, golden(t, "request-minimal"), func(ctx *Context, _ Object) (Action, error) {
		equal(t, ctx.Monotonic().Nanoseconds(), int64(1))
		left, bounded := ctx.Budget(BudgetMilliseconds)
		equal(t, []any{left, bounded}, []any{int64(0), false})
		left, bounded = ctx.Budget(BudgetHostCalls)
		equal(t, []any{left, bounded}, []any{int64(9), true})

		b := make([]byte, 8)
		equal(t, ctx.Metric(MetricGauge, "größe", 1.5), nil)
		e, ok := AsError(ctx.Metric(MetricCounter, "größe", 1.5))
		equal(t, []any{ok, e.Op, e.Status}, []any{true, "metric", StatusTooLarge})
		equal(t, ctx.Random(b), nil)
		equal(t, []byte{b[0], b[7]}, []byte{7, 7})
		host.dry = true
		e, ok = AsError(ctx.Random(b))
		equal(t, []any{ok, e.Op, e.Status}, []any{true, "random", StatusInternal})
		return AwaitChange(), nil
	})
}

// TestResult_ThatCannotBeWrittenFailsTheRun: without the check in the SDK, the
// host would report invalid output of the module, without a reason.
func TestResult_ThatCannotBeWrittenFailsTheRun(t *testing.T) {
	huge := string(make([]byte, wire.MaxBytes))
	cases := []struct {
		action Action
		err    error
		class  string
		reason string
	}{
		{Apply(Map{"a": math.Inf(1)}), nil, "transient", "BadResult"},
		{AwaitChange().Status(func() {}), nil, "transient", "BadResult"},
		{Apply(Build().Add("x")), nil, "transient", "BadResult"},
		{AwaitChange().Status(huge), nil, "permanent", "BadResult"},
		{AwaitChange().Status(func() {}), WithReason(Conflict(errors.New("x")), "Mine"), "conflict", "Mine"},
	}
	for _, c := range cases {
		got, err := wire.Decode(appendResult(nil, c.action, c.err))
		m, _ := got.(map[string]any)
		e, _ := m["error"].(map[string]any)
		equal(t, []any{err, len(m), e["class"], e["reason"]}, []any{nil, 1, c.class, c.reason})
	}
}

func TestAction_MethodsLeaveTheirReceiverAlone(t *testing.T) {
	base := Apply(Map{"a": 1})
	one, two := base.Apply(Map{"b": 1}), base.Apply(Map{"c": 1}).Prune().Requeue(1)
	for i, want := range []int{1, 2, 2} {
		v := Value{appendResult(nil, []Action{base, one, two}[i], nil)}
		equal(t, []any{v.Len("apply"), v.Bool("prune")}, []any{want, i == 2})
	}
	v := Value{appendResult(nil, two, nil)}
	equal(t, []any{v.String("action"), v.At("apply").Exists(), AwaitChange() == Action{}}, []any{"requeue", true, true})
}
