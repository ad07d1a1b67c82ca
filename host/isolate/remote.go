// SPDX-License-Identifier: Apache-2.0

package isolate

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
	"github.com/wasmctl/wasmctl/host/internal/instance"
	"github.com/wasmctl/wasmctl/host/operation"
	"github.com/wasmctl/wasmctl/host/share"
)

// remote is a guest in a guest process. The process is not trusted: its messages are bounded
// and checked, and a process that breaks the rules is killed. It belongs to the goroutine
// that runs the guest, except for Interrupted.
type remote struct {
	core *instance.Core
	spec *instance.Spec
	desk *operation.Desk
	code *Code
	proc Process
	conn frameConn // without a connection before Open

	result  []byte // of the last call; valid until the next
	size    int64  // linear memory, as the process reports it
	shown   int    // bytes that were logged and printed in this call
	refused error  // why the guest was refused memory in this call

	limit atomic.Int64 // how long the call may take, in nanoseconds
}

// Bounds of the messages of a guest process in one call.
const (
	maxFrames = 1 << 20                 // their number
	maxShown  = 2 * operation.MaxOutput // bytes that it logs and prints; a correct process stops earlier
	maxOpName = 256
)

// endGrace is how long an interrupted call may take to end before its process, which others
// may share, is killed: as long again as the call may run, at most, and before the Watchdog
// notices.
func endGrace(limit time.Duration) time.Duration {
	return share.WatchGrace/2 + min(limit, 10*time.Second)
}

var (
	errUnanswered = errors.New("did not end a call that was interrupted")
	errGone       = errors.New("closed a connection")
)

// Open implements instance.Guest: it connects to a guest process.
func (r *remote) Open(ctx context.Context) error {
	if err := r.desk.Resize(r.size + r.code.Outside); err != nil {
		return err
	}
	proc, conn, err := r.code.connect(ctx)
	if err != nil {
		return err
	}
	r.proc, r.conn = proc, frameConn{conn: conn, limit: maxFrame}
	return nil
}

// newJob is frameNew.
type newJob struct {
	Code    uint64       `json:"code"`
	Module  string       `json:"module"` // instances of one module share the bounds of a second
	Program string       `json:"program"`
	Limits  share.Limits `json:"limits"`
	Slice   int64        `json:"slice,omitempty"`
	Metric  bool         `json:"metric,omitempty"` // whether the host takes metrics
}

// Start implements instance.Guest.
func (r *remote) Start() error {
	head, err := json.Marshal(newJob{
		Code: r.code.id, Module: fmt.Sprintf("%p", r.spec.Share), Program: r.spec.Program, Limits: r.spec.Limits,
		Slice: r.spec.Slice, Metric: r.spec.Metric != nil,
	})
	if err != nil {
		return err
	}
	_, err = r.exchange(r.begin(frameNew).text(string(head)))
	return err
}

// Call implements instance.Guest.
func (r *remote) Call(e instance.Entry, m instance.Message) (uint64, error) {
	r.core.Run.Access = e.Access
	defer func() { r.core.Run.Access = operation.AccessNone }()
	return r.exchange(r.begin(frameEnter).text(e.Name).u8(byte(e.Access)).rest(m.Head[:m.Split], m.First, m.Head[m.Split:], m.Second))
}

// begin starts a frame that runs the guest, with its time and the lowest level that is
// logged.
func (r *remote) begin(kind frameKind) *frameConn {
	r.limit.Store(int64(r.core.Run.Limit))
	return r.conn.begin(kind).i64(int64(time.Until(r.core.Run.Deadline))).u8(byte(instance.LogLevel(r.desk)))
}

// exchange sends the frame that was begun, and answers the guest until it is done.
func (r *remote) exchange(out *frameConn) (uint64, error) {
	r.result, r.shown, r.refused = nil, 0, nil
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
		if err != nil && (errors.Is(err, errFrame) || r.core.Interrupt().Err() == nil) {
			return 0, r.lost(err)
		}
	}
	return 0, r.lost(fmt.Errorf("sent more than %d messages in a call", maxFrames))
}

// lost ends a process that is of no more use, and returns the error of its call.
func (r *remote) lost(err error) error {
	switch {
	case errors.Is(err, os.ErrDeadlineExceeded):
		err = errUnanswered
	case errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF):
		err = errGone
	}
	return fmt.Errorf("guest process: %w", r.proc.Kill(err))
}

