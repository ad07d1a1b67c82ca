package metrics

import (
	"slices"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
)

// Description is what is known of a metric before it has a value.
type Description struct {
	// Name is the metric's name, Type counter, gauge or histogram.
	Name, Type string
	// Labels are the names of its labels.
	Labels []string
	// Help says what it counts.
	Help string
}

// description is a Description as Prometheus wants it.
type description struct {
	Description
	desc *prometheus.Desc
	kind prometheus.ValueType
}

// all are the descriptions of what the collector gathers.
var all []*description

func describe(kind, name, help string, labels ...string) *description {
	d := &description{
		Description: Description{Name: name, Type: kind, Labels: labels, Help: help},
		desc:        prometheus.NewDesc(name, help, labels, nil), kind: prometheus.GaugeValue,
	}
	if kind == "counter" {
		d.kind = prometheus.CounterValue
	}
	all = append(all, d)
	return d
}

func counter(name, help string, labels ...string) *description {
	return describe("counter", name, help, labels...)
}

func gauge(name, help string, labels ...string) *description {
	return describe("gauge", name, help, labels...)
}

func duration(name, help string, labels ...string) *description {
	return describe("histogram", name, help, labels...)
}

// Descriptions returns all metrics but those of the Go runtime and of the
// operating system's process, by name.
func Descriptions() []Description {
	list := slices.Clone(requestDescriptions)
	for _, d := range all {
		list = append(list, d.Description)
	}
	slices.SortFunc(list, func(a, b Description) int { return strings.Compare(a.Name, b.Name) })
	return list
}

// What controller-runtime and client-go have, under their names and labels.
var (
	reconcileTotal    = counter("controller_runtime_reconcile_total", "Runs by result: success, error, requeue or requeue_after.", "controller", "result")
	reconcileErrors   = counter("controller_runtime_reconcile_errors_total", "Runs that failed.", "controller")
	reconcileTerminal = counter("controller_runtime_terminal_reconcile_errors_total", "Runs that failed and are not tried again before the object changes: permanent errors.", "controller")
	reconcilePanics   = counter("controller_runtime_reconcile_panics_total", "Runs in which the guest trapped: panics, exits, forbidden accesses.", "controller")
	reconcileTimeouts = counter("controller_runtime_reconcile_timeouts_total", "Runs that ran out of time or fuel.", "controller")
	reconcileTime     = duration("controller_runtime_reconcile_time_seconds", "How long runs took, error_policy included. Exemplars carry the reconcile_id of the log.", "controller")
	maxConcurrent     = gauge("controller_runtime_max_concurrent_reconciles", "Objects that may be reconciled at a time.", "controller")
	activeWorkers     = gauge("controller_runtime_active_workers", "Objects that are being reconciled.", "controller")

	queueDepth      = gauge("workqueue_depth", "Requests that are due and not started; priority 0 is for changes, -100 for first listings and resyncs.", "name", "controller", "priority")
	queueAdds       = counter("workqueue_adds_total", "Requests that became due, after merging those of one object.", "name", "controller")
	queueRetries    = counter("workqueue_retries_total", "Requeues that runs asked for, retries after an error included.", "name", "controller")
	queueDuration   = duration("workqueue_queue_duration_seconds", "How long requests were due before they started.", "name", "controller")
	queueWork       = duration("workqueue_work_duration_seconds", "How long a worker was busy with an object.", "name", "controller")
	queueUnfinished = gauge("workqueue_unfinished_work_seconds", "Ages of all present runs, added up.", "name", "controller")
	queueLongest    = gauge("workqueue_longest_running_processor_seconds", "Age of the oldest present run.", "name", "controller")

	leaderStatus = gauge("leader_election_master_status", "1 while this process holds the lease, 0 while another may.", "name")
)

// What the process has.
var (
	buildInfo      = gauge("wasmctl_build_info", "Always 1; the labels say what runs.", "version", "go_version")
	controllers    = gauge("wasmctl_controllers", "Controllers by phase: loading, waiting (for a kind or the cluster), running, failed (it is tried again).", "phase")
	watchState     = gauge("wasmctl_watches", "Watches by state: syncing, ready, denied, absent or failing.", "resource", "state")
	watchAge       = gauge("wasmctl_watch_progress_age_seconds", "Time since the API server last sent an event, a bookmark or a list; the greatest of the resource's watches.", "resource")
	watchFailures  = gauge("wasmctl_watch_failures", "Requests of a resource's watches that failed since they were last ready.", "resource")
	watchStalled   = gauge("wasmctl_watches_stalled", "Watches that neither hear nor ask the API server any more; /livez fails by them.", "resource")
	storeObjects   = gauge("wasmctl_store_objects", "Objects in the cache.", "resource")
	storeBytes     = gauge("wasmctl_store_bytes", "Bytes of the objects in the cache.", "resource")
	budgetLimit    = gauge("wasmctl_memory_budget_bytes", "Linear memory that all guests together may have: --memory-budget.")
	budgetUsed     = gauge("wasmctl_memory_budget_used_bytes", "Linear memory that is counted against the budget.")
	budgetRefused  = counter("wasmctl_memory_budget_refused_total", "Times that the budget had no memory for a guest.")
	workersLimit   = gauge("wasmctl_workers", "Objects that may be reconciled at a time in the whole process: --workers.")
	workersBusy    = gauge("wasmctl_workers_busy", "Workers of the process that are busy.")
	workersWaiting = gauge("wasmctl_workers_waiting_controllers", "Controllers that wait for a worker of the process.")
)

