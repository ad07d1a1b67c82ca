package host

import (
	"errors"
	"fmt"
	"strings"

	"github.com/wasmctl/wasmctl/abi"
)

// done is frameDone of a new instance or a call: what it has come to.
type done struct {
	value   uint64 // that the entry returned
	spent   int64  // fuel
	waited  int64  // nanoseconds, as the next two
	guest   int64  // that it computed
	idle    int64  // that nobody worked
	size    int64  // of linear memory, in bytes
	dropped int64  // bytes of output
	sources byte   // that it has asked
	late    bool   // its time was over
	refused bool   // memory beyond its limit
	output  bool   // the error is one of what the guest returned
	limit   string // that the call went beyond; else empty
	trouble string // the error, "" where there is none
	excerpt string // of what the guest printed, with an error
	result  []byte
}

func flag(b bool) byte {
	if b {
		return 1
	}
	return 0
}

// write adds the fields to a frame.
func (d *done) write(c *frameConn) *frameConn {
	c.u64(d.value).i64(d.spent).i64(d.waited).i64(d.guest).i64(d.idle).i64(d.size).i64(d.dropped).u8(d.sources).u8(flag(d.late)).u8(flag(d.refused)).u8(flag(d.output))
	return c.text(d.limit).text(d.trouble).text(d.excerpt).rest(d.result)
}

func readDone(f *fields) done {
	return done{
		value: f.u64(), spent: f.i64(), waited: f.i64(), guest: f.i64(), idle: f.i64(), size: f.i64(), dropped: f.i64(), sources: f.u8(), late: f.u8() != 0, refused: f.u8() != 0, output: f.u8() != 0,
		limit: f.text(maxOpName), trouble: f.text(maxText), excerpt: f.text(2 * (maxHead + maxTail)), result: f.rest(),
	}
}

// describe notes the error of a call.
func (d *done) describe(err error) {
	if err == nil {
		return
	}
	err = exitCode(err)
	if _, ok := errors.AsType[*outputError](err); ok {
		d.output = true
	}
	d.trouble = err.Error()
	if limit, ok := errors.AsType[*abi.LimitError](err); ok {
		_, trace, _ := strings.Cut(d.trouble, traceStart)
		d.limit, d.trouble = string(limit.Limit), limit.What+traceStart+trace
	}
	d.trouble = shorten(d.trouble, maxText)
}

// limitErrs are the limits that a guest process keeps, and what their errors
// match.
var limitErrs = map[abi.LimitName]error{abi.LimitFuel: ErrFuel, abi.LimitStack: ErrStack, abi.LimitResultBytes: abi.ErrTooLarge}

// err is the error of the call, as of a guest in this process.
func (d *done) err(g *revision) error {
	if d.trouble == "" {
		return nil
	}
	err := errors.New(d.trouble)
	if is, ok := limitErrs[abi.LimitName(d.limit)]; ok {
		what, trace, _ := strings.Cut(d.trouble, traceStart)
		err = fmt.Errorf("%w"+traceStart+"%s", g.limitError(abi.LimitName(d.limit), what, is), trace)
	}
	if d.output {
		return &outputError{err}
	}
	return err
}
