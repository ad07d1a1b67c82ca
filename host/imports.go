package host

import (
	"fmt"
	"io"
	"log/slog"
	"math"
	"time"

	"github.com/wasmctl/wasmctl/abi"
)

// maxRandom is how many bytes random fills at most (ABI.md, 5).
const maxRandom = 64 << 10

// unbounded is what budget answers for what is not bounded or not known.
const unbounded = -1

// hostFuncs are the host functions that are no operations. Each reads its
// parameters from the stack and leaves its result there.
var hostFuncs = map[string]func(in *instance, stack []uint64){
	abi.FuncCall:      (*instance).hostCall,
	abi.FuncTake:      (*instance).hostTake,
	abi.FuncLog:       (*instance).hostLog,
	abi.FuncLogLevel:  (*instance).hostLogLevel,
	abi.FuncMetric:    (*instance).hostMetric,
	abi.FuncNowMS:     (*instance).hostNowMS,
	abi.FuncMonoNS:    (*instance).hostMonoNS,
	abi.FuncRandom:    (*instance).hostRandom,
	abi.FuncCancelled: (*instance).hostCancelled,
	abi.FuncBudget:    (*instance).hostBudget,
}

// u32 is the i32 parameter in a stack slot.
func u32(v uint64) uint32 { return uint32(v) } //nolint:gosec // the upper half is not ours

// i32 is the stack slot of an i32 result.
func i32(v int32) uint64 { return uint64(uint32(v)) } //nolint:gosec // its bits

// i64 is that of an i64 result.
func i64(v int64) uint64 { return uint64(v) } //nolint:gosec // its bits

func (in *instance) hostCall(stack []uint64) {
	op, ok := abi.Ops[int32(u32(stack[0]))] //nolint:gosec // the bits of an i32
	if !ok {
		op = abi.Op(fmt.Sprintf("operation %d", int32(u32(stack[0])))) //nolint:gosec // the bits of an i32
	}
	stack[0] = in.operation(op, opArgs{u32(stack[1]), u32(stack[2]), u32(stack[3]), u32(stack[4])})
}

// hostTake copies from the answer of the last operation.
func (in *instance) hostTake(stack []uint64) {
	dst, off, length := u32(stack[0]), u32(stack[1]), u32(stack[2])
	switch {
	case in.run.access == accessNone:
		stack[0] = i32(int32(abi.StatusUnavailable))
	case !in.run.holding || !inside(in.memory, dst, length):
		stack[0] = i32(int32(abi.StatusBadRequest))
	default:
		rest := in.run.held[min(uint64(off), uint64(len(in.run.held))):]
		rest = rest[:min(uint64(length), uint64(len(rest)))]
		in.charge(len(rest))
		in.memory.Write(dst, rest)
		stack[0] = i32(int32(len(rest))) //nolint:gosec // at most MaxBytes
	}
}

func (in *instance) hostLog(stack []uint64) {
	level := slog.Level(int32(u32(stack[0]))) //nolint:gosec // the bits of an i32
	ptr, length := u32(stack[1]), u32(stack[2])
	if !in.gen.log.Enabled(in.run.parent, level) {
		return
	}
	b, ok := in.memory.Read(ptr, length)
	if !ok {
		in.output.log(slog.LevelWarn, "log: "+blockText("message", ptr, length), nil)
		return
	}
	in.output.message(level, b)
}

// hostLogLevel answers the lowest level that is kept.
func (in *instance) hostLogLevel(stack []uint64) { stack[0] = i32(in.logLevel()) }

func (in *instance) logLevel() int32 {
	level := abi.LevelDebug
	for level <= abi.LevelError && !in.gen.log.Enabled(in.run.parent, slog.Level(level)) {
		level += abi.LevelInfo - abi.LevelDebug
	}
	return level
}

func (in *instance) hostMetric(stack []uint64) {
	switch {
	case in.run.access == accessNone:
		stack[0] = i32(int32(abi.StatusUnavailable))
	case !inside(in.memory, u32(stack[1]), u32(stack[2])):
		stack[0] = i32(int32(abi.StatusBadRequest))
	case in.gen.cfg.Metric == nil:
		stack[0] = i32(int32(abi.StatusUnsupported))
	default:
		in.run.sources |= abi.SourceMetric
		kind, value := int32(u32(stack[0])), math.Float64frombits(stack[3]) //nolint:gosec // the bits of an i32
		stack[0] = i32(int32(in.metric(kind, u32(stack[1]), u32(stack[2]), value)))
	}
}

func (in *instance) hostNowMS(stack []uint64) {
	stack[0] = i64(in.now().UnixMilli())
}

func (in *instance) hostMonoNS(stack []uint64) {
	stack[0] = i64(in.mono())
}

func (in *instance) hostRandom(stack []uint64) {
	ptr, length := u32(stack[0]), u32(stack[1])
	status := abi.StatusOK
	if length > maxRandom {
		status = abi.StatusTooLarge
	} else if b, ok := in.memory.Read(ptr, length); !ok {
		status = abi.StatusBadRequest
	} else if in.charge(len(b)); in.random(b) != nil {
		status = abi.StatusInternal
	}
	stack[0] = i32(int32(status))
}

// mono is the guest's monotonic clock.
func (in *instance) mono() int64 {
	in.run.sources |= abi.SourceClock
	return in.gen.cfg.Mono()
}

// now is the guest's clock.
func (in *instance) now() time.Time {
	in.run.sources |= abi.SourceClock
	t := in.gen.cfg.Now()
	if in.given != nil {
		in.given.AddTime(t.UnixNano())
	}
	return t
}

func (in *instance) random(b []byte) error {
	in.run.sources |= abi.SourceRandom
	_, err := io.ReadFull(in.gen.cfg.Random, b)
	if in.given != nil {
		in.given.AddRandom(b)
	}
	if err != nil {
		in.gen.log.Error("random: cannot read the source of randomness", "error", err)
	}
	return err
}

func (in *instance) hostCancelled(stack []uint64) {
	switch {
	case in.run.access == accessNone:
		stack[0] = 0
	case in.upstream != nil:
		stack[0] = i32(in.upstream.cancelled())
	default:
		stack[0] = i32(in.cancelled())
	}
}

// cancelled is 1 where the run should come to an end.
func (in *instance) cancelled() int32 {
	if in.gen.shared.draining.Load() || in.gen.draining.Load() {
		in.run.sources |= abi.SourceLimit
		return 1
	}
	return 0
}

// hostBudget answers what is left of what the kind names.
func (in *instance) hostBudget(stack []uint64) {
	in.run.sources |= abi.SourceLimit
	left := int64(unbounded)
	switch kind := int32(u32(stack[0])); { //nolint:gosec // the bits of an i32
	case in.run.access == accessNone: // no call, no bound
	case kind == abi.BudgetMilliseconds:
		left = max(0, time.Until(in.run.deadline).Milliseconds())
	case kind == abi.BudgetHostCalls && in.gen.limits.HostCalls > 0:
		left = max(0, in.gen.limits.HostCalls-in.run.calls)
	case kind == abi.BudgetFuel:
		left = in.fuelBudget.left()
	}
	stack[0] = i64(left)
}
