// SPDX-License-Identifier: Apache-2.0

package applier

import (
	"context"
	"time"

	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/runtime/queue"
)

// newRun returns a run, reusing the memory of a completed one if possible: a run itself is most of what it allocates.
func (a *Applier) newRun(key abi.Key, reasons queue.Reasons) *run {
	r, _ := a.spare.Get().(*run)
	if r == nil {
		r = &run{}
	}
	*r = run{a: a, out: Outcome{Key: key, Reasons: reasons, Started: time.Now()}}
	return r
}

// free releases the memory of a completed run, and returns its outcome.
func (r *run) free() Outcome {
	a, out := r.a, r.out
	*r = run{} // release what it points to
	a.spare.Put(r)
	return out
}

// known is the part of a run that others can access. It is allocated separately, because a context may be retained longer than its run; the
// callbacks and Cost of abi.Run may not.
type known struct {
	abi.RunContext

	info abi.Run
}

// introduce puts the run into the context for its callees.
func (r *run) introduce(ctx context.Context) {
	k := &known{info: abi.Run{ID: r.out.ID, Key: r.out.Key, Object: r.object, Wrote: r.write, Cost: &r.out.Cost}}
	if r.reading != nil {
		k.info.Read = r.reading.Read
	}
	k.RunContext = abi.RunContext{Context: ctx, Run: &k.info}
	r.known = k
}
