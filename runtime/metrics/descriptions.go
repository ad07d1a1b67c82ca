// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"slices"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
)

// Description describes a metric.
type Description struct {
	// Name is the metric's name; Type is counter, gauge or histogram.
	Name, Type string
	// Labels are the names of its labels.
	Labels []string
	// Help describes the value.
	Help string
	// Full means that only a full scrape has the metric.
	Full bool
}

// description is a Description with its Prometheus equivalents.
type description struct {
	Description
	desc *prometheus.Desc
	kind prometheus.ValueType
}

// all are the descriptions of the metrics of the collector.
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

// onDemand makes a metric one of full scrapes only.
func (d *description) onDemand() *description {
	d.Full = true
	return d
}

// Descriptions returns all metrics by name, except those of the Go runtime and of the operating system's process.
func Descriptions() []Description {
	list := slices.Clone(requestDescriptions)
	for _, d := range all {
		list = append(list, d.Description)
	}
	slices.SortFunc(list, func(a, b Description) int { return strings.Compare(a.Name, b.Name) })
	return list
}

// Metrics of controller-runtime and client-go, under their names and labels.
var (
	reconcileTotal    = counter("controller_runtime_reconcile_total", "Runs by result: success, error, requeue or requeue_after.", "controller", "result")
	reconcileErrors   = counter("controller_runtime_reconcile_errors_total", "Runs that failed.", "controller")
	reconcileTerminal = counter("controller_runtime_terminal_reconcile_errors_total", "Runs that failed with a permanent error and are not retried until the object changes.", "controller")
	reconcilePanics   = counter("controller_runtime_reconcile_panics_total", "Runs in which the module trapped: panics, exits, forbidden accesses.", "controller")
	reconcileTimeouts = counter("controller_runtime_reconcile_timeouts_total", "Runs that exceeded the time or fuel limit.", "controller")
	reconcileTime     = duration("controller_runtime_reconcile_time_seconds", "Duration of runs, including error_policy. Exemplars carry the reconcile_id of the log.", "controller")
	maxConcurrent     = gauge("controller_runtime_max_concurrent_reconciles", "Maximum number of concurrent reconciles.", "controller")
	activeWorkers     = gauge("controller_runtime_active_workers", "Objects being reconciled.", "controller")

	queueDepth      = gauge("workqueue_depth", "Requests that are due but not started; priority 0 is for changes, -100 for first listings and resyncs.", "name", "controller", "priority")
	queueAdds       = counter("workqueue_adds_total", "Requests that became due, after merging those of one object.", "name", "controller")
	queueRetries    = counter("workqueue_retries_total", "Requeues requested by runs, including retries after errors.", "name", "controller")
	queueDuration   = duration("workqueue_queue_duration_seconds", "Time from when requests were due until they started.", "name", "controller")
	queueWork       = duration("workqueue_work_duration_seconds", "Time that workers were busy with an object.", "name", "controller").onDemand()
	queueUnfinished = gauge("workqueue_unfinished_work_seconds", "Sum of the ages of all current runs.", "name", "controller")
	queueLongest    = gauge("workqueue_longest_running_processor_seconds", "Age of the oldest current run.", "name", "controller")

	leaderStatus = gauge("leader_election_master_status", "1 while this process holds the lease, otherwise 0.", "name")
)

