// SPDX-License-Identifier: Apache-2.0

package conformance

import (
	"context"
	"errors"
	"fmt"

	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/host"
)

// probe drives the guest for a case.
type probe struct {
	ctx   context.Context //nolint:containedctx // it lives as long as the case
	guest *Guest
	rig   *rig // that of the full host, unless onHost or with has replaced it
}

// key identifies the object of a case.
var key = abi.Key{Namespace: "default", Name: "case"}

// caseObject returns the object with a spec.
func caseObject(spec any) object {
	return object{
		"apiVersion": caseGroup + "/v1", "kind": caseKind,
		"metadata": object{
			"name": key.Name, "namespace": key.Namespace, "uid": "5c2f1f3e-8f0c-4b0e-9a43-0f1f6f2d7c11",
			"resourceVersion": "4711", "generation": 3, "labels": object{caseGroup + "/run": "yes", "größe": "klein"},
		},
		"spec": spec,
	}
}

// do returns a step.
func do(name string, args ...any) object {
	s := object{"do": name}
	for i := 0; i < len(args); i += 2 {
		s[args[i].(string)] = args[i+1] //nolint:forcetypeassert // a mistake in a case
	}
	return s
}

// ask returns a request with the object.
func ask(obj any) *abi.Request {
	r := &abi.Request{ID: "run-1", Controller: "conformance", Attempt: 1, Reason: abi.Reason{Type: abi.ReasonListed}, Key: key}
	if obj != nil {
		r.Object = encode(obj)
	}
	return r
}

// ran is the result of a run.
type ran struct {
	result abi.Result
	steps  []object
}

// run makes the guest reconcile or finalize, and reads its report.
func (p *probe) run(entry string, req *abi.Request) (ran, error) {
	guest, release, err := p.rig.module.Acquire(p.ctx)
	if err != nil {
		return ran{}, err
	}
	defer release()
	call := guest.Reconcile
	if entry == abi.ExportFinalize {
		call = guest.Finalize
	}
	res, err := call(p.ctx, req)
	if err != nil {
		return ran{}, err
	}
	if res.Declared == nil || res.Declared.Status == nil {
		return ran{}, fmt.Errorf("the result has no status, so there is no report: %s", short(res.Error))
	}
	return p.readReport(entry, res)
}

func (p *probe) readReport(entry string, res abi.Result) (ran, error) {
	report, err := abi.DecodeObject(res.Declared.Status)
	if err != nil {
		return ran{}, fmt.Errorf("report: %w", err)
	}
	if err := same("report: entry", report["entry"], entry); err != nil {
		return ran{}, err
	}
	if len(res.Unknown) > 0 {
		return ran{}, fmt.Errorf("the result has unknown keys: %v", res.Unknown)
	}
	steps, err := readSteps(report)
	return ran{res, steps}, err
}

// readSteps returns the reports of the steps.
func readSteps(report object) ([]object, error) {
	var out []object
	reports, _ := report["steps"].(list)
	for i, s := range reports {
		m, ok := s.(object)
		if !ok {
			return nil, fmt.Errorf("report: step %d: got %s, want a map", i, short(s))
		}
		if what, ok := m["lacks"].(string); ok {
			return nil, &lackError{what}
		}
		if why, ok := m["failed"]; ok {
			return nil, fmt.Errorf("step %d: %v", i, why)
		}
		out = append(out, m)
	}
	return out, nil
}

// steps makes the guest carry out steps in reconcile, and returns a report for each.
func (p *probe) steps(steps ...any) ([]object, error) {
	r, err := p.run(abi.ExportReconcile, ask(caseObject(object{"steps": append(list{}, steps...)})))
	if err == nil && len(r.steps) != len(steps) {
		err = fmt.Errorf("%d steps were asked for, %d are reported", len(steps), len(r.steps))
	}
	return r.steps, err
}

// step is steps for a single step.
func (p *probe) step(step object) (object, error) {
	steps, err := p.steps(step)
	if err != nil {
		return nil, err
	}
	return steps[0], nil
}

// reports returns a check that a step reports a value under a name.
func reports(step object, name string, want any) func(*probe) error {
	return func(p *probe) error {
		s, err := p.step(step)
		return first(err, same(name, s[name], want))
	}
}

// answered returns a check that a step with an operation reports exactly this.
func answered(step, want object) func(*probe) error {
	return func(p *probe) error {
		s, err := p.step(step)
		return first(err, alike("answer", s, want))
	}
}

// refuses returns a check of the status that a step reports.
func refuses(step object, status abi.Status) func(*probe) error {
	return reports(step, "status", int64(status))
}

// onHost returns a check in a host of another kind.
func onHost(kind rigKind, check func(*probe) error) func(*probe) error {
	return func(p *probe) error {
		r, err := p.guest.rig(p.ctx, kind)
		if err != nil {
			return err
		}
		r.reset()
		p.rig = r
		return check(p)
	}
}

// then makes the guest return the result in spec.then.
func (p *probe) then(entry string, then any) (abi.Result, error) {
	r, err := p.run(entry, ask(caseObject(object{"then": then})))
	return r.result, err
}

// reported returns the last report of an entry in the guest's log.
func (p *probe) reported(entry string) (report object, steps []object, err error) {
	for _, l := range p.rig.log.take() {
		if r, ok := l.attrs["report"].(object); ok && l.msg == "report" && r["entry"] == entry {
			report = r
		}
	}
	if report == nil {
		return nil, nil, fmt.Errorf("log: the guest reported nothing about %s", entry)
	}
	steps, err = readSteps(report)
	return report, steps, err
}

// with loads the guest again, for a case that changes its host.
func (p *probe) with(cfg host.Config, f func() error) error {
	r, err := p.guest.openWith(p.ctx, cfg, true)
	if err != nil {
		return err
	}
	before := p.rig
	p.rig = r
	err = f()
	p.rig = before
	return errors.Join(err, r.module.Close(p.ctx))
}

// counted returns err, or an error about a wrong number of steps.
func counted(got, want int, err error) error {
	if err == nil && got != want {
		err = fmt.Errorf("got %d steps, want %d", got, want)
	}
	return err
}

// instead describes the result in the place of an expected error.
func instead(err error, want string) error {
	if err == nil {
		return fmt.Errorf("it went well, want %s", want)
	}
	return fmt.Errorf("got %w, want %s", err, want)
}

// first returns the first error.
func first(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}
