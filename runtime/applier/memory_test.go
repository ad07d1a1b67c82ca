// SPDX-License-Identifier: Apache-2.0

package applier

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/wasmctl/wasmctl/abi"
)

// A run reuses the memory of a previous one, but none of its content; a retained context or outcome of the previous run
// does not expose the next one.
func TestApply_RunsShareNothing(t *testing.T) {
	var contexts []context.Context
	s := &script{}
	s.reconcile = func(ctx context.Context, req *abi.Request) (abi.Result, error) {
		contexts = append(contexts, ctx)
		abi.RunFrom(ctx).Wrote(abi.Write{Op: abi.OpAPIUpdate, Key: req.Key})
		if len(contexts)%3 == 0 {
			return abi.Result{Error: &abi.ResultError{Message: "no"}}, nil
		}
		return abi.Result{}, nil
	}
	a := newApplier(t, s)
	var outs []Outcome
	keys := make([]abi.Key, 100)
	for i := range keys {
		keys[i] = abi.Key{Namespace: "default", Name: fmt.Sprint("web-", i)}
		outs = append(outs, a.Apply(t.Context(), keys[i], testReason, time.Time{}))
	}
	for i, key := range keys {
		run, out := abi.RunFrom(contexts[i]), &outs[i]
		if run.Key != key || run.ID != out.ID || out.Key != key || s.requests[i].Key != key {
			t.Errorf("run %d: %v %q, outcome %v %q", i, run.Key, run.ID, out.Key, out.ID)
		}
		if failed := i%3 == 2; out.Failed() != failed || out.Writes != 1 || out.Attempt != 1 {
			t.Errorf("run %d: %+v", i, out)
		}
	}
}
