package conformance

import (
	"fmt"
	"math"

	"github.com/wasmctl/wasmctl/abi"
)

// statusCases are about what an operation answers when it fails: the guest must
// see the status and go on.
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
		cases = append(cases, Case{fmt.Sprintf("status.unknown.%d", code), 7, fmt.Sprintf("a status that nobody knows, %d, is an error", code), func(p *probe) error {
			p.rig.api.set(abi.Response{Status: code, Body: encode(object{"reason": "New", "message": "m"})})
			s, err := p.step(do("op", "op", "api_get", "request", configMap("a")))
			if err != nil {
				return err
			}
			if code < 0 && s["status"] == int64(abi.StatusInternal) { // as the page has it
				return nil
			}
			return same("status", s["status"], int64(code))
		}})
	}
	for name, body := range map[string][]byte{
		"none": nil, "nil": encode(nil), "empty": encode(object{}), "text": encode("text"), "array": encode(list{1}), "other-types": encode(object{"reason": 1, "message": object{}, "rule": "x"}),
	} {
		cases = append(cases, Case{"status.body." + name, 7, "a status whose body says nothing", func(p *probe) error {
			p.rig.api.set(abi.Response{Status: abi.StatusUnavailable, Body: body}, abi.Response{Status: 500, Body: body})
			step := do("op", "op", "api_get", "request", configMap("a"))
			steps, err := p.steps(step, step)
			return first(err, same("status", steps0(steps, 0)["status"], int64(abi.StatusUnavailable)), same("status", steps0(steps, 1)["status"], 500))
		}})
	}
	sortCases(cases[len(cases)-6:])
	cases = append(cases, deniedCases()...)
	return append(cases, hostStatusCases()...)
}

// metaStatus is the API server's Status.
func metaStatus(code abi.Status) object {
	return object{
		"kind": "Status", "apiVersion": "v1", "metadata": object{}, "status": "Failure", "message": "why: größe", "reason": "Because",
		"details": object{"name": "a", "kind": "configmaps", "retryAfterSeconds": 1}, "code": int(code),
	}
}

func statusCase(id, about string, status abi.Status, body object) Case {
	return Case{"status." + id, 7, about, func(p *probe) error {
		p.rig.api.set(abi.Response{Status: status, Body: encode(body)}, abi.Response{Body: encode(answerObject())})
		step := do("op", "op", "api_get", "request", configMap("a"))
		steps, err := p.steps(step, step)
		if err != nil {
			return err
		}
		return first(
			alike("answer", steps[0], object{"status": int(status), "reason": body["reason"], "message": body["message"]}),
			alike("the answer after it", steps[1], object{"body": answerObject()}),
		)
	}}
}

// deniedCases: each operation may be denied, with the rule that is missing.
func deniedCases() []Case {
	rule := object{"group": "", "resource": "größe", "subresources": list{"status"}, "verbs": list{"get", "*"}, "namespaces": list{"default"}, "names": list{"a"}}
	var cases []Case
	seen := map[abi.Op]bool{}
	for _, r := range operationRequests() {
		if seen[r.op] {
			continue
		}
		seen[r.op] = true
		cases = append(cases, Case{"denied." + string(r.op), 7, string(r.op) + " is denied, and the rule that is missing is read", func(p *probe) error {
			p.rig.api.set(abi.Response{Status: abi.StatusDenied, Body: encode(object{"code": -2, "reason": "Denied", "message": "no", "rule": rule, "new": 1})})
			s, err := p.step(do("op", "op", string(r.op), "request", r.req))
			return first(err, alike("answer", s, object{"status": -2, "reason": "Denied", "message": "no", "rule": rule}))
		}})
	}
	return cases
}

// hostStatusCases are about statuses that the host answers by itself.
func hostStatusCases() []Case {
	var cases []Case
	seen := map[abi.Op]bool{}
	for _, r := range operationRequests() {
		if seen[r.op] {
			continue
		}
		seen[r.op] = true
		cases = append(cases, Case{"old-host." + string(r.op), 9, string(r.op) + " of a host that does not have it is UNSUPPORTED", func(p *probe) error {
			if err := p.on(oldHost); err != nil {
				return err
			}
			s, err := p.step(do("op", "op", string(r.op), "request", r.req))
			return first(err, same("status", s["status"], int64(abi.StatusUnsupported)))
		}})
	}
	return append(
		cases,
		Case{"old-host.caps", 9, "the caps of a host that has little", func(p *probe) error {
			if err := p.on(oldHost); err != nil {
				return err
			}
			s, err := p.step(do("request", "caps", list{"api_get", "declare", "config_get", "map"}))
			return first(err, alike("caps", s["caps"], object{"config_get": true, "map": true}))
		}},
		Case{"budget.spent", 7, "one operation more than a run may ask for is BUDGET", func(p *probe) error {
			if err := p.on(smallHost); err != nil {
				return err
			}
			step := do("op", "op", "api_get", "request", configMap("a"))
			steps, err := p.steps(step, step, step, step)
			if err != nil {
				return err
			}
			return first(same("the third", orZero(steps[2]["status"]), 0), same("the fourth", steps[3]["status"], int64(abi.StatusBudget)))
		}},
	)
}
