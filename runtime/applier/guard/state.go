// SPDX-License-Identifier: Apache-2.0

package guard

import (
	"cmp"
	"slices"
	"time"

	"github.com/wasmctl/wasmctl/abi"
)

// State describes an object in a hot loop.
type State struct {
	Key   abi.Key
	Cause Cause
	// Runs is the number of consecutive runs of the loop.
	Runs int
	// Delay is the time from the end of a run to the start of the next.
	Delay time.Duration
}

// State returns the state of an object; its Cause is CauseNone if the object is not in a hot loop.
func (g *Guard) State(key abi.Key) State {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.state(key)
}

// Hot returns up to limit objects in hot loops, in the order of their keys.
func (g *Guard) Hot(limit int) []State {
	g.mu.Lock()
	list := slices.Collect(g.hot)
	g.mu.Unlock()
	slices.SortFunc(list, func(a, b State) int {
		return cmp.Or(cmp.Compare(a.Key.Namespace, b.Key.Namespace), cmp.Compare(a.Key.Name, b.Key.Name))
	})
	return list[:min(limit, len(list))]
}

// state is State. The caller must hold mu.
func (g *Guard) state(key abi.Key) State {
	if l := g.byKey[key]; l != nil && l.hot {
		return State{Key: key, Cause: l.why, Runs: l.count, Delay: l.delay}
	}
	if r := g.rates[key]; r.hot(g.cfg) {
		return State{Key: key, Cause: r.cause, Runs: r.runs, Delay: r.floor}
	}
	return State{}
}

// hot yields the objects in hot loops. The caller must hold mu.
func (g *Guard) hot(yield func(State) bool) {
	for key, l := range g.byKey {
		if l.hot && !yield(g.state(key)) {
			return
		}
	}
	for key, r := range g.rates {
		if l := g.byKey[key]; r.hot(g.cfg) && (l == nil || !l.hot) && !yield(g.state(key)) {
			return
		}
	}
}
