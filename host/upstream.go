package host

import (
	"log/slog"
	"math"
	"time"

	"github.com/wasmctl/wasmctl/abi"
)

// upstream is the host, for an instance in a guest process. It belongs to the
// goroutine that runs the guest.
type upstream struct {
	in     *instance
	conn   *frameConn
	frames <-chan frame // that the host has sent; closed where the connection has ended

	shown int // bytes that were logged and printed in this call
}

// frame is one that was read. It holds until the next is.
type frame struct {
	kind frameKind
	fields
}

// ask sends the frame that was begun and waits for its answer, which holds until
// the next. It is false where the host is gone or wants the call to end.
func (u *upstream) ask(out *frameConn) (status abi.Status, body []byte, ok bool) {
	if out.send() != nil {
		return 0, nil, false
	}
	f, ok := <-u.frames
	if !ok || f.kind != frameAnswer {
		return 0, nil, false
	}
	status, body = abi.Status(f.i64()), f.rest() //nolint:gosec // the host's
	return status, body, !f.bad
}

// operation has the host answer an operation. One that is too long is not sent,
// only how long it is.
func (u *upstream) operation(op abi.Op, req []byte) (res abi.Response) {
	in, size := u.in, int64(len(req))
	in.run.calls++
	if limit := in.gen.limits.HostCalls; limit > 0 && in.run.calls > limit+1 { // the host has counted one that is too many
		return in.refuseAgain(abi.LimitHostCalls, tooManyCalls)
	}
	if size > in.gen.limits.RequestBytes {
		req = nil
	}
	in.charge(len(req))
	ok := false
	in.withoutTimeSlice(func() {
		startedAt := time.Now()
		defer func() { in.run.waited += time.Since(startedAt) }()
		name := op[:min(len(op), maxOpName)]
		res.Status, res.Body, ok = u.ask(u.conn.begin(frameOperation).text(string(name)).i64(size).rest(req))
	})
	if !ok {
		return timeOver
	}
	return res
}

func (u *upstream) metric(kind int32, name []byte, value float64) abi.Status {
	status, _, ok := u.ask(u.conn.begin(frameMetric).i64(int64(kind)).u64(math.Float64bits(value)).text(string(name)))
	if !ok {
		return abi.StatusUnavailable
	}
	return status
}

func (u *upstream) cancelled() int32 {
	status, _, ok := u.ask(u.conn.begin(frameCancelled))
	if !ok {
		return 1
	}
	return int32(status)
}

// grow asks for linear memory of so many bytes.
func (u *upstream) grow(size int64) error {
	status, _, ok := u.ask(u.conn.begin(frameGrow).i64(size))
	if !ok || status != abi.StatusOK {
		return ErrMemoryBudget // which the host has noted
	}
	return nil
}

// log and print show what a guest logs and prints, as much as the host takes of
// one call.

func (u *upstream) log(level slog.Level, b []byte) {
	if u.show(len(b)) {
		u.in.charge(len(b))
		_ = u.conn.begin(frameLog).i64(int64(level)).rest(b).send() // its end ends the call
	}
}

func (u *upstream) print(level slog.Level, b []byte) {
	stream := int64(0)
	if level != slog.LevelInfo {
		stream = 1
	}
	for len(b) > 0 {
		part := b[:min(len(b), maxLine)]
		if b = b[len(part):]; !u.show(len(part)) {
			continue
		}
		u.in.charge(len(part))
		if u.conn.begin(framePrint).i64(stream).rest(part).send() != nil {
			return
		}
	}
}

// show counts n bytes, and reports whether the host takes them.
func (u *upstream) show(n int) bool {
	if u.shown+n > maxOutput {
		u.in.output.dropped += n
		return false
	}
	u.shown += n + lineOverhead
	return true
}
