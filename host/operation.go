package host

import (
	"bytes"
	"context"
	"fmt"
	"runtime/debug"

	"github.com/wasmctl/wasmctl/abi"
)

// opArgs are the parameters of every operation.
type opArgs struct{ reqPtr, reqLen, dstPtr, dstCap uint32 }

// settings are what config_get serves, encoded once.
type settings struct {
	all    []byte
	values map[string][]byte
}

var msgpackNil = []byte{0xc0}

func newSettings(m map[string]string) settings {
	s := settings{all: mustEncode(m), values: make(map[string][]byte, len(m))}
	for k, v := range m {
		s.values[k] = mustEncode(v)
	}
	return s
}

// mustEncode encodes strings, which cannot fail.
func mustEncode(v any) []byte {
	b, err := abi.AppendValue(nil, v)
	if err != nil {
		panic("BUG: settings: " + err.Error())
	}
	return b
}

// operation answers one operation. Whatever the guest passed, there is an
// answer: a trap in here would leave the guest's own stack wrong (ABI.md, 5).
func (in *instance) operation(op abi.Op, a opArgs) uint64 {
	in.run.held, in.run.holding = nil, false
	if !inside(in.memory, a.dstPtr, a.dstCap) {
		// Checked first: where the answer cannot be written nothing is done.
		return abi.PackResult(abi.StatusBadRequest, 0)
	}
	res := in.respond(op, a)
	if len(res.Body) > abi.MaxBytes {
		res = refuse(abi.StatusTooLarge, "TooLarge",
			fmt.Sprintf("the answer of %s is %d bytes long, the limit is %d: ask for less, for example with limit and continue", op, len(res.Body), abi.MaxBytes))
	}
	in.run.held, in.run.holding = res.Body, true
	if uint64(len(res.Body)) <= uint64(a.dstCap) {
		in.memory.Write(a.dstPtr, res.Body)
	}
	return abi.PackResult(res.Status, uint32(len(res.Body))) //nolint:gosec // at most MaxBytes
}

// respond checks that an operation may run, and runs it.
func (in *instance) respond(op abi.Op, a opArgs) abi.Response {
	if !in.run.entered {
		return refuse(abi.StatusUnavailable, "OutsideCall", "operations work in entry calls only, not in start code, buffer or describe")
	}
	req, ok := in.memory.Read(a.reqPtr, a.reqLen)
	switch {
	case !ok:
		return refuse(abi.StatusBadRequest, "BadPointer", blockText("request", a.reqPtr, a.reqLen))
	case len(req) > abi.MaxBytes:
		return refuse(abi.StatusTooLarge, "TooLarge", fmt.Sprintf("the request is %d bytes long, the limit is %d", len(req), abi.MaxBytes))
	case in.interrupt.Err() != nil:
		return refuse(abi.StatusCancelled, "Cancelled", "the time of this run is over")
	}
	in.run.calls++
	if limit := in.gen.limits.HostCalls; limit > 0 && in.run.calls > limit {
		return refuse(abi.StatusBudget, "BudgetExceeded", fmt.Sprintf("this run may ask for %d operations", limit))
	}
	switch {
	case op == abi.OpConfigGet:
		return in.gen.settings.get(req)
	case isAPI(op) && in.gen.api != nil:
		return in.callAPI(op, req)
	}
	return refuse(abi.StatusUnsupported, "Unsupported", fmt.Sprintf("this host does not serve %s", op))
}

// callAPI gives the API a context of the standard library: unlike the
// instance's own it may be kept by whoever was given it.
func (in *instance) callAPI(op abi.Op, req []byte) (res abi.Response) {
	ctx, cancel := context.WithDeadline(in.run.parent, in.run.deadline)
	defer cancel()
	defer func() {
		if p := recover(); p != nil {
			in.gen.log.Error("BUG: operation panicked", "op", op, "object", in.run.key.String(), "reconcile_id", in.run.id,
				"panic", p, "stack", string(debug.Stack()))
			res = refuse(abi.StatusInternal, "Internal", fmt.Sprintf("%s: a fault of the host; its log says more", op))
		}
	}()
	return in.gen.api.Call(ctx, op, bytes.Clone(req))
}

func (s *settings) get(b []byte) abi.Response {
	req, _, err := abi.DecodeConfigRequest(b)
	if err != nil {
		return refuse(abi.StatusBadRequest, "BadRequest", "config_get: "+err.Error())
	}
	if req.Key == "" {
		return abi.Response{Body: s.all}
	}
	if v, ok := s.values[req.Key]; ok {
		return abi.Response{Body: v}
	}
	return abi.Response{Body: msgpackNil}
}

// refuse is an answer of the host's own.
func refuse(status abi.Status, reason, message string) abi.Response {
	return abi.Refuse(&abi.StatusBody{Code: status, Reason: reason, Message: message})
}
