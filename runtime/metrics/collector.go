// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"runtime"
	"slices"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/wasmctl/wasmctl/abi"
)

// collector collects the metrics in all. It implements prometheus.Collector.
type collector struct {
	registry *Registry
	full     bool
}

// Describe implements prometheus.Collector.
func (c *collector) Describe(out chan<- *prometheus.Desc) {
	for _, d := range all {
		out <- d.desc
	}
}

// Collect implements prometheus.Collector.
func (c *collector) Collect(out chan<- prometheus.Metric) {
	g := gathering{out, c.full}
	g.set(buildInfo, 1, c.registry.cfg.Version, runtime.Version())
	if c.registry.cfg.Process != nil {
		p := c.registry.cfg.Process()
		g.process(&p)
	}
	for _, ctrl := range c.registry.list() {
		st := ctrl.source()
		g.queue(ctrl, &st)
		g.runs(ctrl, &st)
		g.guest(ctrl, &st)
		g.hostCalls(ctrl)
	}
}

// gathering sends metrics to Prometheus.
type gathering struct {
	out  chan<- prometheus.Metric
	full bool // all metrics with all buckets, also those that are zero
}

// set sends a value, unless only a full scrape has its metric.
func (g gathering) set(d *description, value float64, labels ...string) {
	if g.full || !d.Full {
		g.out <- prometheus.MustNewConstMetric(d.desc, d.kind, value, labels...)
	}
}

// count sends a value that is zero most of the time. Only a full scrape has it then.
func (g gathering) count(d *description, value float64, labels ...string) {
	if g.full || value != 0 {
		g.set(d, value, labels...)
	}
}

func (g gathering) histogram(d *description, h *histogram, labels ...string) {
	switch {
	case g.full:
		g.out <- h.metric(d.desc, h.bounds, labels...)
	case !d.Full:
		g.out <- h.metric(d.desc, fewBuckets, labels...)
	}
}

