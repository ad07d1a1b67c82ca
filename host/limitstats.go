package host

import (
	"slices"
	"sync/atomic"

	"github.com/wasmctl/wasmctl/abi"
)

// limitHits counts how often each limit was reached.
type limitHits struct {
	counts [32]atomic.Uint64 // in the order of countedLimits
}

// countedLimits are those that are counted here.
var countedLimits = append(slices.Clone(abi.LimitNames), abi.LimitMemoryBudget)

func (h *limitHits) add(name abi.LimitName) {
	if i := slices.Index(countedLimits, name); i >= 0 {
		h.counts[i].Add(1)
	}
}

// LimitStats returns how often the module has reached each of its limits since
// it was loaded; those that it never reached are left out. For log_lines and
// log_bytes it is the lines that were dropped, for instance_calls and high_water
// the instances that were replaced. memory_budget is that of the process.
func (m *Module) LimitStats() map[abi.LimitName]uint64 {
	out := map[abi.LimitName]uint64{}
	for i, name := range countedLimits {
		if n := m.shared.hits.counts[i].Load(); n > 0 {
			out[name] = n
		}
	}
	return out
}
