package validate

import (
	"context"
	"fmt"
	"time"

	"github.com/wasmctl/wasmctl/abi"
)

// Parts of the runs of steady: memory is read at the end of each, and a module that
// still grows when all are over is given as many runs again, a few times.
const (
	steadyParts = 8
	steadyMore  = 3
)

// steady makes many runs, and looks whether the module needs more and more
// memory.
func (e *exam) steady(ctx context.Context) {
	req := request(e.kind.sample)
	for range 32 { // an instance that large objects have left large may be replaced now
		if _, _, err := e.run(ctx, abi.ExportReconcile, req); err != nil {
			return // reconcile.minimal has said so
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

// grows reports whether memory goes on growing: it is higher at the end of the
// second half than at its start, and grew there as fast as in the first half, by
// the slope of a line through each. Memory that reaches a plateau rises ever more
// seldom; a leak goes on as it began.
func grows(used []int64) bool {
	if len(used) < 4 {
		return false
	}
	first, second := used[:len(used)/2], used[len(used)/2:]
	return second[len(second)-1] > second[0] && slope(second) >= slope(first)*3/4
}

// slope is that of the line that fits best.
func slope(y []int64) float64 {
	n := float64(len(y))
	var sx, sy, sxy, sxx float64
	for i, v := range y {
		x := float64(i)
		sx, sy, sxy, sxx = sx+x, sy+float64(v), sxy+x*float64(v), sxx+x*x
	}
	return (n*sxy - sx*sy) / (n*sxx - sx*sx)
}

// image has a second instance made, from which others start where they can.
func (e *exam) image(ctx context.Context) {
	for range 2 {
		_, release, err := e.module.Acquire(ctx)
		if err != nil {
			return // other checks have said so
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

// replaced is how many instances the host has replaced for their memory.
func (e *exam) replaced() uint64 {
	return e.module.Recycled()[string(abi.LimitHighWater)]
}
