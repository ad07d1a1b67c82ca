package host

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"time"

	"github.com/wasmctl/wasmctl/abi"
)

// opArgs are the parameters of every operation.
type opArgs struct{ reqPtr, reqLen, dstPtr, dstCap uint32 }

// operation answers one operation. Whatever the guest passed, there is an
// answer: a trap in here would leave the guest's own stack wrong (ABI.md, 5).
func (in *instance) operation(op abi.Op, a opArgs) uint64 {
	in.drop()
	if !inside(in.memory, a.dstPtr, a.dstCap) {
		// Checked first: where the answer cannot be written nothing is done.
		return abi.PackResult(abi.StatusBadRequest, 0)
	}
	res := shortAnswer(op, in.respond(op, a))
	if err := in.hold(res.Body); err != nil {
		in.run.sources |= abi.SourceLimit
		res = noMemory("the answer of "+string(op)+", which may have been carried out", err)
		_ = in.hold(res.Body) // which is small
	}
	if uint64(len(res.Body)) <= uint64(a.dstCap) {
		in.charge(len(res.Body))
		in.memory.Write(a.dstPtr, res.Body)
	}
	return abi.PackResult(res.Status, uint32(len(res.Body))) //nolint:gosec // at most MaxBytes
}

// outsideCall never changes and is made once: a guest may go on asking, as fast
// as it can.
var outsideCall = refuse(abi.StatusUnavailable, "OutsideCall", "operations work only in entry calls, not in start code, buffer or describe")

// shortAnswer refuses in the place of an answer that is too long.
func shortAnswer(op abi.Op, res abi.Response) abi.Response {
	if len(res.Body) <= abi.MaxBytes {
		return res
	}
	return refuse(abi.StatusTooLarge, "TooLarge",
		fmt.Sprintf("the answer of %s is %d bytes long, the limit is %d: ask for less, for example with limit and continue", op, len(res.Body), abi.MaxBytes))
}

// timeOver is the answer where a guest process asks although its call is over.
var timeOver = refuse(abi.StatusCancelled, "Cancelled", "this run has timed out")

// respond checks that an operation may run, and runs it.
func (in *instance) respond(op abi.Op, a opArgs) abi.Response {
	if in.run.access == accessNone {
		return outsideCall
	}
	req, ok := in.memory.Read(a.reqPtr, a.reqLen)
	switch {
	case !ok:
		return refuse(abi.StatusBadRequest, "BadPointer", blockText("request", a.reqPtr, a.reqLen))
	case in.upstream != nil:
		return in.upstream.operation(op, req)
	}
	return in.answer(op, req, int64(len(req)))
}

// answer checks a request of so many bytes, and answers it; one that is too long
// need not be there.
func (in *instance) answer(op abi.Op, req []byte, size int64) abi.Response {
	switch {
	case size > in.gen.limits.RequestBytes:
		return in.refuseOver(abi.LimitRequestBytes, fmt.Sprintf("the request of %s is %d bytes long", op, size))
	case in.interrupt.Err() != nil:
		return timeOver
	}
	in.charge(len(req))
	in.run.calls++
	if limit := in.gen.limits.HostCalls; limit > 0 && in.run.calls > limit {
		return in.refuseAgain(abi.LimitHostCalls, tooManyCalls)
	}
	switch {
	case op == abi.OpConfigGet:
		return in.settings.get(req)
	case !isAPI(op) || in.gen.cfg.API == nil:
		return refuse(abi.StatusUnsupported, "Unsupported", fmt.Sprintf("this host does not serve %s", op))
	case in.run.access < accessFor(op):
		return refuse(abi.StatusUnavailable, "OutsideRun",
			fmt.Sprintf("%s works in reconcile, finalize and error_policy: map and filter may read the cache, configure the settings", op))
	}
	if op == abi.OpEventRecord {
		if over := in.allowEvent(); over != "" {
			in.run.sources |= abi.SourceLimit
			return in.refuseAgain(over, "event not recorded: the limit is %d")
		}
	}
	return in.callAPI(op, req)
}

const tooManyCalls = "the limit of %d operations per run is reached"

// refuseAgain is the answer of an operation that is one too many; what gets the
// limit. It is made once for each instance.
func (in *instance) refuseAgain(name abi.LimitName, what string) abi.Response {
	res, ok := in.refusals[name]
	if ok {
		in.gen.shared.hits.add(name)
		return res
	}
	res = in.refuseOver(name, fmt.Sprintf(what, in.gen.limits.Get(name)))
	if in.refusals == nil {
		in.refusals = map[abi.LimitName]abi.Response{}
	}
	in.refusals[name] = res
	return res
}

// refuseOver is the answer of an operation that goes beyond a limit.
func (in *instance) refuseOver(name abi.LimitName, what string) abi.Response {
	text := in.gen.limitError(name, what, nil).Error()
	if name == abi.LimitRequestBytes {
		return refuse(abi.StatusTooLarge, "TooLarge", text)
	}
	return refuse(abi.StatusBudget, "BudgetExceeded", text)
}

// accessFor is what a guest needs for an operation of the API.
func accessFor(op abi.Op) access {
	if op == abi.OpCacheGet || op == abi.OpCacheList {
		return accessCache
	}
	return accessAll
}

// callAPI gives the API a context of the standard library: unlike the
// instance's own, the callee can keep it.
func (in *instance) callAPI(op abi.Op, req []byte) (res abi.Response) {
	ctx, cancel := context.WithDeadline(in.run.parent, in.run.deadline)
	defer cancel()
	in.interrupt.operation.Store(&cancel)
	defer in.interrupt.operation.Store(nil)
	if in.interrupt.Err() != nil { // between its last check and now
		cancel()
	}
	defer func() {
		if p := recover(); p != nil {
			in.gen.log.Error("BUG: operation panicked", "op", op, "object", in.run.key.String(), "reconcile_id", in.run.id,
				"panic", p, "stack", string(debug.Stack()))
			res = refuse(abi.StatusInternal, "Internal", fmt.Sprintf("%s: internal error of the host; see its log", op))
		}
	}()
	give, err := in.takeRequest(len(req))
	if err != nil {
		in.run.sources |= abi.SourceLimit
		return noMemory(string(op), err)
	}
	defer give()
	call := func() { res = in.gen.api.Call(ctx, op, bytes.Clone(req)) }
	if op == abi.OpCacheGet || op == abi.OpCacheList { // does not wait
		call()
	} else {
		startedAt := time.Now()
		in.withoutTimeSlice(call)
		in.run.waited += time.Since(startedAt)
	}
	if res.Status == abi.StatusOK { // what was refused would be words of the guest's choice
		in.gen.cfg.Secrets.Learn(res.Body)
	}
	return res
}

// noMemory is the answer of an operation that the memory budget has no room for.
// What it says is of this module: what others use is not its business.
func noMemory(what string, err error) abi.Response {
	text := fmt.Sprintf("the host has no memory for %s now: ask for less, or later", what)
	if limit, ok := errors.AsType[*abi.LimitError](err); ok {
		text = (&abi.LimitError{Limit: limit.Limit, Value: limit.Value, What: text}).Error()
	}
	return refuse(abi.StatusBudget, "BudgetExceeded", text)
}

// refuse is an answer of the host's own.
func refuse(status abi.Status, reason, message string) abi.Response {
	return abi.Refuse(&abi.StatusBody{Code: status, Reason: reason, Message: message})
}
