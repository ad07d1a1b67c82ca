// SPDX-License-Identifier: Apache-2.0

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

// maxExchanges is the maximum number of recorded operations of one run.
const maxExchanges = 1000

// exchange is one operation of a run and its response.
type exchange struct {
	op   abi.Op
	req  []byte
	id   string // the request in a canonical form, independent of its encoding
	to   string // the subject of the request, without its content
	res  abi.Response
	used bool // it has already answered a request of the other module
	// indexed marks a list by an index: its result depends on this module's index function.
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

// mustJSON encodes a decoded msgpack map as JSON, with sorted keys.
func mustJSON(m map[string]any) string {
	js, err := json.Marshal(m)
	if err != nil {
		return fmt.Sprint(m) // a number that JSON cannot represent
	}
	return string(js)
}

// writes reports whether the operation may change something.
func (e *exchange) writes() bool {
	return !slices.Contains([]abi.Op{abi.OpAPIGet, abi.OpAPIList, abi.OpCacheGet, abi.OpCacheList}, e.op)
}

// recording is a run: its input, its requests and its result. It belongs to the goroutine of the run, and later to the comparison.
type recording struct {
	req       abi.Request
	finalize  bool
	startedAt time.Time

	exchanges []*exchange
	result    abi.Result
	err       error
	policy    *abi.Result // of error_policy, if it was called
}

// run calls a guest with the input of the run.
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

// errorText returns the error of the run, or "".
func (r *recording) errorText() string {
	switch {
	case r.err != nil:
		if call, ok := errors.AsType[*abi.CallError](r.err); ok {
			first, _, _ := strings.Cut(r.err.Error(), "\n") // a stack trace follows, which differs between builds
			return string(call.Kind) + ": " + first
		}
		return r.err.Error()
	case r.result.Error != nil:
		return string(r.result.Error.Class) + ": " + r.result.Error.Error()
	}
	return ""
}

// outcome returns the part of a run that is compared. Values of Secrets are redacted.
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

// interrupted reports whether the run was interrupted: such a run is ignored.
func (r *recording) interrupted() bool {
	res, ok := errors.AsType[*abi.ResultError](r.err)
	return ok && res.Reason == "ModuleSwapped" || errors.Is(r.err, context.Canceled)
}
