// SPDX-License-Identifier: Apache-2.0

package kubeapi

import (
	"context"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/wasmctl/wasmctl/abi"
)

func TestObservers_NoneIsNil(t *testing.T) {
	if Observers() != nil {
		t.Error("an observer without observers: every exchange would be described for nobody")
	}
	var order []int
	Observers(
		func(context.Context, *Exchange) { order = append(order, 1) },
		func(context.Context, *Exchange) { order = append(order, 2) },
	)(t.Context(), &Exchange{})
	if !cmp.Equal(order, []int{1, 2}) {
		t.Errorf("observers were told in the order %v", order)
	}
}

// TestObserver_IsToldOfEveryOperation: an observer gets each operation with its run, the request and the answer, or a denial.
func TestObserver_IsToldOfEveryOperation(t *testing.T) {
	s := sharedSession(t)
	type reported struct {
		Op           abi.Op
		Name         string
		Status       abi.Status
		Sent, Answer bool
	}
	var got []reported
	run := &abi.Run{ID: "r1"}
	s.cfg.Observer = func(ctx context.Context, e *Exchange) {
		if abi.RunFrom(ctx) != run {
			t.Errorf("%s: not told of its run", e.Op)
		}
		if len(e.Sent) > 0 && !strings.Contains(string(e.Sent), e.Key.Name) {
			t.Errorf("%s: sent %s", e.Op, e.Sent)
		}
		o := reported{e.Op, e.Key.Name, e.Status, len(e.Sent) > 0, len(e.Answer) > 0}
		if asked := e.Status != abi.StatusDenied; asked == e.Started.IsZero() {
			t.Errorf("%s: started at %v", e.Op, e.Started)
		}
		got = append(got, o)
	}
	ctx := abi.WithRun(t.Context(), run)
	call := func(a *API, op abi.Op, req map[string]any) { a.Call(ctx, op, msg(t, req)) }
	call(s.API, abi.OpAPIGet, s.ref("seen"))
	call(s.API, abi.OpAPICreate, map[string]any{"object": s.cm("seen", nil)})
	call(s.API, abi.OpAPIGet, s.ref("seen"))
	call(s.WithPolicy(nil), abi.OpAPIGet, s.ref("seen"))
	want := []reported{
		{abi.OpAPIGet, "seen", 404, false, false},
		{abi.OpAPICreate, "seen", 0, true, true},
		{abi.OpAPIGet, "seen", 0, false, true},
		{abi.OpAPIGet, "seen", abi.StatusDenied, false, false},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("told (-want +got):\n%s", diff)
	}
}
