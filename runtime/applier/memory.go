package applier

import (
	"context"
	"time"

	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/runtime/queue"
)

// newRun returns a run, in the memory of one that is over where there is one: most of
// what a run allocates is itself.
func (a *Applier) newRun(key abi.Key, reasons queue.Reasons) *run {
	r, _ := a.spare.Get().(*run)
	if r == nil {
		r = &run{}
	}
	*r = run{a: a, out: Outcome{Key: key, Reasons: reasons, Started: time.Now()}}
	return r
}

// free gives up the memory of a run that is over, and returns its outcome.
func (r *run) free() Outcome {
	a, out := r.a, r.out
	*r = run{} // the garbage collector may have what it points to
	a.spare.Put(r)
	return out
}

// known is what others know of a run. It has memory of its own, as a context may be
// kept for longer than its run; the callbacks and Cost of abi.Run may not.
type known struct {
	abi.RunContext

	info abi.Run
}

// introduce makes the run known to those that it asks.
func (r *run) introduce(ctx context.Context) {
	k := &known{info: abi.Run{ID: r.out.ID, Key: r.out.Key, Object: r.object, Wrote: r.write, Cost: &r.out.Cost}}
	if r.reading != nil {
		k.info.Read = r.reading.Read
	}
	k.RunContext = abi.RunContext{Context: ctx, Run: &k.info}
	r.known = k
}