// Metrics of the process.
var (
	buildInfo      = gauge("wasmctl_build_info", "Always 1; the labels contain the version.", "version", "go_version")
	controllers    = gauge("wasmctl_controllers", "Controllers by phase: loading, waiting (for a kind or the cluster), running, failed (retried).", "phase")
	watchState     = gauge("wasmctl_watches", "Watches by state: syncing, ready, denied, absent, failing or refused.", "resource", "state")
	watchAge       = gauge("wasmctl_watch_progress_age_seconds", "Time since the API server last sent an event, a bookmark or a list; the maximum over the resource's watches.", "resource")
	watchFailures  = gauge("wasmctl_watch_failures", "Failed requests of a resource's watches since they were last ready.", "resource")
	watchStalled   = gauge("wasmctl_watches_stalled", "Watches without progress or requests; they make /livez fail.", "resource")
	storeObjects   = gauge("wasmctl_store_objects", "Objects in the cache.", "resource")
	storeBytes     = gauge("wasmctl_store_bytes", "Size of the objects in the cache, before compression.", "resource")
	compressed     = gauge("wasmctl_store_compressed_objects", "With --cache-compression, objects in the cache that are compressed, as of the last minute.", "resource")
	savedBytes     = gauge("wasmctl_store_saved_bytes", "With --cache-compression, bytes of memory that compression saves in the cache, as of the last minute.", "resource")
	shardSlots     = gauge("wasmctl_shard_slots", "With --shards, all slots by state: here (run by this replica), elsewhere (by another one), believed (by another one whose lease is overdue), moving (not run yet by its owner), unowned (no live owner), double (run by several).", "state")
	shardEpoch     = gauge("wasmctl_shard_epoch", "With --shards, number of changes of the record that assigns slots to replicas, as seen by this replica.")
	shardMoves     = counter("wasmctl_shard_moves_total", "With --shards, slots that this replica took or gave away.")
	shardLoad      = gauge("wasmctl_shard_load", "With --shards, computing time of the runs in this replica's slots (wasmctl_cpu_seconds_total), in seconds per second, averaged over 30 seconds.")
	shardEnded     = counter("wasmctl_shard_leases_ended_total", "With --shards, leases that this replica ended because their replicas were silent: replicas that died, or lost the API server.")
	shardPeerAge   = gauge("wasmctl_shard_peer_age_seconds", "With --shards, time since the lease of another replica changed, of the one that has not changed for the longest time.")
	shardObjects   = duration("wasmctl_shard_slot_objects", "With --shards, objects of the controllers in each slot that this replica runs.")
	budgetLimit    = gauge("wasmctl_memory_budget_bytes", "Limit of the memory of all instances, and of the host for their operations: --memory-budget.")
	budgetUsed     = gauge("wasmctl_memory_budget_used_bytes", "Memory counted against the budget: all wasmctl_guest_memory_bytes and wasmctl_host_memory_bytes.")
	tenantMemory   = gauge("wasmctl_tenant_memory_bytes", "Memory counted against the budget, by tenant: the 20 tenants with the most, and \"other\".", "tenant")
	budgetRefused  = counter("wasmctl_memory_budget_refused_total", "Memory requests that exceeded the budget.")
	forgedCode     = counter("wasmctl_forged_code_total", "Entries of the compilation cache that the user's key does not authenticate; they are ignored and compiled again.")
	workersLimit   = gauge("wasmctl_workers", "Maximum number of concurrent reconciles in the process: --workers.")
	workersBusy    = gauge("wasmctl_workers_busy", "Busy workers of the process.")
	workersWaiting = gauge("wasmctl_workers_waiting_controllers", "Controllers waiting for a worker of the process.")
)

