// SPDX-License-Identifier: Apache-2.0

package operation

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"time"

	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/host/share"
)

// Operation implements Host.
func (d *Desk) Operation(op abi.Op, req []byte) abi.Response {
	return d.Answer(op, req, int64(len(req)))
}

// Answer checks a request of size bytes, and answers it. A request that is too long may be
// nil.
func (d *Desk) Answer(op abi.Op, req []byte, size int64) abi.Response {
	res := d.answer(op, req, size)
	if len(res.Body) <= abi.MaxBytes {
		return res
	}
	return Refuse(abi.StatusTooLarge, "TooLarge",
		fmt.Sprintf("the answer of %s is %d bytes long, the limit is %d: ask for less, for example with limit and continue", op, len(res.Body), abi.MaxBytes))
}

// TimeOver is the answer to a guest process that asks although its call is over.
var TimeOver = Refuse(abi.StatusCancelled, "Cancelled", "this run has timed out")

func (d *Desk) answer(op abi.Op, req []byte, size int64) abi.Response {
	if size > share.RequestBytes {
		return d.refusals.over(abi.LimitRequestBytes, fmt.Sprintf("the request of %s is %d bytes long", op, size))
	}
	if d.Worker.Cancel(nil) {
		return TimeOver
	}
	d.Worker.Charge(len(req))
	d.Run.Calls++
	if limit := d.Env.Limits.HostCalls; limit > 0 && d.Run.Calls > limit {
		return d.refusals.TooManyCalls()
	}
	switch {
	case op == abi.OpConfigGet:
		return d.Settings.get(req)
	case !op.IsAPI() || d.Env.API == nil:
		return Refuse(abi.StatusUnsupported, "Unsupported", fmt.Sprintf("this host does not serve %s", op))
	case d.Run.Access < accessFor(op):
		return Refuse(abi.StatusUnavailable, "OutsideRun",
			fmt.Sprintf("%s works in reconcile, finalize and error_policy: map, filter, validate and default read only the cache, which has the kinds that the manifest watches (for, owns, watches), and configure and convert only the settings", op))
	}
	if op == abi.OpEventRecord {
		if over := d.allowEvent(); over != "" {
			d.Run.Sources |= abi.SourceLimit
			return d.refusals.again(over, "event not recorded: the limit is %d")
		}
	}
	return d.callAPI(op, req)
}

// accessFor returns the access that an operation of the API needs.
func accessFor(op abi.Op) Access {
	if op == abi.OpCacheGet || op == abi.OpCacheList {
		return AccessCache
	}
	return AccessAll
}

// callAPI gives the API a context of the standard library: unlike the instance's own, the
// callee can keep it.
func (d *Desk) callAPI(op abi.Op, req []byte) (res abi.Response) {
	ctx, cancel := context.WithDeadline(d.Run.Parent, d.Run.Deadline)
	defer cancel()
	defer d.Worker.Cancel(nil)
	if d.Worker.Cancel(&cancel) { // since its last check
		cancel()
	}
	defer func() {
		if p := recover(); p != nil {
			d.Env.Log.Error("BUG: operation panicked", "op", op, "object", d.Run.Key.String(), "reconcile_id", d.Run.ID,
				"panic", p, "stack", string(debug.Stack()))
			res = Refuse(abi.StatusInternal, "Internal", fmt.Sprintf("%s: internal error of the host; see its log", op))
		}
	}()
	give, err := d.takeRequest(len(req))
	if err != nil {
		d.Run.Sources |= abi.SourceLimit
		return NoMemory(string(op), err)
	}
	defer give()
	call := func() { res = d.Env.API.Call(ctx, op, bytes.Clone(req)) }
	if op == abi.OpCacheGet || op == abi.OpCacheList { // these do not wait
		call()
	} else {
		d.wait(call)
	}
	if res.Status == abi.StatusOK { // a refused request would teach words that the guest chose
		d.Env.Secrets.Learn(res.Body)
		if res.Body, err = d.Env.Readable(res.Body); err != nil {
			return Refuse(abi.StatusInternal, "Internal", fmt.Sprintf("answer of %s: %v", op, err))
		}
	}
	return res
}

// Readable returns a value that the guest can read: without opaque JSON if the guest does not read it.
func (e *Env) Readable(value []byte) ([]byte, error) {
	if e.Opaque {
		return value, nil
	}
	return abi.Plain(value)
}

// wait runs f, which waits, without a turn of a CPU.
func (d *Desk) wait(f func()) {
	startedAt := time.Now()
	had := d.Worker.Pause()
	defer func() {
		d.Worker.Resume(had)
		d.Run.Waited += time.Since(startedAt)
	}()
	f()
}

// Unconnected is the API of a revision before its own is connected. Only configure runs
// before that, which may not use it.
type Unconnected struct{}

// Call implements API.
func (Unconnected) Call(_ context.Context, op abi.Op, _ []byte) abi.Response {
	return Refuse(abi.StatusUnavailable, "OutsideRun", string(op)+": the API is not connected")
}

const (
	// SmallMessage is the size of the largest request or answer that is not counted.
	SmallMessage = 16 << 10
	// RequestCopies is the memory that a request takes in addition to its decoded value, in
	// lengths of the request: its copy, its parts, and the bytes that are sent.
	RequestCopies = 3
)

// takeRequest counts a request while it is served; give ends that.
func (d *Desk) takeRequest(n int) (give func(), err error) {
	if n <= SmallMessage {
		return func() {}, nil
	}
	account, size := d.Env.Account, RequestCopies*int64(n)
	return func() { account.Give(size) }, account.Take(size)
}

// Held is an answer that stays for the host function take. It counts in an account.
type Held struct {
	Body    []byte
	Holding bool
	counted int64
}

// Hold keeps an answer until Release.
func (h *Held) Hold(account *share.Account, body []byte) error {
	if n := int64(len(body)); n > SmallMessage {
		if err := account.Take(n); err != nil {
			return err
		}
		h.counted = n
	}
	h.Body, h.Holding = body, true
	return nil
}

// Release forgets the answer.
func (h *Held) Release(account *share.Account) {
	account.Give(h.counted)
	*h = Held{}
}

// NoMemory is the answer to an operation for which the memory budget has no room. Its text
// is about this module: the memory of others is not its concern.
func NoMemory(what string, err error) abi.Response {
	text := fmt.Sprintf("the host has no memory for %s now: ask for less, or later", what)
	if limit, ok := errors.AsType[*abi.LimitError](err); ok {
		text = (&abi.LimitError{Limit: limit.Limit, Value: limit.Value, What: text}).Error()
	}
	return Refuse(abi.StatusBudget, "BudgetExceeded", text)
}

// Refuse returns an answer of the host itself.
func Refuse(status abi.Status, reason, message string) abi.Response {
	return abi.Refuse(&abi.StatusBody{Code: status, Reason: reason, Message: message})
}
