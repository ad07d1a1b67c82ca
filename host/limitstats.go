package host

import (
	"maps"
	"sync"

	"github.com/wasmctl/wasmctl/abi"
)

// tally counts how often each of a few things came up.
type tally[K comparable] struct {
	mu     sync.Mutex
	counts map[K]uint64 // guarded by mu
}

func (t *tally[K]) add(what K) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.counts == nil {
		t.counts = map[K]uint64{}
	}
	t.counts[what]++
}

// all returns a copy, which is not nil.
func (t *tally[K]) all() map[K]uint64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	out := map[K]uint64{}
	maps.Copy(out, t.counts)
	return out
}

// LimitStats returns how often the module has reached each of its limits since
// it was loaded; those that it never reached are left out. For log_lines and
// log_bytes it is the lines that were dropped, for instance_calls and high_water
// the instances that were replaced. memory_budget is that of the process.
func (m *Module) LimitStats() map[abi.LimitName]uint64 {
	stats := m.shared.hits.all()
	if n := m.cfg.Account.refused.Load(); n > 0 {
		stats[abi.LimitMemoryBudget] += n
	}
	return stats
}
