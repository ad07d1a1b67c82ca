// SPDX-License-Identifier: Apache-2.0

package isolate

import (
	"fmt"
	"log/slog"
	"math"
	"time"

	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/host/internal/instance"
	"github.com/wasmctl/wasmctl/host/operation"
	"github.com/wasmctl/wasmctl/host/share"
)

// upstream is the host, for an instance in a guest process. It implements operation.Host, and
// belongs to the goroutine that runs the guest.
type upstream struct {
	core   *instance.Core
	local  *instance.Local
	spec   *instance.Spec
	conn   *frameConn
	frames <-chan frame // from the host; closed when the connection has ended

	refusals operation.Refusals
	excerpt  operation.Excerpt
	level    slog.Level // the lowest level that the host logs
	shown    int        // bytes that were logged and printed in this call
	dropped  int        // bytes that were not
}

// frame is one that was read. It is valid until the next is.
type frame struct {
	kind frameKind
	fields
}

// beginCall starts a call.
func (u *upstream) beginCall(level byte) {
	u.level = slog.Level(int8(level)) //nolint:gosec // the bits of an i8
	u.shown, u.dropped = 0, 0
	u.excerpt.Reset()
}

// ask sends the frame that was begun and waits for its answer, which is valid until the
// next. ok is false if the host is gone or wants the call to end.
func (u *upstream) ask(out *frameConn) (status abi.Status, body []byte, ok bool) {
	if out.send() != nil {
		return 0, nil, false
	}
	f, ok := <-u.frames
	if !ok || f.kind != frameAnswer {
		return 0, nil, false
	}
	status, body = abi.Status(f.i64()), f.rest() //nolint:gosec // from the host
	return status, body, !f.bad
}

// Operation implements operation.Host. Of a request that is too long, only the length is
// sent.
func (u *upstream) Operation(op abi.Op, req []byte) (res abi.Response) {
	run, limits, size := &u.core.Run, &u.spec.Limits, int64(len(req))
	run.Calls++
	if limit := limits.HostCalls; limit > 0 && run.Calls > limit+1 { // the host has counted one that is too many
		return u.refusals.TooManyCalls()
	}
	if size > share.RequestBytes {
		req = nil
	}
	u.local.Charge(len(req))
	had := u.local.Pause()
	startedAt := time.Now()
	name := op[:min(len(op), maxOpName)]
	var ok bool
	res.Status, res.Body, ok = u.ask(u.conn.begin(frameOperation).text(string(name)).i64(size).rest(req))
	run.Waited += time.Since(startedAt)
	u.local.Resume(had)
	if !ok {
		return operation.TimeOver
	}
	return res
}

// Metric implements operation.Host.
func (u *upstream) Metric(kind int32, name []byte, value float64) abi.Status {
	switch {
	case u.spec.Metric == nil:
		return abi.StatusUnsupported
	case len(name) > operation.MaxMetricName:
		return abi.StatusTooLarge
	}
	status, _, ok := u.ask(u.conn.begin(frameMetric).i64(int64(kind)).u64(math.Float64bits(value)).text(string(name)))
	if !ok {
		return abi.StatusUnavailable
	}
	return status
}

// Cancelled implements operation.Host.
func (u *upstream) Cancelled() int32 {
	status, _, ok := u.ask(u.conn.begin(frameCancelled))
	if !ok {
		return 1
	}
	return int32(status)
}

// Resize implements operation.Host. The host has charged the memory with which an instance
// starts, and releases all memory at the end.
func (u *upstream) Resize(size int64) error {
	if size <= max(u.spec.Code.StartSize, u.local.Size()) {
		return nil
	}
	status, _, ok := u.ask(u.conn.begin(frameGrow).i64(size))
	if !ok || status != abi.StatusOK {
		return fmt.Errorf("guest process: %w", share.ErrMemoryBudget) // the host has recorded that
	}
	return nil
}

// Enabled implements operation.Host.
func (u *upstream) Enabled(level slog.Level) bool { return level >= u.level }

// Log implements operation.Host.
func (u *upstream) Log(level slog.Level, b []byte) {
	if u.show(len(b)) {
		u.local.Charge(len(b))
		_ = u.conn.begin(frameLog).i64(int64(level)).rest(b).send() // the end of the connection ends the call
	}
}

// Warn implements operation.Host.
func (u *upstream) Warn(msg string) { u.Log(slog.LevelWarn, []byte(msg)) }

// Print implements operation.Host.
func (u *upstream) Print(stream operation.Stream, b []byte) {
	u.excerpt.Add(b)
	for len(b) > 0 {
		part := b[:min(len(b), operation.MaxLine)]
		if b = b[len(part):]; !u.show(len(part)) {
			continue
		}
		u.local.Charge(len(part))
		if u.conn.begin(framePrint).i64(int64(stream)).rest(part).send() != nil {
			return
		}
	}
}

// show counts n bytes, and reports whether the host takes them.
func (u *upstream) show(n int) bool {
	if u.shown+n > operation.MaxOutput {
		u.dropped += n
		return false
	}
	u.shown += n + operation.LineOverhead
	return true
}
