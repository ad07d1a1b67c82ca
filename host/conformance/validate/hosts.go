// SPDX-License-Identifier: Apache-2.0

package validate

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/host"
	"github.com/wasmctl/wasmctl/host/load"
)

// refusals are answers that every operation may get.
func refusals() []abi.Response {
	var out []abi.Response
	for s := abi.StatusInternal; s < abi.StatusOK; s++ {
		out = append(out, abi.Refuse(&abi.StatusBody{Code: s, Reason: "Validate", Message: "made up by wasmctl validate"}))
	}
	for code, reason := range map[int]string{
		400: "BadRequest", 403: "Forbidden", 404: "NotFound", 409: "Conflict", 410: "Expired", 422: "Invalid", 429: "TooManyRequests", 500: "InternalError", 503: "ServiceUnavailable",
	} {
		out = append(out, status(code, reason, "made up by wasmctl validate"))
	}
	slices.SortStableFunc(out[9:], func(a, b abi.Response) int { return int(a.Status) - int(b.Status) })
	return append(
		out,
		abi.Response{Status: -42, Body: encode(object{"reason": "New"})}, abi.Response{Status: 599},
		abi.Response{Status: 500, Body: encode("no map")}, abi.Response{Status: abi.StatusDenied},
		// Not a valid answer of this operation.
		abi.Response{Body: encode(nil)}, abi.Response{Body: encode(object{})}, abi.Response{Body: encode([]any{})}, abi.Response{},
	)
}

// statuses makes all operations fail, in each possible way.
func (e *exam) statuses(ctx context.Context) {
	defer e.world.set(nil)
	seen := map[string]bool{}
	verdict := Warn // as long as only answers break it that no host gives
	var broken []string
	var last error
	all := refusals()
	for _, r := range all {
		e.world.set(&r)
		_, asked, err := e.run(ctx, abi.ExportReconcile, request(e.kind.sample))
		for _, op := range asked {
			seen[op] = true
		}
		if broke(err) {
			last = err
			if r.Status != abi.StatusOK {
				verdict = Fail
			}
			name := r.Status.String()
			if r.Status == abi.StatusOK || len(r.Body) < 20 {
				name += fmt.Sprintf(" with a body of %d bytes", len(r.Body))
			}
			broken = append(broken, name)
		}
	}
	switch {
	case len(broken) > 0 && len(seen) == 0:
		e.add("statuses", Fail, "breaks before its first request: "+oneLine(last), nextOf(last))
	case len(broken) > 0:
		e.add("statuses", verdict, fmt.Sprintf("breaks if %s answers %s: %s", joined(seen), strings.Join(broken, ", "), oneLine(last)), "turn every status into an error, or decide by it; "+nextOf(last))
	case len(seen) == 0:
		e.ok("statuses", "makes no request that could fail, for the given objects")
	default:
		e.ok("statuses", "%d ways of failing of %s are taken", len(all), joined(seen))
	}
}

// oldHost loads the module into a host with hardly any operation.
func (e *exam) oldHost(ctx context.Context) {
	m, err := host.Load(ctx, e.wasm, e.config(nil))
	if invalid, ok := errors.AsType[*load.InvalidError](err); ok && invalid.Err == nil {
		e.ok("old-host", "an older host refuses it: %s", clip(invalid.Problems[0]))
		return
	}
	if err != nil {
		e.add("old-host", Fail, "on a host without operations: "+oneLine(err), "list required operations in requires, so that an older host refuses the module")
		return
	}
	defer func() { _ = m.Close(context.WithoutCancel(ctx)) }()
	before := e.module
	e.module = m
	defer func() { e.module = before }()
	res, _, err := e.run(ctx, abi.ExportReconcile, request(e.kind.sample))
	if broke(err) {
		e.add("old-host", Fail, "on a host without operations: "+oneLine(err), "handle UNSUPPORTED as an error, or list required operations in requires")
		return
	}
	e.ok("old-host", "on a host without operations: %s", outcome(res, nil))
}

// youngerHost passes a request as a later host may send it: with unknown keys, in another order.
func (e *exam) youngerHost(ctx context.Context) {
	msg := abi.AppendRequest(nil, request(e.kind.sample))
	_, plain, err := e.module.Exchange(ctx, abi.ExportReconcile, msg)
	if err != nil {
		return // reconcile.minimal has reported it
	}
	_, grown, err := e.module.Exchange(ctx, abi.ExportReconcile, younger(msg))
	if err != nil {
		e.add("younger-host", Fail, "of a request with unknown keys, in another order: "+oneLine(err), "find keys by name, and skip those that are not known")
		return
	}
	a, errA := abi.DecodeResult(plain)
	b, errB := abi.DecodeResult(grown)
	if errA != nil || errB != nil || (a.Error == nil) != (b.Error == nil) || a.Action.Requeue != b.Action.Requeue {
		e.add("younger-host", Warn, fmt.Sprintf("of a request with unknown keys, in another order, comes another result: %s, and before %s", outcome(b, nil), outcome(a, nil)),
			"find keys by name, and skip those that are not known")
		return
	}
	e.ok("younger-host", "takes a request with unknown keys, in another order")
}

// younger encodes a request with its keys in descending order, and additional keys.
func younger(msg []byte) []byte {
	m, err := abi.DecodeObject(msg)
	if err != nil {
		panic("BUG: validate: " + err.Error())
	}
	m["weather"], m["aaa"] = object{"object": []any{object{}}}, "unknown"
	if reason, ok := m["reason"].(object); ok {
		reason["since"], reason["type"] = int64(1), "SolarFlare"
	}
	out := binary.BigEndian.AppendUint16([]byte{0xde}, uint16(len(m))) //nolint:gosec // a dozen
	keys := slices.Sorted(maps.Keys(m))
	slices.Reverse(keys)
	for _, k := range keys {
		out = append(append(out, encode(k)...), encode(m[k])...)
	}
	return out
}
