// SPDX-License-Identifier: Apache-2.0

package conformance

import (
	"errors"
	"fmt"
	"maps"
	"strings"

	"github.com/wasmctl/wasmctl/abi"
)

// admissionTypes are the types of webhooks, with the paths in the manifest of the kit.
var admissionTypes = map[abi.WebhookType]string{abi.WebhookValidate: "/validate", abi.WebhookDefault: "/mutate"}

// admit returns an update of an object, for a webhook of the type.
func admit(t abi.WebhookType, does object) *abi.Admission {
	at := abi.Target{Group: caseGroup, Version: "v1", Kind: caseKind, Resource: "cases"}
	return &abi.Admission{
		ID: "u-1", Controller: "conformance", Webhook: admissionTypes[t], Operation: abi.OperationUpdate, Target: at, Requested: at, Key: key,
		Object: encode(caseObject(object{string(t): does})), Old: encode(caseObject(object{})), User: abi.User{Name: "ann"},
	}
}

// admissionCases are about validate and default.
func admissionCases() []Case {
	var cases []Case
	for _, t := range []abi.WebhookType{abi.WebhookValidate, abi.WebhookDefault} {
		cases = append(append(cases, verdictCases(t)...), admissionRequestCases(t)...)
		c := func(id string, section int, about string, check func(p *probe) error) {
			cases = append(cases, Case{string(t) + "." + id, section, about, check})
		}
		c("large", 4, "a request with two objects of 1 MiB", func(p *probe) error {
			a := admit(t, object{"warnings": list{"large"}})
			large := caseObject(object{string(t): object{"warnings": list{"large"}}, "pad": strings.Repeat("x", 1<<20)})
			a.Object, a.Old = encode(large), encode(large)
			res, err := p.rig.module.Admit(p.ctx, t, a)
			return first(err, same("warnings", len(res.Warnings), 1))
		})
		c("operations", 5, "config_get and the cache work, nothing else does", func(p *probe) error {
			return p.cacheOnly(string(t), true, func(steps list) error {
				_, err := p.rig.module.Admit(p.ctx, t, admit(t, object{"steps": steps}))
				return err
			})
		})
		c("grown", 9, "a request with unknown keys, in another order", func(p *probe) error { return p.grownAdmission(t) })
		c("trap", 2, "a trap ends the call, and the next one is as if nothing had happened", func(p *probe) error {
			_, err := p.rig.module.Admit(p.ctx, t, admit(t, object{"steps": list{do("trap", "text", "x")}}))
			return first(failedBy(err, abi.FailureTrap), alive(p))
		})
		c("timeout", 2, "a guest that spins runs out of time", onHost(shortHost, func(p *probe) error {
			_, err := p.rig.module.Admit(p.ctx, t, admit(t, object{"steps": list{do("spin")}}))
			return failedBy(err, abi.FailureTimeout)
		}))
	}
	return cases
}

// verdictCases are about the output of validate and default.
func verdictCases(t abi.WebhookType) []Case {
	cause := object{"type": "FieldValueInvalid", "field": "spec.größe", "message": "is odd"}
	denied := object{"code": 422, "reason": "Invalid", "message": "größe: 😀", "causes": list{cause, object{"message": "no owner"}}}
	other := object{"spec": object{"a": int64(1) << 60, "list": list{nil, 1.5, "größe"}}}
	texts := make(list, abi.MaxWarnings)
	for i := range texts {
		texts[i] = fmt.Sprint("warning ", i)
	}
	type verdict struct {
		id, about string
		does      object
	}
	verdicts := []verdict{
		{"allowed", "an empty verdict", object{}},
		{"denied", "a denial with nothing but a message", object{"denied": object{"message": "no"}}},
		{"denied-causes", "a denial with a code, a reason and causes", object{"denied": denied}},
		{"warnings", "50 warnings, and annotations for the audit log", object{"warnings": texts, "audit": object{"größe": "klein", "b": ""}}},
		{"denied-warnings", "a denial with warnings", object{"denied": denied, "warnings": list{"w"}}},
	}
	if t == abi.WebhookDefault {
		verdicts = append(verdicts,
			verdict{"object", "another object", object{"object": other}},
			verdict{"base", "another object, and the one that the guest has read", object{"object": other, "base": object{"spec": object{}}, "warnings": list{"w"}}})
	}
	var cases []Case
	for _, v := range verdicts {
		cases = append(cases, Case{string(t) + "." + v.id, 4, v.about, func(p *probe) error {
			res, err := p.rig.module.Admit(p.ctx, t, admit(t, v.does))
			if err != nil {
				return err
			}
			got, err := verdictMap(&res)
			return first(err, alike("verdict", got, v.does))
		}})
	}
	return append(cases, Case{string(t) + ".error", 4, "an error in the place of a verdict", func(p *probe) error {
		want := abi.ResultError{Class: abi.ErrorPermanent, Message: "größe", Reason: "NotKnown"}
		given := object{"class": string(want.Class), "message": want.Message, "reason": want.Reason}
		_, err := p.rig.module.Admit(p.ctx, t, admit(t, object{"error": given}))
		if e, ok := errors.AsType[*abi.ResultError](err); !ok || *e != want {
			return instead(err, errorText(&want))
		}
		return nil
	}})
}

