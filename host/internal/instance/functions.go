// SPDX-License-Identifier: Apache-2.0

package instance

import (
	"fmt"
	"log/slog"
	"math"
	"time"

	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/host/operation"
)

// hostFuncs are the host functions that are not operations. Each reads its parameters from
// the stack and leaves its result there.
var hostFuncs = map[string]func(l *Local, stack []uint64){
	abi.FuncTake:      (*Local).hostTake,
	abi.FuncLog:       (*Local).hostLog,
	abi.FuncLogLevel:  (*Local).hostLogLevel,
	abi.FuncMetric:    (*Local).hostMetric,
	abi.FuncCancelled: (*Local).hostCancelled,
	abi.FuncBudget:    (*Local).hostBudget,
}

// u32 is the i32 parameter in a stack slot.
func u32(v uint64) uint32 { return uint32(v) } //nolint:gosec // the upper half is undefined

// i32 is the stack slot of an i32 result.
func i32(v int32) uint64 { return uint64(uint32(v)) } //nolint:gosec // its bits

// i64 is that of an i64 result.
func i64(v int64) uint64 { return uint64(v) } //nolint:gosec // its bits

// hostTake copies from the answer of the last operation.
func (l *Local) hostTake(stack []uint64) {
	dst, off, length := u32(stack[0]), u32(stack[1]), u32(stack[2])
	switch {
	case l.core.Run.Access == operation.AccessNone:
		stack[0] = i32(int32(abi.StatusUnavailable))
	case !l.held.Holding || !inside(l.memory, dst, length):
		stack[0] = i32(int32(abi.StatusBadRequest))
	default:
		rest := l.held.Body[min(uint64(off), uint64(len(l.held.Body))):]
		rest = rest[:min(uint64(length), uint64(len(rest)))]
		l.Charge(len(rest))
		l.memory.Write(dst, rest)
		stack[0] = i32(int32(len(rest))) //nolint:gosec // at most MaxBytes
	}
}

func (l *Local) hostLog(stack []uint64) {
	level := slog.Level(int32(u32(stack[0]))) //nolint:gosec // the bits of an i32
	ptr, length := u32(stack[1]), u32(stack[2])
	if !l.host.Enabled(level) {
		return
	}
	b, ok := l.memory.Read(ptr, length)
	if !ok {
		l.host.Warn("log: " + blockText("message", ptr, length))
		return
	}
	l.host.Log(level, b)
}

// blockText describes a block in messages.
func blockText(what string, ptr, length uint32) string {
	return fmt.Sprintf("%s block of %d bytes at %d does not lie in memory", what, length, ptr)
}

// hostLogLevel answers the lowest level that is logged.
func (l *Local) hostLogLevel(stack []uint64) { stack[0] = i32(LogLevel(l.host)) }

// LogLevel returns the lowest level that a host logs.
func LogLevel(host operation.Host) int32 {
	level := abi.LevelDebug
	for level <= abi.LevelError && !host.Enabled(slog.Level(level)) {
		level += abi.LevelInfo - abi.LevelDebug
	}
	return level
}

func (l *Local) hostMetric(stack []uint64) {
	if l.core.Run.Access == operation.AccessNone {
		stack[0] = i32(int32(abi.StatusUnavailable))
		return
	}
	name, ok := l.memory.Read(u32(stack[1]), u32(stack[2]))
	if !ok {
		stack[0] = i32(int32(abi.StatusBadRequest))
		return
	}
	kind, value := int32(u32(stack[0])), math.Float64frombits(stack[3]) //nolint:gosec // the bits of an i32
	stack[0] = i32(int32(l.host.Metric(kind, name, value)))
}

func (l *Local) hostCancelled(stack []uint64) {
	if l.core.Run.Access == operation.AccessNone {
		stack[0] = 0
		return
	}
	stack[0] = i32(l.host.Cancelled())
}

// hostBudget answers the rest of the limit that the kind names.
func (l *Local) hostBudget(stack []uint64) {
	run := &l.core.Run
	run.Sources |= abi.SourceLimit
	left := int64(unbounded)
	limit := l.core.Spec.Limits.HostCalls
	switch kind := int32(u32(stack[0])); { //nolint:gosec // the bits of an i32
	case run.Access == operation.AccessNone: // outside of calls, nothing is bounded
	case kind == abi.BudgetMilliseconds:
		left = max(0, time.Until(run.Deadline).Milliseconds())
	case kind == abi.BudgetHostCalls && limit > 0:
		left = max(0, limit-run.Calls)
	case kind == abi.BudgetFuel:
		left = l.core.fuel.left()
	}
	stack[0] = i64(left)
}
