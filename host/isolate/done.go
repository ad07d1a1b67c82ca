// SPDX-License-Identifier: Apache-2.0

package isolate

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/host/internal/instance"
	"github.com/wasmctl/wasmctl/host/operation"
	"github.com/wasmctl/wasmctl/host/share"
	"github.com/wasmctl/wasmctl/internal/text"
)

// done is frameDone of a new instance or a call: its result.
type done struct {
	value   uint64 // of the entry
	usage   instance.Usage
	size    int64  // of linear memory, in bytes
	dropped int64  // bytes of output
	sources byte   // that the guest has asked
	late    bool   // its time was over
	refused bool   // it asked for memory beyond its limit
	output  bool   // the error is one of the guest's output
	limit   string // the limit that the call exceeded; else empty
	trouble string // the error; empty if there is none
	excerpt string // of the guest's output, with an error
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
	c.u64(d.value).i64(d.usage.Spent).i64(int64(d.usage.Waited)).i64(int64(d.usage.Guest)).i64(int64(d.usage.Idle))
	c.i64(d.size).i64(d.dropped).u8(d.sources).u8(flag(d.late)).u8(flag(d.refused)).u8(flag(d.output))
	return c.text(d.limit).text(d.trouble).text(d.excerpt).rest(d.result)
}

func readDone(f *fields) (d done) {
	d.value, d.usage.Spent = f.u64(), f.i64()
	d.usage.Waited, d.usage.Guest, d.usage.Idle = time.Duration(f.i64()), time.Duration(f.i64()), time.Duration(f.i64())
	d.size, d.dropped, d.sources, d.late, d.refused, d.output = f.i64(), f.i64(), f.u8(), f.u8() != 0, f.u8() != 0, f.u8() != 0
	d.limit, d.trouble, d.excerpt, d.result = f.text(maxOpName), f.text(text.MaxError), f.text(operation.MaxExcerpt), f.rest()
	return d
}

// possible reports whether a guest with at most this much memory can have this result.
func (d *done) possible(memory int64) bool {
	u := &d.usage
	return d.size >= 0 && d.size <= memory && u.Spent >= 0 && u.Waited >= 0 && u.Guest >= 0 && u.Idle >= 0 && len(d.result) <= share.ResultBytes
}

// describe records the error of a call.
func (d *done) describe(err error) {
	if err == nil {
		return
	}
	err = instance.ExitCode(err)
	if _, ok := errors.AsType[*instance.OutputError](err); ok {
		d.output = true
	}
	d.trouble = err.Error()
	if limit, ok := errors.AsType[*abi.LimitError](err); ok {
		_, trace, _ := strings.Cut(d.trouble, operation.TraceStart)
		d.limit, d.trouble = string(limit.Limit), limit.What+operation.TraceStart+trace
	}
	d.trouble = text.Ends(d.trouble, text.MaxError)
}

// limitErrs are the limits that a guest process enforces, with the errors that theirs match.
var limitErrs = map[abi.LimitName]error{
	abi.LimitFuel: share.ErrFuel, abi.LimitStack: share.ErrStack, abi.LimitResultBytes: abi.ErrTooLarge,
}

// err returns the error of the call, as that of a guest in this process.
func (d *done) err(env *operation.Env) error {
	if d.trouble == "" {
		return nil
	}
	err := errors.New(d.trouble)
	if is, ok := limitErrs[abi.LimitName(d.limit)]; ok {
		what, trace, _ := strings.Cut(d.trouble, operation.TraceStart)
		err = fmt.Errorf("%w"+operation.TraceStart+"%s", env.LimitError(abi.LimitName(d.limit), what, is), trace)
	}
	if d.output {
		return &instance.OutputError{Err: err}
	}
	return err
}