// serve answers a request of the guest. Operations, metrics and cancelled work only in
// entries.
func (r *remote) serve(kind frameKind, f *fields) (err error) {
	defer func() {
		if p := recover(); p != nil {
			r.spec.Log.Error("BUG: answering a guest process panicked", "panic", p, "stack", string(debug.Stack()))
			err = errFrame
		}
	}()
	if kind <= frameCancelled && r.core.Run.Access == operation.AccessNone {
		return errFrame
	}
	switch kind {
	case frameOperation:
		return r.operation(f)
	case frameMetric:
		metric, value, name := int32(f.i64()), math.Float64frombits(f.u64()), f.text(operation.MaxMetricName) //nolint:gosec // the bits of an i32
		if err := f.end(); err != nil || r.spec.Metric == nil {
			return errFrame
		}
		return r.answer(r.desk.Metric(metric, []byte(name), value), nil)
	case frameCancelled:
		if err := f.end(); err != nil {
			return err
		}
		return r.answer(abi.Status(r.desk.Cancelled()), nil)
	case frameGrow:
		size := f.i64()
		if err := f.end(); err != nil || size < 0 || size > r.most() {
			return errFrame
		}
		return r.answer(r.grow(size), nil)
	case frameLog, framePrint:
		return r.show(kind, f)
	default:
		return errFrame
	}
}

// most is the largest linear memory that the guest may have, in bytes.
func (r *remote) most() int64 { return max(r.spec.Limits.Memory, r.code.StartSize) }

// operation answers an operation; the process checks the rules about the guest's memory.
func (r *remote) operation(f *fields) error {
	op, size, req := abi.Op(f.text(maxOpName)), f.i64(), f.rest()
	if f.bad || size < int64(len(req)) || size > int64(len(req)) && size <= share.RequestBytes {
		return errFrame
	}
	res := r.desk.Answer(op, req, size)
	return r.answer(res.Status, res.Body)
}

func (r *remote) answer(status abi.Status, body []byte) error {
	return r.conn.begin(frameAnswer).i64(int64(status)).rest(body).send()
}

// grow has the budget charged for a larger memory of the guest.
func (r *remote) grow(size int64) abi.Status {
	if err := r.desk.Resize(max(size+r.code.Outside, r.desk.Charged())); err != nil {
		r.refused = err
		return abi.StatusBudget
	}
	return abi.StatusOK
}

// show logs a line that a guest logs or prints.
func (r *remote) show(kind frameKind, f *fields) error {
	what, b := f.i64(), f.rest()
	if r.shown += len(b) + operation.LineOverhead; f.bad || r.shown > maxShown {
		return errFrame
	}
	switch {
	case kind == framePrint && what == int64(operation.Stdout):
		r.desk.Print(operation.Stdout, b)
	case kind == framePrint:
		r.desk.Print(operation.Stderr, b)
	default:
		if level := slog.Level(int32(what)); r.desk.Enabled(level) { //nolint:gosec // the bits of an i32
			r.desk.Log(level, b)
		}
	}
	return nil
}

// done takes over the result of a call.
func (r *remote) done(d *done) (uint64, error) {
	if !d.possible(r.most()) {
		return 0, r.lost(errFrame)
	}
	r.core.SetUsage(d.usage)
	r.core.Run.Sources |= abi.Source(d.sources)
	r.result, r.size = d.result, d.size
	if d.dropped > 0 {
		r.desk.Output.Drop(int(min(d.dropped, math.MaxInt32)))
	}
	if d.excerpt != "" {
		r.desk.Output.Set(d.excerpt)
	}
	if d.late {
		r.core.Late()
	}
	if d.refused && r.refused == nil {
		r.refused = r.spec.LimitError(abi.LimitMemory, "exceeded its memory limit", nil)
	}
	return d.value, d.err(r.spec.Env)
}

// Result implements instance.Guest.
func (r *remote) Result(uint64) ([]byte, error) { return r.result, nil }

// Ended implements instance.Guest: the process reports its time itself.
func (r *remote) Ended(time.Duration) {}

// Refused implements instance.Guest.
func (r *remote) Refused() error { return r.refused }

// Size implements instance.Guest.
func (r *remote) Size() int64 { return r.size }

// Conn returns the connection to the guest process.
func (r *remote) Conn() Conn { return r.conn.conn }

// Alive implements instance.Guest.
func (r *remote) Alive() bool { return r.proc.Ended() == nil }

// Interrupted implements instance.Guest: the process sees the end of the connection. It has
// a moment to end the call.
func (r *remote) Interrupted() {
	if r.conn.conn == nil {
		return
	}
	_ = r.conn.conn.SetDeadline(time.Now().Add(endGrace(time.Duration(r.limit.Load()))))
	_ = r.conn.conn.CloseWrite() // or it is closed already
}

// Close implements instance.Guest.
func (r *remote) Close(context.Context) {
	if r.conn.conn != nil {
		_ = r.conn.conn.Close()
	}
}
