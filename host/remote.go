package host

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math"
	"os"
	"runtime/debug"
	"sync/atomic"
	"time"

	"github.com/wasmctl/wasmctl/abi"
)

// remote is an instance in a guest process. What the process says is not
// trusted: it is bounded and checked, and a process that breaks the rules is
// killed. It belongs to the goroutine that runs the guest, but for stop.
type remote struct {
	in   *instance
	proc GuestProcess
	conn frameConn

	result []byte // of the last call; holds until the next
	size   int64  // linear memory, as the process says
	shown  int    // bytes that were logged and printed in this call

	limit atomic.Int64 // how long the call may take, in nanoseconds
}

// Bounds of what a guest process may do in one call.
const (
	maxFrames = 1 << 20       // that it sends
	maxShown  = 2 * maxOutput // bytes that it logs and prints; an honest one stops before
	maxOpName = 256
)

// endGrace is how long an interrupted call may take to end until its process, in
// which others may be too, is killed: as long as it may run in addition, at most,
// which is before the Watchdog notices.
func endGrace(limit time.Duration) time.Duration { return watchGrace/2 + min(limit, 10*time.Second) }

var (
	errUnanswered = errors.New("did not end a call that was interrupted")
	errGone       = errors.New("closed a connection")
)

// connect makes a connection for an instance in a guest process.
func (in *instance) connect(ctx context.Context) error {
	g := in.gen
	in.linear.gen, in.linear.budget = g, g.cfg.Budget
	if err := in.linear.charge(g.code.startSize); err != nil {
		return err
	}
	proc, conn, err := g.code.remote.connect(ctx)
	if err != nil {
		return err
	}
	in.remote = &remote{in: in, proc: proc, conn: frameConn{conn: conn, limit: maxFrame}, size: g.code.startSize}
	return nil
}

// newJob is frameNew.
type newJob struct {
	Code     uint64 `json:"code"`
	Module   string `json:"module"` // instances of one share what is bounded by the second
	Program  string `json:"program"`
	Limits   Limits `json:"limits"`
	FuelRate int64  `json:"fuelRate,omitempty"`
	Slice    int64  `json:"slice,omitempty"`
	Metric   bool   `json:"metric,omitempty"` // whether metrics are taken
}

// start makes the instance: its start code runs.
func (r *remote) start() error {
	g := r.in.gen
	head, err := json.Marshal(newJob{
		Code: g.code.remote.job.ID, Module: fmt.Sprintf("%p", g.shared), Program: g.program(), Limits: g.limits, FuelRate: g.cfg.FuelRate,
		Slice: g.cfg.slice, Metric: g.cfg.Metric != nil,
	})
	if err != nil {
		return err
	}
	_, err = r.exchange(r.begin(frameNew).text(string(head)))
	return err
}

// call calls an entry.
func (r *remote) call(export string, a access, m message) (uint64, error) {
	r.in.run.access = a
	defer func() { r.in.run.access = accessNone }()
	return r.exchange(r.begin(frameEnter).text(export).u8(byte(a)).rest(m.head[:m.split], m.first, m.head[m.split:], m.second))
}

// begin starts a frame that runs the guest: with the time that it has, and what
// is logged.
func (r *remote) begin(kind frameKind) *frameConn {
	r.limit.Store(int64(r.in.run.limit))
	return r.conn.begin(kind).i64(int64(time.Until(r.in.run.deadline))).u8(byte(r.in.logLevel()))
}

// exchange sends the frame that was begun, and answers the guest until it is
// done.
func (r *remote) exchange(out *frameConn) (uint64, error) {
	r.result, r.shown = nil, 0
	if err := out.send(); err != nil {
		return 0, r.lost(err)
	}
	for range maxFrames {
		kind, f, err := r.conn.read()
		if err != nil {
			return 0, r.lost(err)
		}
		if kind == frameDone {
			d := readDone(&f)
			if err := f.end(); err != nil {
				return 0, r.lost(err)
			}
			return r.done(&d)
		}
		err = r.serve(kind, &f)
		if err != nil && (errors.Is(err, errFrame) || r.in.interrupt.Err() == nil) {
			return 0, r.lost(err)
		}
	}
	return 0, r.lost(fmt.Errorf("sent more than %d messages in a call", maxFrames))
}

// lost ends a process that is of no use any longer, and is the error of the call
// which it was in.
func (r *remote) lost(err error) error {
	switch {
	case errors.Is(err, os.ErrDeadlineExceeded):
		err = errUnanswered
	case errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF):
		err = errGone
	}
	return fmt.Errorf("guest process: %w", r.proc.Kill(err))
}

