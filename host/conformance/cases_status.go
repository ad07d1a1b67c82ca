// SPDX-License-Identifier: Apache-2.0

package conformance

import (
	"fmt"
	"maps"
	"math"
	"slices"

	"github.com/wasmctl/wasmctl/abi"
)

// statusCases are about the answers of failed operations: the guest must see the status and
// continue.
func statusCases() []Case {
	var cases []Case
	for s := abi.StatusInternal; s < abi.StatusOK; s++ {
		body := object{"code": int(s), "reason": "Reason" + s.String(), "message": "why: größe"}
		cases = append(cases, statusCase(s.String(), "status "+s.String()+" of the host", s, body))
	}
	for _, code := range []abi.Status{400, 401, 403, 404, 405, 406, 409, 410, 413, 415, 422, 429, 500, 502, 503, 504} {
		cases = append(cases, statusCase(fmt.Sprint(int(code)), fmt.Sprintf("status %d of the API server", code), code, metaStatus(code)))
	}
	for _, code := range []abi.Status{201, 418, 599, 99999, math.MaxInt32, -10, -42, math.MinInt32} {
		cases = append(cases, Case{fmt.Sprintf("status.unknown.%d", code), 7, fmt.Sprintf("the unknown status %d is an error", code), func(p *probe) error {
			p.rig.api.set(abi.Response{Status: code, Body: encode(object{"reason": "New", "message": "m"})})
			s, err := p.step(getA)
			if err != nil {
				return err
			}
			if code < 0 && s["status"] == int64(abi.StatusInternal) { // as ABI.md defines it
				return nil
			}
			return same("status", s["status"], int64(code))
		}})
	}
	bodies := map[string][]byte{
		"none": nil, "nil": encode(nil), "empty": encode(object{}), "text": encode("text"), "array": encode(list{1}), "other-types": encode(object{"reason": 1, "message": object{}, "rule": "x"}),
	}
	for _, name := range slices.Sorted(maps.Keys(bodies)) {
		body := bodies[name]
		cases = append(cases, Case{"status.body." + name, 7, "a status without a useful body", func(p *probe) error {
			p.rig.api.set(abi.Response{Status: abi.StatusUnavailable, Body: body}, abi.Response{Status: 500, Body: body})
			steps, err := p.steps(getA, getA)
			return first(err, same("status", steps0(steps, 0)["status"], int64(abi.StatusUnavailable)), same("status", steps0(steps, 1)["status"], 500))
		}})
	}
	return slices.Concat(cases, deniedCases(), hostStatusCases())
}

// metaStatus returns a Status of the API server.
func metaStatus(code abi.Status) object {
	return object{
		"kind": "Status", "apiVersion": "v1", "metadata": object{}, "status": "Failure", "message": "why: größe", "reason": "Because",
		"details": object{"name": "a", "kind": "configmaps", "retryAfterSeconds": 1}, "code": int(code),
	}
}

func statusCase(id, about string, status abi.Status, body object) Case {
	return Case{"status." + id, 7, about, func(p *probe) error {
		p.rig.api.set(abi.Response{Status: status, Body: encode(body)}, abi.Response{Body: encode(answerObject())})
		steps, err := p.steps(getA, getA)
		if err != nil {
			return err
		}
		return first(
			alike("answer", steps[0], object{"status": int(status), "reason": body["reason"], "message": body["message"]}),
			alike("the answer after it", steps[1], object{"body": answerObject()}),
		)
	}}
}

// deniedCases are about denied operations, with the missing rule.
func deniedCases() []Case {
	rule := object{"group": "", "resource": "größe", "subresources": list{"status"}, "verbs": list{"get", "*"}, "namespaces": list{"default"}, "names": list{"a"}}
	denied := encode(object{"code": -2, "reason": "Denied", "message": "no", "rule": rule, "new": 1})
	return eachOperation(func(op string, step object) Case {
		return Case{"denied." + op, 7, op + " is denied, and the rule that is missing is read", func(p *probe) error {
			p.rig.api.set(abi.Response{Status: abi.StatusDenied, Body: denied})
			return answered(step, object{"status": -2, "reason": "Denied", "message": "no", "rule": rule})(p)
		}}
	})
}

// eachOperation returns a case for the first request of each operation.
func eachOperation(c func(op string, step object) Case) []Case {
	var cases []Case
	seen := map[abi.Op]bool{}
	for _, r := range operationRequests() {
		if !seen[r.op] {
			seen[r.op] = true
			cases = append(cases, c(string(r.op), do("op", "op", string(r.op), "request", r.req)))
		}
	}
	return cases
}

// hostStatusCases are about statuses of the host itself.
func hostStatusCases() []Case {
	cases := eachOperation(func(op string, step object) Case {
		return Case{"old-host." + op, 9, op + " of a host that does not have it is UNSUPPORTED", onHost(oldHost, refuses(step, abi.StatusUnsupported))}
	})
	return append(
		cases,
		Case{"old-host.caps", 9, "the caps of a host that has little", onHost(oldHost, func(p *probe) error {
			s, err := p.step(do("request", "caps", list{"api_get", "declare", "config_get", "map"}))
			return first(err, alike("caps", s["caps"], object{"config_get": true, "map": true}))
		})},
		Case{"budget.spent", 7, "one operation more than a run may ask for is BUDGET", onHost(smallHost, func(p *probe) error {
			steps, err := p.steps(getA, getA, getA, getA)
			return first(err, same("the third", orZero(steps0(steps, 2)["status"]), 0), same("the fourth", steps0(steps, 3)["status"], int64(abi.StatusBudget)))
		})},
	)
}