// verdictMap returns a verdict as it is in a message.
func verdictMap(res *abi.AdmissionResult) (object, error) {
	if len(res.Unknown) > 0 {
		return nil, fmt.Errorf("the verdict has unknown keys: %v", res.Unknown)
	}
	m, audit, warnings := object{}, object{}, list{}
	for k, v := range res.Audit {
		audit[k] = v
	}
	for _, w := range res.Warnings {
		warnings = append(warnings, w)
	}
	m["audit"], m["warnings"] = audit, warnings
	for name, b := range map[string][]byte{"object": res.Object, "base": res.Base} {
		if b == nil {
			continue
		}
		v, err := abi.DecodeObject(b)
		if err != nil {
			return nil, err
		}
		m[name] = v
	}
	if d := res.Denied; d != nil {
		causes := list{}
		for _, c := range d.Causes {
			causes = append(causes, object{"type": c.Type, "field": c.Field, "message": c.Message})
		}
		m["denied"] = object{"code": int64(d.Code), "reason": d.Reason, "message": d.Message, "causes": causes}
	}
	return m, nil
}

// admissionRequestCases are about the guest's view of a request.
func admissionRequestCases(t abi.WebhookType) []Case {
	at := object{"group": caseGroup, "version": "v1", "kind": caseKind, "resource": "cases"}
	update := object{
		"entry": string(t), "id": "u-1", "controller": "conformance", "webhook": admissionTypes[t], "operation": "UPDATE", "target": at, "requested": at,
		"key": object{"namespace": key.Namespace, "name": key.Name}, "new": true, "old": true, "user": object{"username": "ann"},
	}
	c := func(id, about string, change func(a *abi.Admission), other object) Case {
		return Case{string(t) + ".request." + id, 4, about, func(p *probe) error {
			a := admit(t, object{})
			change(a)
			if _, err := p.rig.module.Admit(p.ctx, t, a); err != nil {
				return err
			}
			report, _, err := p.reported(string(t))
			want := maps.Clone(update)
			maps.Copy(want, other)
			return first(err, alike("report", report, want))
		}}
	}
	return []Case{
		c("update", "an update has both objects", func(*abi.Admission) {}, nil),
		c("create", "the object of a create has no name yet", func(a *abi.Admission) {
			a.Operation, a.Old, a.Key.Name = abi.OperationCreate, nil, ""
		}, object{"operation": "CREATE", "old": nil, "key": object{"namespace": key.Namespace}}),
		c("delete", "a delete has only the old object, here of no namespace", func(a *abi.Admission) {
			a.Operation, a.Object, a.Key = abi.OperationDelete, nil, abi.Key{Name: "größe"}
		}, object{"operation": "DELETE", "new": nil, "key": object{"name": "größe"}}),
		c("dry-run", "dry_run and the options are read", func(a *abi.Admission) {
			a.DryRun, a.Options = true, encode(object{"kind": "UpdateOptions", "fieldManager": "größe"})
		}, object{"dry_run": true, "options": object{"kind": "UpdateOptions", "fieldManager": "größe"}}),
		c("requested", "a request that the API server has converted, of a subresource", func(a *abi.Admission) {
			a.Target.Subresource, a.Requested = "status", abi.Target{Group: caseGroup, Version: "v2", Kind: "Scale", Resource: "others", Subresource: "scale"}
		}, object{
			"target":    object{"group": caseGroup, "version": "v1", "kind": caseKind, "resource": "cases", "subresource": "status"},
			"requested": object{"group": caseGroup, "version": "v2", "kind": "Scale", "resource": "others", "subresource": "scale"},
		}),
		c("user", "all of a user", func(a *abi.Admission) {
			a.User = abi.User{Name: "größe", UID: "7", Groups: []string{"dev", "😀"}, Extra: map[string][]string{"scopes": {"a", "b"}}}
		}, object{"user": object{"username": "größe", "uid": "7", "groups": list{"dev", "😀"}, "extra": object{"scopes": list{"a", "b"}}}}),
	}
}

// grownAdmission passes a request that a newer host could send.
func (p *probe) grownAdmission(t abi.WebhookType) error {
	msg := encode(pairs{
		{"weather", object{"object": list{1}}},
		{"object", caseObject(object{string(t): object{"warnings": list{"grown"}}})},
		{"operation", "SUBLIMATE"},
		{"user", object{"username": "ann", "mood": 1}},
		{"webhook", admissionTypes[t]},
		{"target", object{"planet": "x", "kind": caseKind}},
		{"key", object{"cluster": "west", "name": key.Name}},
		{"v", 1},
	})
	_, out, err := p.rig.module.Exchange(p.ctx, string(t), msg)
	if err != nil {
		return err
	}
	res, err := abi.DecodeAdmissionResult(out)
	if err != nil {
		return err
	}
	report, _, err := p.reported(string(t))
	return first(err, same("warnings", len(res.Warnings), 1), same("operation", report["operation"], "SUBLIMATE"))
}
