// SPDX-License-Identifier: Apache-2.0

package applier

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/runtime/queue"
)

// notes is a Memo that records its calls.
type notes struct {
	same   bool
	action abi.Action
	log    []string
}

func (n *notes) Recall(context.Context, *Seen, time.Time) (abi.Action, bool) {
	n.log = append(n.log, "recall")
	return n.action, n.same
}

func (n *notes) Begin(*Seen) Reading {
	n.log = append(n.log, "begin")
	return n
}

func (n *notes) Forget(abi.Key)         { n.log = append(n.log, "forget") }
func (n *notes) Read(abi.Read)          { n.log = append(n.log, "read") }
func (n *notes) Wrote(*abi.Write, bool) { n.log = append(n.log, "wrote") }
func (n *notes) Commit(revision uint64, _ abi.Action, _ time.Time) {
	if revision != 7 {
		n.log = append(n.log, "of the wrong revision")
	}
	n.log = append(n.log, "keep")
}

// TestMemo_DecidesAboutRuns: which runs are skipped, which are recorded, and which are neither because something other
// than their reads decides.
func TestMemo_DecidesAboutRuns(t *testing.T) {
	reads := func(ctx context.Context, _ *abi.Request) (abi.Result, error) {
		abi.RunFrom(ctx).Read(abi.Read{Source: abi.SourceClock})
		return abi.Result{}, nil
	}
	writes := func(ctx context.Context, _ *abi.Request) (abi.Result, error) {
		abi.RunFrom(ctx).Wrote(abi.Write{})
		return abi.Result{}, nil
	}
	reason := func(r abi.ReasonType) queue.Reasons { return queue.Reasons{First: abi.Reason{Type: r}} }
	for name, c := range map[string]struct {
		same      bool
		reconcile func(context.Context, *abi.Request) (abi.Result, error)
		reasons   queue.Reasons
		gone      bool
		want      []string
	}{
		"unchanged":               {true, await, testReason, false, []string{"recall"}},
		"asked by a user":         {true, await, reason(abi.ReasonTriggered), false, []string{"recall"}},
		"changed":                 {false, await, testReason, false, []string{"recall", "begin", "keep"}},
		"reads":                   {false, reads, testReason, false, []string{"recall", "begin", "read", "keep"}},
		"writes":                  {false, writes, testReason, false, []string{"recall", "begin", "wrote", "keep"}},
		"fails":                   {false, failWith(abi.ResultError{Message: "no"}), testReason, false, []string{"recall", "begin"}},
		"the time of its requeue": {true, await, reason(abi.ReasonRequeue), false, []string{"begin", "keep"}},
		"gone":                    {true, await, testReason, true, []string{"forget"}},
	} {
		t.Run(name, func(t *testing.T) {
			memo, s := &notes{same: c.same, action: abi.Action{Requeue: true, After: time.Minute}}, &script{reconcile: c.reconcile}
			a := newApplier(t, s, func(cfg *Config) {
				cfg.Memo = memo
				cfg.Lookup = func(abi.Key) Object { return rawIf(!c.gone, []byte{0x80}) }
			})
			out := a.Apply(t.Context(), testKey, c.reasons, time.Time{})
			if diff := cmp.Diff(c.want, memo.log); diff != "" {
				t.Errorf("what the memo was asked (-want +got):\n%s", diff)
			}
			skipped := len(s.requests) == 0 && !c.gone
			if skipped != errors.Is(out.Err, ErrUnchanged) || skipped && (out.Action != memo.action || out.DecidedBy != DecidedByMemo || out.Failed() || out.ID != "") {
				t.Errorf("skipped %v: %+v", skipped, out)
			}
		})
	}
}

// TestMemo_HasNoPartInARetry: after a failed run, and while the cache is outdated, a run depends on more than its
// reads.
func TestMemo_HasNoPartInARetry(t *testing.T) {
	memo, s := &notes{}, &script{reconcile: failWith(abi.ResultError{Message: "no"})}
	a := newApplier(t, s, func(cfg *Config) { cfg.Memo = memo })
	a.Apply(t.Context(), testKey, testReason, time.Time{})
	s.reconcile, memo.log = await, nil
	if out := a.Apply(t.Context(), testKey, testReason, time.Time{}); out.Err != nil || out.Attempt != 2 || len(memo.log) > 0 {
		t.Errorf("retry: %+v, the memo was asked to %v", out, memo.log)
	}
}