// Metrics of each controller.
var (
	moduleInfo   = gauge("wasmctl_module_info", "Always 1; the labels identify the live module. The digest is shortened.", "controller", "digest", "revision")
	synced       = gauge("wasmctl_controller_synced", "1 once all required watches of the controller have synced.", "controller")
	logsDropped  = counter("wasmctl_log_lines_dropped_total", "Log lines of the controller and its module that were dropped because they came too often.", "controller")
	paused       = gauge("wasmctl_controller_paused", "1 while the controller is paused.", "controller")
	queueWaiting = gauge("wasmctl_queue_waiting", "Requests waiting for a time: requeues, retries, the debounce.", "controller")
	queueOldest  = gauge("wasmctl_queue_oldest_seconds", "Time that the next request has been due.", "controller")
	requests     = counter("wasmctl_requests_total", "Requests before requests for the same object are merged.", "controller")
	reasons      = counter("wasmctl_reconcile_reasons_total", "Runs by their first reason.", "controller", "reason")
	failures     = counter("wasmctl_reconcile_failures_total", "Failed runs by kind: error (returned by the module), trap, timeout, memory, output (unreadable).", "controller", "kind")
	limitHits    = counter("wasmctl_limit_hits_total", "Hits of a limit, by its name in docs/limits.md; memory_budget is --memory-budget.", "controller", "limit")
	hostMemory   = gauge("wasmctl_host_memory_bytes", "Memory of the host for operations of the module: requests, responses, and their decoded form.", "controller")
	cpuSeconds   = counter("wasmctl_cpu_seconds_total", "Computing time for the controller by part: guest (its module) or host (wasmctl, in its runs). Elapsed time without waits; the process uses more than the sum of all.", "controller", "part")
	apiRequests  = counter("wasmctl_api_requests_total", "Requests to the API server in runs, without watches and events.", "controller")
	decodedBytes = counter("wasmctl_decoded_bytes_total", "Bytes of objects decoded for the controller: responses, and an equal share of each watch that it shares with other controllers.", "controller")
	failing      = gauge("wasmctl_failing_objects", "Objects whose last run failed.", "controller")
	quarantined  = gauge("wasmctl_quarantined_objects", "Objects in quarantine because their runs keep failing.", "controller")
	unmapped     = gauge("wasmctl_unmapped_objects", "Objects for which the module's map or filter fails and is retried.", "controller")
	hotLoops     = counter("wasmctl_hot_loops_total", "Hot loops detected: objects that trigger themselves, or ask for their next run at once, without end.", "controller")
	strandedObjs = gauge("wasmctl_stranded_objects", "Objects that have the finalizer of the controller but are no longer watched, so that their deletion waits.", "controller")
	hotObjects   = gauge("wasmctl_hot_objects", "Objects delayed by the hot-loop guard.", "controller")
	memoRuns     = counter("wasmctl_memo_runs_total", "With --memo, runs without an error by result: skipped, remembered, or why the next cannot be skipped: wrote, operation, clock, random, limit, metric, large, changed (module or settings).", "controller", "result")
	memoObjects  = gauge("wasmctl_memo_objects", "Objects whose next run is skipped if nothing that the last run read has changed.", "controller")
	staleRuns    = counter("wasmctl_stale_reconciles_total", "Runs that started before the cache included the writes of the previous run.", "controller")

	guestTime      = duration("wasmctl_guest_call_duration_seconds", "Duration of calls into the module, including host calls.", "controller", "hook").onDemand()
	guestFailures  = counter("wasmctl_guest_call_failures_total", "Failed calls into the module, by kind as in wasmctl_reconcile_failures_total, without interrupted ones.", "controller", "hook", "kind").onDemand()
	guestInstances = gauge("wasmctl_guest_instances", "Instances, including idle ones.", "controller")
	guestImage     = gauge("wasmctl_guest_image", "1 if instances start from an image of the module's memory, 0 if each runs the start code; wasmctl validate shows the reason.", "controller").onDemand()
	guestRecycled  = counter("wasmctl_guest_instances_recycled_total", "Replaced instances by reason: the kind of failure, or instance_calls, high_water, interrupted.", "controller", "reason")
	guestMemory    = gauge("wasmctl_guest_memory_bytes", "Linear memory of all instances.", "controller")
	guestProcess   = gauge("wasmctl_guest_process_resident_memory_bytes", "Resident memory of the module's process, with --isolate. Modules of one class share a process.", "controller")
	guestFuel      = counter("wasmctl_guest_fuel_total", "Fuel used by the module.", "controller")
	unknownKeys    = counter("wasmctl_guest_unknown_keys_total", "Unknown keys in results and requests.", "controller").onDemand()
	revisions      = gauge("wasmctl_revisions", "Revisions by state: loading, live, draining, kept.", "controller", "state")
	swaps          = counter("wasmctl_module_swaps_total", "Swaps of modules by result: swapped, refused, rollback (by a user), rolled_back (failed probation), stuck (nothing to roll back to); of canaries: canary (started), promoted, aborted, failed, replaced.", "controller", "result")

	admissions = counter("wasmctl_admissions_total", "Requests to the API server that the module judged, by verdict: allowed, changed, denied, error (the failure policy decides).", "controller", "verdict").onDemand()

	hostCalls    = counter("wasmctl_host_calls_total", "Operations of runs, by the status for the module: OK, an HTTP code, DENIED, ...", "controller", "op", "status")
	hostCallTime = duration("wasmctl_host_call_duration_seconds", "Duration of operations that the API server answered, without those answered by the cache or denied by the policy.", "controller", "op").onDemand()
	events       = counter("wasmctl_events_total", "Events by result: recorded, limited (too many of one object), dropped (too many in total), refused (by the API server). Those of the process itself have no controller.", "controller", "result")
)