// What each controller has.
var (
	moduleInfo   = gauge("wasmctl_module_info", "Always 1; the labels say which module is live. The digest is shortened.", "controller", "digest", "generation")
	synced       = gauge("wasmctl_controller_synced", "1 once all watches that the controller needs have synced.", "controller")
	paused       = gauge("wasmctl_controller_paused", "1 while the controller is paused.", "controller")
	queueWaiting = gauge("wasmctl_queue_waiting", "Requests that wait for a time: requeues, retries, the debounce.", "controller")
	queueOldest  = gauge("wasmctl_queue_oldest_seconds", "How long the next request has been due.", "controller")
	requests     = counter("wasmctl_requests_total", "Requests before those of one object are merged.", "controller")
	reasons      = counter("wasmctl_reconcile_reasons_total", "Runs by the first reason for them.", "controller", "reason")
	failures     = counter("wasmctl_reconcile_failures_total", "Failed runs by kind: error (the guest's own), trap, timeout, memory, output (it cannot be read).", "controller", "kind")
	limitHits    = counter("wasmctl_limit_hits_total", "Times that a limit was reached, by its name in docs/limits.md; memory_budget is --memory-budget.", "controller", "limit")
	failing      = gauge("wasmctl_failing_objects", "Objects whose last run failed.", "controller")
	quarantined  = gauge("wasmctl_quarantined_objects", "Objects that are not run any more because they did harm.", "controller")
	unmapped     = gauge("wasmctl_unmapped_objects", "Objects for which the guest's map or filter fails, and is asked again.", "controller")
	hotLoops     = counter("wasmctl_hot_loops_total", "Hot loops that were found: objects that ran again and again without end.", "controller")
	hotObjects   = gauge("wasmctl_hot_objects", "Objects that are in a hot loop, and are held.", "controller")
	staleRuns    = counter("wasmctl_stale_reconciles_total", "Runs before which the cache had not reached the writes of the run before.", "controller")

	guestTime      = duration("wasmctl_guest_call_duration_seconds", "How long calls into the guest took, host calls included.", "controller", "hook")
	guestFailures  = counter("wasmctl_guest_call_failures_total", "Calls into the guest that failed, by kind as in wasmctl_reconcile_failures_total; interrupted ones are no failures.", "controller", "hook", "kind")
	guestInstances = gauge("wasmctl_guest_instances", "Instances, idle ones included.", "controller")
	guestRecycled  = counter("wasmctl_guest_instances_recycled_total", "Instances that were replaced, by reason: what they failed by, or instance_calls, high_water, interrupted.", "controller", "reason")
	guestMemory    = gauge("wasmctl_guest_memory_bytes", "Linear memory of all instances.", "controller")
	guestFuel      = counter("wasmctl_guest_fuel_total", "Fuel that the module has used.", "controller")
	unknownKeys    = counter("wasmctl_guest_unknown_keys_total", "Keys of results and requests that this host does not know.", "controller")
	generations    = gauge("wasmctl_generations", "Generations by state: loading, live, draining, kept.", "controller", "state")
	swaps          = counter("wasmctl_module_swaps_total", "What came of new modules: swapped, refused, rolled_back (by a user), taken_back (it was worse than the one before), stuck (so it was, and there is none to go back to); of canaries: canary (one begins), promoted, aborted, failed, replaced.", "controller", "result")

	hostCalls    = counter("wasmctl_host_calls_total", "Operations that runs asked for, by the status that the guest sees: OK, an HTTP code, DENIED, ...", "controller", "op", "status")
	hostCallTime = duration("wasmctl_host_call_duration_seconds", "How long operations were on their way to the API server and back; without those that the cache answered or the policy denied.", "controller", "op")
	events       = counter("wasmctl_events_total", "Events by result: recorded, limited (too many of one object), dropped (too many at all), refused (by the API server).", "controller", "result")
)
