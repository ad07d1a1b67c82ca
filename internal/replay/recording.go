package replay

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/internal/replay/shadow"
)

// maxExchanges bounds how many operations of one run are noted.
const maxExchanges = 1000

// exchange is one operation of a run and its answer.
type exchange struct {
	op   abi.Op
	req  []byte
	id   string // the request in one form, however it was encoded
	to   string // what it is about, without what it says
	res  abi.Response
	used bool // it has answered the other module
	// indexed says that it is a list by an index of the module: what that leaves out is
	// what this module's function says.
	indexed bool
}

func newExchange(op abi.Op, req []byte, res abi.Response) *exchange {
	e := &exchange{op: op, req: req, res: res}
	m, err := abi.DecodeObject(req)
	if err != nil {
		e.id, e.to = string(op)+"\x00"+string(req), string(op)+"\x00"+string(req)
		return e
	}
	e.id = string(op) + mustJSON(m)
	_, e.indexed = m["index"]
	w := writeOf(op, req)
	e.to = string(op) + w.String()
	return e
}

// mustJSON writes what was msgpack, its keys in order.
func mustJSON(m map[string]any) string {
	js, err := json.Marshal(m)
	if err != nil {
		return fmt.Sprint(m) // a number that JSON does not have
	}
	return string(js)
}

// writes reports whether it asks for a change.
func (e *exchange) writes() bool {
	return !slices.Contains([]abi.Op{abi.OpAPIGet, abi.OpAPIList, abi.OpCacheGet, abi.OpCacheList}, e.op)
}

// recording is a run: its input, its requests and its result. The goroutine of
// the run owns it, and then the comparison.
type recording struct {
	req       abi.Request
	finalize  bool
	startedAt time.Time

	exchanges []*exchange
	result    abi.Result
	err       error
	policy    *abi.Result // of error_policy, where it was asked
}

// run calls a guest as the run says.
func (r *recording) run(ctx context.Context, g abi.Guest) {
	call := g.Reconcile
	if r.finalize {
		call = g.Finalize
	}
	r.result, r.err = call(ctx, &r.req)
	if r.err == nil && r.result.Error == nil {
		return
	}
	f := &abi.Failure{ID: r.req.ID, Key: r.req.Key, Object: r.req.Object, Attempt: r.req.Attempt, FirstFailed: r.startedAt, Kind: abi.FailureError}
	f.Error = abi.ResultError{Class: abi.ErrorTransient, Message: r.errorText()}
	if r.result.Error != nil {
		f.Error = *r.result.Error
	}
	if call, ok := errors.AsType[*abi.CallError](r.err); ok {
		f.Kind = call.Kind
	}
	if res, err := g.ErrorPolicy(ctx, f); err == nil {
		r.policy = &res
	}
}

// errorText is what the run failed with, or "".
func (r *recording) errorText() string {
	switch {
	case r.err != nil:
		if call, ok := errors.AsType[*abi.CallError](r.err); ok {
			first, _, _ := strings.Cut(r.err.Error(), "\n") // then follows a stack, which no two builds have the same
			return string(call.Kind) + ": " + first
		}
		return r.err.Error()
	case r.result.Error != nil:
		return string(r.result.Error.Class) + ": " + r.result.Error.Error()
	}
	return ""
}

// outcome returns what is compared of a run. Values of Secrets are hidden.
func (x *shadowing) outcome(r *recording) *shadow.Run {
	out := &shadow.Run{Error: r.errorText(), Action: r.result.Action}
	if out.Error != "" {
		out.Action = abi.Action{}
		if r.policy != nil {
			out.Action = r.policy.Action
		}
	}
	x.values.Learn(r.req.Object)
	for _, e := range r.exchanges {
		x.values.Learn(e.res.Body)
		if e.writes() {
			x.values.LearnRequest(e.req)
			out.Writes = append(out.Writes, writeOf(e.op, e.req))
		}
	}
	d := r.result.Declared
	if d == nil {
		return out
	}
	for _, child := range d.Apply {
		x.values.Learn(child)
		out.Writes = append(out.Writes, declared(child))
	}
	if d.Prune {
		out.Writes = append(out.Writes, shadow.Write{What: "prune the others"})
	}
	if d.Force {
		out.Writes = append(out.Writes, shadow.Write{What: "force conflicts"})
	}
	if d.Status != nil {
		if v, err := abi.DecodeValue(d.Status); err == nil {
			out.Writes = append(out.Writes, shadow.Write{What: "declare status", Body: v})
		}
	}
	return out
}

// interrupted reports whether the run was interrupted: such a run does not
// count.
func (r *recording) interrupted() bool {
	res, ok := errors.AsType[*abi.ResultError](r.err)
	return ok && res.Reason == "ModuleSwapped" || errors.Is(r.err, context.Canceled)
}
