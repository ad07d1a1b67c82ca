// SPDX-License-Identifier: Apache-2.0

package validate

import (
	"context"
	"fmt"
	"time"

	"github.com/wasmctl/wasmctl/abi"
)

// The runs of steady are divided into parts, and the memory is read at the end of each. If the
// module still grows at the end, the number of runs is doubled, a few times.
const (
	steadyParts = 8
	steadyMore  = 3
)

// steady makes many runs, and checks whether the module needs ever more memory.
func (e *exam) steady(ctx context.Context) {
	req := request(e.kind.sample)
	for range 32 { // large objects may have left an instance large; it may be replaced now
		if _, _, err := e.run(ctx, abi.ExportReconcile, req); err != nil {
			return // reconcile.minimal has reported it
		}
	}
	start, fuel, replaced := time.Now(), e.module.Fuel(), e.replaced()
	var used []int64 // at the end of each part
	n := 0
	for round := 0; round <= steadyMore && (round == 0 || grows(used)); round++ {
		for i := 0; i < e.opts.Calls && time.Since(start) < maxSteady; i++ {
			if _, _, err := e.run(ctx, abi.ExportReconcile, req); err != nil {
				e.add("steady", Fail, fmt.Sprintf("run %d: %s", n+1, oneLine(err)), nextOf(err))
				return
			}
			if n++; (i+1)%max(1, e.opts.Calls/steadyParts) == 0 {
				used = append(used, e.budget.Stats().Used)
			}
		}
	}
	each := time.Since(start) / time.Duration(max(n, 1))
	spent := (e.module.Fuel() - fuel) / uint64(max(n, 1)) //nolint:gosec // positive
	end := e.budget.Stats().Used
	found := fmt.Sprintf("%d runs, %v and %d units of fuel each; an instance has %s", n, each.Round(100*time.Nanosecond), spent, size(end))
	switch {
	case e.replaced() > replaced:
		e.add("steady", Fail, fmt.Sprintf("memory keeps growing: within %d runs the host replaced %d instances for their size", n, e.replaced()-replaced), nextLeak)
	case grows(used):
		e.add("steady", Fail, fmt.Sprintf("memory keeps growing: %s after %d runs, %s after %d", size(used[len(used)/2]), n/2, size(end), n), nextLeak)
	case n < e.opts.Calls:
		e.add("steady", Warn, found+": stopped after "+maxSteady.String(), "a run of "+each.Round(time.Millisecond).String()+" holds a worker for as long")
	default:
		e.add("steady", OK, found, "")
	}
}

// grows reports whether memory keeps growing: it is higher at the end of the second half than at
// its start, and grew there as fast as in the first half, by the slope of a regression line. Memory
// that reaches a plateau grows ever more rarely, and a leak continues at its rate.
func grows(used []int64) bool {
	if len(used) < 4 {
		return false
	}
	first, second := used[:len(used)/2], used[len(used)/2:]
	return second[len(second)-1] > second[0] && slope(second) >= slope(first)*3/4
}

// slope returns the slope of the regression line.
func slope(y []int64) float64 {
	n := float64(len(y))
	var sx, sy, sxy, sxx float64
	for i, v := range y {
		x := float64(i)
		sx, sy, sxy, sxx = sx+x, sy+float64(v), sxy+x*float64(v), sxx+x*x
	}
	return (n*sxy - sx*sy) / (n*sxx - sx*sx)
}

// image creates a second instance, as a source for other instances if possible.
func (e *exam) image(ctx context.Context) {
	for range 2 {
		_, release, err := e.module.Acquire(ctx)
		if err != nil {
			return // other checks have reported it
		}
		defer release()
	}
	if why := e.module.NoImage(); why != nil {
		e.ok("image", "none: each instance runs the start code of the module: %s", oneLine(why))
		return
	}
	e.ok("image", "instances share the memory that the start code has made")
}

const nextLeak = "free what a run allocates, and keep no objects in variables; TinyGo needs -gc=precise"

// replaced returns the number of instances that the host has replaced for their memory.
func (e *exam) replaced() uint64 {
	return e.module.Recycled()[string(abi.LimitHighWater)]
}
