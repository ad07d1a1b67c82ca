// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/wasmctl/wasmctl/abi"
)

// Results of a run, as named by controller-runtime, and "skipped".
var results = [...]string{"success", "error", "requeue", "requeue_after", "skipped"}

const (
	resultSuccess = iota
	resultError
	resultRequeue
	resultRequeueAfter
	resultSkipped
)

// knownReasons are the reasons of runs; the last one is for all others.
var knownReasons = [...]abi.ReasonType{
	abi.ReasonListed, abi.ReasonObjectUpdated, abi.ReasonObjectDeleted, abi.ReasonRelated, abi.ReasonRequeue, abi.ReasonRetry,
	abi.ReasonModuleSwapped, abi.ReasonTriggered, abi.ReasonResync, abi.ReasonConfigChanged, "Other",
}

// knownKinds are the kinds of failures of runs and calls.
var knownKinds = [...]abi.FailureKind{abi.FailureError, abi.FailureTrap, abi.FailureTimeout, abi.FailureMemory, abi.FailureOutput, "other"}

// knownHooks are the exports of a guest that are called.
var knownHooks = [...]string{
	abi.ExportReconcile, abi.ExportErrorPolicy, abi.ExportFinalize, abi.ExportMap, abi.ExportFilter, abi.ExportConfigure,
	abi.ExportValidate, abi.ExportDefault, abi.ExportConvert,
	abi.ExportDescribe, abi.ExportPrepare, abi.ExportInitialize, "other",
}

// swapResults are the results of swaps; the last one is for all others.
var swapResults = [...]string{
	"swapped", "refused", "rollback", "rolled_back", "stuck", "canary", "promoted", "aborted", "failed", "replaced", "other",
}

// Verdict is the answer of a module to a request to the API server.
type Verdict string

// The verdicts.
const (
	Allowed   Verdict = "allowed"
	Changed   Verdict = "changed"
	Denied    Verdict = "denied"
	Undecided Verdict = "error" // the failure policy decides
)

var verdicts = [...]Verdict{Allowed, Changed, Denied, Undecided}

// Run describes one run for the metrics.
type Run struct {
	// ID is the id of the run, for exemplars; it may be empty.
	ID string
	// Reason is the first reason of the run.
	Reason abi.ReasonType
	// Kind is the kind of failure; empty if the run did not fail.
	Kind abi.FailureKind
	// Permanent means that it failed permanently, until the object changes.
	Permanent bool
	// Skipped means that no guest was called, because nothing has changed.
	Skipped bool
	// Requeue and After are those of the resulting action.
	Requeue bool
	After   time.Duration
	// Took is the duration of the run.
	Took time.Duration
}

// Controller counts events of one controller. It is safe for concurrent use, and its methods take only a few nanoseconds. Make one with
// NewController; Registry.Add exports it.
type Controller struct {
	name   string       // set by Registry.Add
	source func() Stats // set by Registry.Add

	results  [len(results)]atomic.Uint64
	terminal atomic.Uint64
	kinds    [len(knownKinds)]atomic.Uint64
	reasons  [len(knownReasons)]atomic.Uint64
	swaps    [len(swapResults)]atomic.Uint64
	verdicts [len(verdicts)]atomic.Uint64
	time     *histogram
	queued   *histogram
	work     *histogram
	adds     atomic.Uint64 // the highest value so far
	calls    [len(knownHooks)]*histogram
	failed   [len(knownHooks)][len(knownKinds)]atomic.Uint64

	custom custom

	mu        sync.Mutex
	hostCalls map[hostCall]uint64   // guarded by mu
	hostTimes map[abi.Op]*histogram // guarded by mu
}

type hostCall struct {
	op     abi.Op
	status abi.Status
}

// NewController returns a Controller with zero counts that is not exported yet.
func NewController() *Controller {
	c := &Controller{
		time: newHistogram(reconcileBuckets).withExemplars(), queued: newHistogram(queueBuckets), work: newHistogram(queueBuckets),
		hostCalls: map[hostCall]uint64{}, hostTimes: map[abi.Op]*histogram{},
	}
	for i := range c.calls {
		c.calls[i] = newHistogram(callBuckets)
	}
	return c
}

// Started counts a run that starts, with the time that it had been due.
func (c *Controller) Started(queued time.Duration) { c.queued.observe(queued) }

// Ended counts a completed run, with the time that its worker was busy.
func (c *Controller) Ended(took time.Duration) { c.work.observe(took) }

// Ran counts the result of a run.
func (c *Controller) Ran(r *Run) {
	if r.Skipped {
		c.results[resultSkipped].Add(1)
		return
	}
	c.time.observeRun(r.Took, r.ID)
	c.reasons[indexOf(knownReasons[:], r.Reason)].Add(1)
	switch {
	case r.Kind != "":
		c.results[resultError].Add(1)
		c.kinds[indexOf(knownKinds[:], r.Kind)].Add(1)
		if r.Permanent {
			c.terminal.Add(1)
		}
	case r.Requeue && r.After > 0:
		c.results[resultRequeueAfter].Add(1)
	case r.Requeue:
		c.results[resultRequeue].Add(1)
	default:
		c.results[resultSuccess].Add(1)
	}
}

// Called counts a call of a guest's export, with its duration and kind of failure, which is empty if it did not fail.
func (c *Controller) Called(hook string, took time.Duration, kind abi.FailureKind) {
	i := indexOf(knownHooks[:], hook)
	c.calls[i].observe(took)
	if kind != "" {
		c.failed[i][indexOf(knownKinds[:], kind)].Add(1)
	}
}

// Swapped counts the result of a swap.
func (c *Controller) Swapped(result string) { c.swaps[indexOf(swapResults[:], result)].Add(1) }

// Admitted counts the verdict on a request to the API server.
func (c *Controller) Admitted(v Verdict) { c.verdicts[indexOf(verdicts[:], v)].Add(1) }

// HostCall counts an operation. took is zero if no request was sent.
func (c *Controller) HostCall(op abi.Op, status abi.Status, took time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.hostCalls[hostCall{op, status}]++
	if took == 0 {
		return
	}
	h := c.hostTimes[op]
	if h == nil {
		h = newHistogram(callBuckets)
		c.hostTimes[op] = h
	}
	h.observe(took)
}

// indexOf returns the index of v, or the last one, which is for all others. The lists are short, with the most frequent values first.
func indexOf[T comparable](list []T, v T) int {
	for i := range list {
		if list[i] == v {
			return i
		}
	}
	return len(list) - 1
}
