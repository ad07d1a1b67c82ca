// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"cmp"
	"log/slog"
	"time"

	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/host/kubeapi"
	"github.com/wasmctl/wasmctl/internal/humanize"
	"github.com/wasmctl/wasmctl/internal/logging"
	"github.com/wasmctl/wasmctl/internal/plan"
	"github.com/wasmctl/wasmctl/runtime/admin"
	"github.com/wasmctl/wasmctl/runtime/controller"
	"github.com/wasmctl/wasmctl/runtime/metrics"
	"github.com/wasmctl/wasmctl/runtime/queue"
	"github.com/wasmctl/wasmctl/runtime/runner"
)

// Computed returns the tenant of the controller, and the computing time of its module and of the
// host in runs.
func (c *Controller) Computed() (tenant string, took time.Duration) {
	cost := c.Telemetry.History.Cost()
	return c.opts.Tenant, cost.Guest + cost.Host
}

// figures returns the metrics that are read from the controller at each scrape.
func (c *Controller) figures() metrics.Stats {
	st := c.Runtime.Stats()
	f := metrics.Stats{
		Stats: st.Stats, Concurrency: c.Concurrency(), Synced: len(c.Runtime.Unsynced()) == 0, Paused: st.Paused,
		Failing: st.Reconciles.Failing, Quarantined: st.Reconciles.Quarantined, Hot: st.Reconciles.Loops.Hot, HotLoops: st.Reconciles.Loops.Episodes, Stale: st.Reconciles.Stale,
		HostMemory: c.account.Used(),
		States:     map[string]int{}, UnknownKeys: c.api.UnknownKeys(), Limits: c.LimitStats(),
	}
	view, _ := c.Stranded()
	f.Stranded = len(view.Stranded(time.Now()))
	cost := c.Telemetry.History.Cost()
	f.Guest, f.Host, f.Requests, f.Decoded = cost.Guest, cost.Host, cost.Requests, st.Decoded+cost.Answers
	if feed := logging.FeedOf(c.log); feed != nil {
		f.LogsDropped = feed.Dropped()
	}
	if !c.leads() {
		f.OldestReady = 0 // objects that a standby has queued are not late
	}
	f.Unmapped = unmapped(st.Watches)
	if m := c.Module; m != nil {
		f.Revision, f.Digest, f.Memory, f.Fuel, f.Recycled = m.Revision(), humanize.Digest(m.Digest()), m.Memory(), m.Fuel(), m.Recycled()
		f.UnknownKeys += m.UnknownKeys()
		f.Image = m.NoImage() == nil
		if p, ok := m.GuestProcess(); ok {
			f.ProcessMemory = p.Memory
		}
		for _, rev := range m.Revisions() {
			f.States[string(rev.State)]++
			f.Instances += rev.Instances
		}
	}
	if m := c.memo; m != nil {
		f.Memo, f.Remembered = m.Counts(), m.Len()
	}
	f.Events = c.api.EventCounts().ByResult()
	return f
}

// unmapped counts the objects for which the guest's map or filter fails. Watches of one
// kind share one Hook.
func unmapped(list []controller.WatchState) (n int) {
	counted := map[*queue.HookState]bool{nil: true}
	for _, w := range list {
		if !counted[w.Hook] {
			counted[w.Hook] = true
			n += w.Hook.Failing
		}
	}
	return n
}

// LimitStats returns the number of times that the module has reached each limit.
func (c *Controller) LimitStats() map[abi.LimitName]uint64 {
	if c.Module == nil {
		return c.api.LimitStats()
	}
	stats := c.Module.LimitStats()
	for name, n := range c.api.LimitStats() {
		stats[name] += n
	}
	return stats
}

// Name returns the controller's name. It is set once the module is loaded.
func (c *Controller) Name() string { return c.name }

// Kind returns the kind that the controller reconciles. It is set once the module is
// loaded.
func (c *Controller) Kind() plan.Watched { return c.kind }

// Cache returns the objects that the watches of the controller have received.
func (c *Controller) Cache() *controller.Cache { return c.cache }

// Logger returns the controller's logger.
func (c *Controller) Logger() *slog.Logger { return c.log }

// Debounce returns the time without triggers after which an object runs.
func (c *Controller) Debounce() time.Duration { return c.opts.Debounce.Quiet.Or(0) }

// Concurrency returns the number of objects that are reconciled at a time.
func (c *Controller) Concurrency() int {
	if c.Module == nil {
		return cmp.Or(c.opts.concurrency(), runner.DefaultConcurrency)
	}
	return c.Module.Concurrency()
}

// Timeout returns the time limit of one run; 0 means unlimited.
func (c *Controller) Timeout() time.Duration {
	if c.Module == nil {
		limits := c.opts.limits()
		return limits.Timeout
	}
	return c.Module.Limits().Timeout
}

// Memory returns the size of the linear memory of the module's instances, in bytes.
func (c *Controller) Memory() int64 {
	if c.Module == nil {
		return 0
	}
	return c.Module.Memory()
}

// HostMemory returns the size of the host's own memory for operations of the module, in
// bytes.
func (c *Controller) HostMemory() int64 { return c.account.Used() }

// Revisions returns the revisions that still hold resources and those that failed.
func (c *Controller) Revisions() []admin.Revision {
	if c.rollout == nil {
		return nil
	}
	return c.rollout.Revisions()
}

// Denied returns the requests that the module was denied.
func (c *Controller) Denied() []kubeapi.Denied { return c.api.Denied() }

// Refused returns the capabilities that the live module requests but was not granted.
func (c *Controller) Refused() []abi.Capability {
	if c.rollout == nil { // native
		return nil
	}
	return c.rollout.Refused()
}

// Unserved returns the webhooks and conversions of the live module that are not served.
func (c *Controller) Unserved() []plan.Unserved {
	if c.rollout == nil { // native
		return nil
	}
	return c.rollout.Unserved()
}
