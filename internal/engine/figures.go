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

// figures are those that the controller keeps itself.
func (c *Controller) figures() metrics.Stats {
	st := c.Runtime.Stats()
	f := metrics.Stats{
		Ready: st.Ready, ReadyLow: st.ReadyLow, Waiting: st.Waiting, Running: st.Running, Concurrency: c.Concurrency(),
		Started: st.Started, Received: st.Received, Requeued: st.Requeued,
		OldestReady: st.OldestReady, OldestRunning: st.OldestRunning, Unfinished: st.Unfinished,
		Synced: len(c.Runtime.Unsynced()) == 0, Paused: st.Paused,
		Failing: st.Reconciles.Failing, Quarantined: st.Reconciles.Quarantined, Hot: st.Reconciles.Loops.Hot, HotLoops: st.Reconciles.Loops.Episodes, Stale: st.Reconciles.Stale,
		HostMemory: c.account.Used(),
		States:     map[string]int{}, UnknownKeys: c.api.UnknownKeys(), Limits: c.LimitStats(),
	}
	cost := c.Telemetry.History.Cost()
	f.Guest, f.Host, f.Requests, f.Decoded = cost.Guest, cost.Host, cost.Requests, st.Decoded+cost.Answers
	if feed := logging.FeedOf(c.log); feed != nil {
		f.LogsDropped = feed.Dropped()
	}
	if !c.leads() {
		f.OldestReady = 0 // what a standby has queued is not late
	}
	f.Unmapped = unmapped(st.Watches)
	if m := c.Module; m != nil {
		f.Revision, f.Digest, f.Memory, f.Fuel, f.Recycled = m.Revision(), humanize.Digest(m.Digest()), m.Memory(), m.Fuel(), m.Recycled()
		f.UnknownKeys += m.UnknownKeys()
		f.Image = m.NoImage() == nil
		if p, ok := m.GuestProcess(); ok {
			f.ProcessMemory = p.Memory
		}
		for _, g := range m.Revisions() {
			f.States[string(g.State)]++
			f.Instances += g.Instances
		}
	}
	if m := c.memo; m != nil {
		f.Memo, f.Remembered = m.Counts(), m.Len()
	}
	e := c.api.EventCounts()
	f.Events = map[string]uint64{"recorded": e.Recorded, "limited": e.Limited, "dropped": e.Dropped, "refused": e.Refused}
	return f
}

// unmapped counts the objects that the guest's map or filter fails for. Watches of one
// kind have one Hook.
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

// LimitStats is how often the module has reached each of its limits.
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

// Name is the controller's name, Kind what it reconciles, once it is loaded.
func (c *Controller) Name() string { return c.name }

// Kind is described at Name.
func (c *Controller) Kind() plan.Watched { return c.kind }

// Logger is the controller's.
func (c *Controller) Logger() *slog.Logger { return c.log }

// Debounce is how long an object must not have been triggered before it runs.
func (c *Controller) Debounce() time.Duration { return c.opts.Debounce.Quiet.Or(0) }

// Concurrency is how many objects are reconciled at a time.
func (c *Controller) Concurrency() int {
	if c.Module == nil {
		return cmp.Or(c.opts.concurrency(), runner.DefaultConcurrency)
	}
	return c.Module.Concurrency()
}

// Timeout is how long one run may take; 0 is not bounded.
func (c *Controller) Timeout() time.Duration {
	if c.Module == nil {
		limits := c.opts.limits()
		return limits.Timeout
	}
	return c.Module.Limits().Timeout
}

// Memory is the linear memory of the module's instances, in bytes.
func (c *Controller) Memory() int64 {
	if c.Module == nil {
		return 0
	}
	return c.Module.Memory()
}

// HostMemory is the host's own memory for operations of the module, in bytes.
func (c *Controller) HostMemory() int64 { return c.account.Used() }

// Revisions returns those of the module that have something left and those
// that failed.
func (c *Controller) Revisions() []admin.Revision {
	if c.rollout == nil {
		return nil
	}
	return c.rollout.Revisions()
}

// Denied lists what the module was denied.
func (c *Controller) Denied() []kubeapi.Denied { return c.api.Denied() }

// Refused are the capabilities that the live module requests and that are not
// granted.
func (c *Controller) Refused() []abi.Capability {
	if c.rollout == nil { // native
		return nil
	}
	return c.rollout.Refused()
}