func flag(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

func (g gathering) process(p *Process) {
	for _, phase := range [...]string{"loading", "waiting", "running", "failed"} {
		g.set(controllers, float64(p.Controllers[phase]), phase)
	}
	g.watches(p.Watches)
	if l := p.Leader; l != nil {
		g.set(leaderStatus, flag(l.Leads), l.Name)
	}
	if s := p.Shards; s != nil {
		g.shards(s)
	}
	g.set(forgedCode, float64(p.ForgedCode))
	for result, count := range p.Events {
		g.set(events, float64(count), "", result)
	}
	if b := p.Budget; b != nil {
		g.set(budgetLimit, float64(b.Limit))
		g.set(budgetUsed, float64(b.Used))
		g.set(budgetRefused, float64(b.Refused))
		for tenant, bytes := range largest(b.Tenants) {
			g.set(tenantMemory, float64(bytes), tenant)
		}
	}
	if w := p.Workers; w != nil {
		g.set(workersLimit, float64(w.Limit))
		g.set(workersBusy, float64(w.Running))
		g.set(workersWaiting, float64(w.Waiting))
	}
}

// watchSum sums up the watches of one resource.
type watchSum struct {
	states                     map[string]int
	age                        time.Duration
	failures, stalled, objects int
	compressed                 int
	bytes, saved               int64
}

// watchStates are the states of watches.
var watchStates = [...]string{"syncing", "ready", "denied", "absent", "failing", "refused"}

func (g gathering) watches(list []Watch) {
	sums := map[string]*watchSum{}
	for i := range list {
		w := &list[i]
		s := sums[w.Resource]
		if s == nil {
			s = &watchSum{states: map[string]int{}}
			sums[w.Resource] = s
		}
		s.states[w.State]++
		s.age = max(s.age, w.Age)
		s.failures += w.Failures
		s.objects += w.Objects
		s.bytes += w.Bytes
		s.compressed += w.Compressed
		s.saved += w.Saved
		if w.Stalled {
			s.stalled++
		}
	}
	for resource, s := range sums {
		for _, state := range watchStates {
			g.count(watchState, float64(s.states[state]), resource, state)
		}
		g.set(watchAge, s.age.Seconds(), resource)
		g.set(watchFailures, float64(s.failures), resource)
		g.set(watchStalled, float64(s.stalled), resource)
		g.set(storeObjects, float64(s.objects), resource)
		g.set(storeBytes, float64(s.bytes), resource)
		g.count(compressed, float64(s.compressed), resource)
		g.count(savedBytes, float64(s.saved), resource)
	}
}

func (g gathering) queue(c *Controller, st *Stats) {
	n := c.name
	g.set(queueDepth, float64(max(0, st.Ready-st.ReadyLow)), n, n, "0")
	g.set(queueDepth, float64(st.ReadyLow), n, n, "-100")
	g.set(queueAdds, float64(c.added(st)), n, n)
	g.count(queueRetries, float64(st.Requeued), n, n)
	g.histogram(queueDuration, c.queued, n, n)
	g.histogram(queueWork, c.work, n, n)
	g.set(queueUnfinished, st.Unfinished.Seconds(), n, n)
	g.set(queueLongest, st.OldestRunning.Seconds(), n, n)
	g.set(queueWaiting, float64(st.Waiting), n)
	g.set(queueOldest, st.OldestReady.Seconds(), n)
	g.set(requests, float64(st.Received), n)
	g.set(maxConcurrent, float64(st.Concurrency), n)
	g.set(activeWorkers, float64(st.Running), n)
}

// added returns how many requests became due: those that were started and those that are due now. The two figures may be of different
// moments, so that their sum could decrease, but a counter must not.
func (c *Controller) added(st *Stats) uint64 {
	now := st.Started + uint64(max(0, st.Ready))
	for {
		shown := c.adds.Load()
		if now <= shown {
			return shown
		}
		if c.adds.CompareAndSwap(shown, now) {
			return now
		}
	}
}

func (g gathering) runs(c *Controller, st *Stats) {
	n := c.name
	for i, result := range results {
		g.count(reconcileTotal, float64(c.results[i].Load()), n, result)
	}
	g.set(reconcileErrors, float64(c.results[resultError].Load()), n)
	g.count(reconcileTerminal, float64(c.terminal.Load()), n)
	g.histogram(reconcileTime, c.time, n)
	for i, reason := range knownReasons {
		g.count(reasons, float64(c.reasons[i].Load()), n, string(reason))
	}
	for i, kind := range knownKinds {
		count := float64(c.kinds[i].Load())
		g.count(failures, count, n, string(kind))
		if kind == abi.FailureTrap {
			g.count(reconcilePanics, count, n)
		}
		if kind == abi.FailureTimeout {
			g.count(reconcileTimeouts, count, n)
		}
	}
	for _, limit := range slices.Concat(abi.LimitNames, abi.FixedLimits, []abi.LimitName{abi.LimitMemoryBudget}) {
		g.count(limitHits, float64(st.Limits[limit]), n, string(limit))
	}
	g.set(hostMemory, float64(st.HostMemory), n)
	g.set(cpuSeconds, st.Guest.Seconds(), n, "guest")
	g.set(cpuSeconds, st.Host.Seconds(), n, "host")
	g.set(apiRequests, float64(st.Requests), n)
	g.set(decodedBytes, float64(st.Decoded), n)
	g.set(synced, flag(st.Synced), n)
	g.count(paused, flag(st.Paused), n)
	g.count(logsDropped, float64(st.LogsDropped), n)
	g.set(failing, float64(st.Failing), n)
	g.count(quarantined, float64(st.Quarantined), n)
	g.count(unmapped, float64(st.Unmapped), n)
	g.count(hotLoops, float64(st.HotLoops), n)
	g.count(hotObjects, float64(st.Hot), n)
	g.count(strandedObjs, float64(st.Stranded), n)
	g.count(staleRuns, float64(st.Stale), n)
	if st.Memo != nil {
		g.set(memoObjects, float64(st.Remembered), n)
	}
	for result, count := range st.Memo {
		g.set(memoRuns, float64(count), n, result)
	}
}

func (g gathering) guest(c *Controller, st *Stats) {
	n := c.name
	g.set(moduleInfo, 1, n, st.Digest, strconv.FormatUint(st.Revision, 10))
	for i, hook := range knownHooks {
		if h := c.calls[i]; h.used() {
			g.histogram(guestTime, h, n, hook)
			for k, kind := range knownKinds {
				g.count(guestFailures, float64(c.failed[i][k].Load()), n, hook, string(kind))
			}
		}
	}
	g.set(guestInstances, float64(st.Instances), n)
	g.set(guestImage, flag(st.Image), n)
	g.set(guestMemory, float64(st.Memory), n)
	if st.ProcessMemory > 0 {
		g.set(guestProcess, float64(st.ProcessMemory), n)
	}
	g.set(guestFuel, float64(st.Fuel), n)
	g.count(unknownKeys, float64(st.UnknownKeys), n)
	for _, state := range [...]string{"loading", "live", "draining", "kept"} {
		g.count(revisions, float64(st.States[state]), n, state)
	}
	for i, result := range swapResults {
		g.count(swaps, float64(c.swaps[i].Load()), n, result)
	}
	for i, v := range verdicts {
		g.count(admissions, float64(c.verdicts[i].Load()), n, string(v))
	}
	for reason, count := range st.Recycled {
		g.set(guestRecycled, float64(count), n, reason)
	}
	for result, count := range st.Events {
		g.set(events, float64(count), n, result)
	}
}

func (g gathering) hostCalls(c *Controller) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for call, count := range c.hostCalls {
		g.set(hostCalls, float64(count), c.name, string(call.op), call.status.String())
	}
	for op, h := range c.hostTimes {
		g.histogram(hostCallTime, h, c.name, string(op))
	}
}
