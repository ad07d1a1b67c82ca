package metrics

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/wasmctl/wasmctl/abi"
)

// Results of a run, as controller-runtime names them, and of one that was skipped.
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

// knownKinds are the ways in which runs and calls fail.
var knownKinds = [...]abi.FailureKind{abi.FailureError, abi.FailureTrap, abi.FailureTimeout, abi.FailureMemory, abi.FailureOutput, "other"}

// knownHooks are the ways into a guest.
var knownHooks = [...]string{
	abi.ExportReconcile, abi.ExportErrorPolicy, abi.ExportFinalize, abi.ExportMap, abi.ExportFilter, abi.ExportConfigure,
	abi.ExportDescribe, abi.ExportPrepare, abi.ExportInitialize, "other",
}

// swapResults are the results of swaps; the last one is for all others.
var swapResults = [...]string{
	"swapped", "refused", "rollback", "rolled_back", "stuck", "canary", "promoted", "aborted", "failed", "replaced", "other",
}

// Run is one run, as far as it is counted.
type Run struct {
	// ID is the id of the run, for exemplars; it may be empty.
	ID string
	// Reason is the first reason for it.
	Reason abi.ReasonType
	// Kind says how it failed; empty where it did not.
	Kind abi.FailureKind
	// Permanent says that it failed permanently, until the object changes.
	Permanent bool
	// Skipped says that no guest was called, since nothing has changed.
	Skipped bool
	// Requeue and After are the action.
	Requeue bool
	After   time.Duration
	// Took is how long it took.
	Took time.Duration
}

// Controller counts what one controller does. Its methods may be called by any
// number of goroutines, and cost some nanoseconds. Make one with NewController;
// Registry.Add shows it.
type Controller struct {
	name   string       // set by Registry.Add
	source func() Stats // set by Registry.Add

	results  [len(results)]atomic.Uint64
	terminal atomic.Uint64
	kinds    [len(knownKinds)]atomic.Uint64
	reasons  [len(knownReasons)]atomic.Uint64
	swaps    [len(swapResults)]atomic.Uint64
	time     *histogram
	queued   *histogram
	work     *histogram
	adds     atomic.Uint64 // the maximum so far
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

// NewController returns a Controller that has counted nothing and is not shown.
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

// Started counts a run that starts after having been due for so long.
func (c *Controller) Started(queued time.Duration) { c.queued.observe(queued) }

// Ended counts a run whose worker is free again after so long.
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

// Called counts a call into the guest: the export, how long it took, and how it
// failed, empty where it did not.
func (c *Controller) Called(hook string, took time.Duration, kind abi.FailureKind) {
	i := indexOf(knownHooks[:], hook)
	c.calls[i].observe(took)
	if kind != "" {
		c.failed[i][indexOf(knownKinds[:], kind)].Add(1)
	}
}

// Swapped counts the result of a swap.
func (c *Controller) Swapped(result string) { c.swaps[indexOf(swapResults[:], result)].Add(1) }

// HostCall counts an operation; took is zero where no request was sent.
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

// indexOf returns the place of v, or the last: that for the rest. The lists are
// short, and what is frequent comes first.
func indexOf[T comparable](list []T, v T) int {
	for i := range list {
		if list[i] == v {
			return i
		}
	}
	return len(list) - 1
}