// serve answers what a guest asks for. Operations, metrics and cancelled work in
// entries only.
func (r *remote) serve(kind frameKind, f *fields) (err error) {
	defer func() {
		if p := recover(); p != nil {
			r.in.gen.log.Error("BUG: answering a guest process panicked", "panic", p, "stack", string(debug.Stack()))
			err = errFrame
		}
	}()
	in := r.in
	if kind <= frameCancelled && in.run.access == accessNone {
		return errFrame
	}
	switch kind {
	case frameOperation:
		return r.operation(f)
	case frameMetric:
		metric, value, name := int32(f.i64()), math.Float64frombits(f.u64()), f.text(maxMetricName) //nolint:gosec // the bits of an i32
		if err := f.end(); err != nil || in.gen.cfg.Metric == nil {
			return errFrame
		}
		return r.answer(in.report(metricKey{metric, name}, value), nil)
	case frameCancelled:
		if err := f.end(); err != nil {
			return err
		}
		return r.answer(abi.Status(in.cancelled()), nil)
	case frameGrow:
		size := f.i64()
		if err := f.end(); err != nil || size < 0 || size > max(in.gen.limits.Memory, in.gen.code.startSize) {
			return errFrame
		}
		return r.answer(r.grow(size), nil)
	case frameLog, framePrint:
		return r.show(kind, f)
	default:
		return errFrame
	}
}

// operation answers an operation; the process keeps the rules that need the
// guest's memory.
func (r *remote) operation(f *fields) error {
	op, size, req := abi.Op(f.text(maxOpName)), f.i64(), f.rest()
	if f.bad || size < int64(len(req)) || size > int64(len(req)) && size <= r.in.gen.limits.RequestBytes {
		return errFrame
	}
	res := shortAnswer(op, r.in.answer(op, req, size))
	return r.answer(res.Status, res.Body)
}

func (r *remote) answer(status abi.Status, body []byte) error {
	return r.conn.begin(frameAnswer).i64(int64(status)).rest(body).send()
}

// grow has the budget count what the guest's memory is to become.
func (r *remote) grow(size int64) abi.Status {
	l := &r.in.linear
	if err := l.charge(max(size, l.charged)); err != nil {
		l.refused = err
		return abi.StatusBudget
	}
	return abi.StatusOK
}

// show logs what a guest logs and prints.
func (r *remote) show(kind frameKind, f *fields) error {
	what, b := f.i64(), f.rest()
	if r.shown += len(b) + lineOverhead; f.bad || r.shown > maxShown {
		return errFrame
	}
	switch o := &r.in.output; {
	case kind == frameLog:
		if level := slog.Level(int32(what)); r.in.gen.log.Enabled(r.in.run.parent, level) { //nolint:gosec // the bits of an i32
			o.message(level, b)
		}
	case what == 0:
		o.stdout().write(b)
	default:
		o.stderr().write(b)
	}
	return nil
}

// done takes over what a call has come to.
func (r *remote) done(d *done) (uint64, error) {
	in := r.in
	if d.size < 0 || d.size > max(in.gen.limits.Memory, in.gen.code.startSize) || d.spent < 0 || d.waited < 0 || d.guest < 0 || d.idle < 0 {
		return 0, r.lost(errFrame)
	}
	if int64(len(d.result)) > in.gen.limits.ResultBytes {
		return 0, r.lost(errFrame)
	}
	in.fuelBudget.granted = d.spent
	in.run.sources |= abi.Source(d.sources)
	in.run.waited += min(time.Duration(d.waited), in.gen.limits.Timeout)
	in.run.guest, in.run.idle = time.Duration(d.guest), in.run.idle+time.Duration(d.idle)
	r.result, r.size = d.result, d.size
	if d.dropped > 0 {
		in.output.dropped += int(min(d.dropped, math.MaxInt32))
	}
	if d.excerpt != "" {
		in.output.head, in.output.tail, in.output.cut = append(in.output.head[:0], d.excerpt...), in.output.tail[:0], 0
	}
	if d.late {
		in.interrupt.fire(byDeadline)
	}
	if d.refused && in.linear.refused == nil {
		in.linear.refused = in.gen.limitError(abi.LimitMemory, "exceeded its memory limit", nil)
	}
	return d.value, d.err(in.gen)
}

// stop interrupts the call: the process sees the end of the connection. It has a
// moment to end the call.
func (r *remote) stop() {
	_ = r.conn.conn.SetDeadline(time.Now().Add(endGrace(time.Duration(r.limit.Load()))))
	_ = r.conn.conn.CloseWrite() // or it is closed already
}

// close closes the instance.
func (r *remote) close() { _ = r.conn.conn.Close() }
