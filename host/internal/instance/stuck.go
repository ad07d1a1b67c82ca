// SPDX-License-Identifier: Apache-2.0

package instance

import (
	"bytes"
	"fmt"
	"runtime"
)

const (
	maxStacks = 16 << 20 // bytes of stacks of all goroutines that are searched
	maxReport = 16 << 10 // bytes of the stack that is reported
)

// Overdue implements share.Watched.
func (in *Instance) Overdue() int64 { return in.overdue.Load() }

// Where implements share.Watched.
func (in *Instance) Where() string { return fmt.Sprintf("module %s in %s", in.Spec.Name, in.place()) }

// ReportStuck implements share.Watched.
func (in *Instance) ReportStuck() {
	in.Spec.Log.Error("BUG: a call does not end with its time; report this, with the stack", "in", in.place(), "stack", stackOf(in))
}

// place names the host function that the instance is in.
func (in *Instance) place() string {
	if name := in.work.name.Load(); name != nil {
		return *name
	}
	return "its own code"
}

// stackOf returns the stack of the goroutine that runs an instance. The goroutine is found
// by the instance's address among the arguments of its functions, because to mark it would
// cost time in each call.
func stackOf(in *Instance) string {
	buf := make([]byte, 256<<10)
	n := runtime.Stack(buf, true)
	for n == len(buf) && n < maxStacks {
		buf = make([]byte, 4*len(buf))
		n = runtime.Stack(buf, true)
	}
	mark := fmt.Appendf(nil, "(*Instance).guarded(%p", in)
	for stack := range bytes.SplitSeq(buf[:n], []byte("\n\n")) {
		if bytes.Contains(stack, mark) {
			return string(stack[:min(len(stack), maxReport)])
		}
	}
	return "not found"
}
