// SPDX-License-Identifier: Apache-2.0

package validate

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/host/kubeapi/kinds"
)

// webhooks calls validate and default for objects that the rules of the webhooks select.
func (e *exam) webhooks(ctx context.Context) {
	for _, t := range []abi.WebhookType{abi.WebhookDefault, abi.WebhookValidate} {
		if e.module.HasHook((&abi.Webhook{Type: t}).Export()) {
			e.judges(ctx, t)
		}
	}
}

// judges checks all webhooks of a type. The first fault ends the checks of that type.
func (e *exam) judges(ctx context.Context, t abi.WebhookType) {
	j := judging{exam: e, tried: map[string]bool{}}
	var untried []string
	for i := range e.module.Manifest().Webhooks {
		w := &e.module.Manifest().Webhooks[i]
		if w.Type != t {
			continue
		}
		requests := e.requests(w)
		if len(requests) == 0 {
			untried = append(untried, w.Path)
		}
		for _, a := range requests {
			if !j.judge(ctx, w, a) || ctx.Err() != nil {
				return
			}
		}
	}
	found := fmt.Sprintf("of %d requests it allows %d, denies %d, changes %d", j.requests, j.requests-j.denied-j.undecided, j.denied, j.changed)
	switch id := string(t); {
	case j.undecided > 0:
		e.add(id, Warn, found+fmt.Sprintf(", and cannot decide about %d: %s", j.undecided, j.problem), "the failure policy decides about these requests: deny an object that is invalid")
	case len(untried) > 0:
		e.add(id, Warn, "not tried: "+strings.Join(untried, ", "), "give objects of their resources with --object; the file may have several, and CustomResourceDefinitions")
	default:
		e.ok(id, "%s", found)
		for _, property := range slices.Sorted(maps.Keys(j.tried)) {
			e.ok(id+"."+property, "%s", properties[property])
		}
	}
}

// properties describes the checks of each verdict, if they succeed.
var properties = map[string]string{
	"again":  "answers the same, and changes nothing in its own results",
	"valid":  "no object that validate allows becomes invalid",
	"fields": "unknown fields stay",
}

// judging counts the verdicts of the webhooks of one type.
type judging struct {
	exam                                 *exam
	requests, denied, undecided, changed int
	problem                              string
	tried                                map[string]bool // keys of properties
}

// judge checks the verdict about one request, and reports whether it found no fault.
func (j *judging) judge(ctx context.Context, w *abi.Webhook, a *abi.Admission) bool {
	j.requests++
	fault := func(check string, err error, found, next string) bool {
		if err != nil {
			found, next = oneLine(err), nextOf(err)
		}
		j.exam.add(strings.TrimSuffix(string(w.Type)+"."+check, "."), Fail, fmt.Sprintf("%s, %s of %s: %s", w.Path, a.Operation, a.Target.Kind, found), next)
		return false
	}
	res, err := j.exam.module.Admit(ctx, w.Type, a)
	switch {
	case broke(err):
		return fault("", err, "", "")
	case err != nil:
		j.undecided, j.problem = j.undecided+1, clip(err.Error())
		return true
	case res.Denied != nil:
		j.denied++
	}
	j.tried["again"] = true
	second, err := j.exam.module.Admit(ctx, w.Type, a)
	if err != nil || !bytes.Equal(verdictText(&res), verdictText(&second)) {
		return fault("again", err, "another answer to the same request", "a verdict must depend only on the request, the settings and the cache")
	}
	if res.Object == nil {
		return true
	}
	j.changed++
	return j.defaulted(ctx, w, a, &res, fault)
}

// verdictText returns what must not differ between two verdicts about one request.
func verdictText(r *abi.AdmissionResult) []byte {
	out := fmt.Appendf(nil, "%+v %q %q", r.Denied, r.Warnings, r.Audit)
	for _, b := range [][]byte{r.Object, r.Base} {
		if o, err := abi.DecodeObject(b); err == nil {
			out = append(out, encode(o)...) // with sorted keys
		}
	}
	return out
}

// defaulted checks an object that default has changed.
func (j *judging) defaulted(ctx context.Context, w *abi.Webhook, a *abi.Admission, res *abi.AdmissionResult, fault func(check string, err error, found, next string) bool) bool {
	after := *a
	after.Object = res.Object
	again, err := j.exam.module.Admit(ctx, w.Type, &after)
	before := res.Object
	if again.Base != nil {
		before = again.Base
	}
	if err != nil || again.Object != nil && lost(before, again.Object)+lost(again.Object, before) != "" {
		return fault("again", err, "it changes its own result: "+lost(before, again.Object)+lost(again.Object, before), "set only fields that are absent: the API server may call it again")
	}
	if why := j.exam.denies(ctx, a); why == "" {
		j.tried["valid"] = true
		if why = j.exam.denies(ctx, &after); why != "" {
			return fault("valid", nil, "an object that validate allows is denied after it: "+why, "set defaults that validate allows")
		}
	}
	obj, err := abi.DecodeObject(a.Object)
	spec, ok := obj["spec"].(object)
	if err != nil || !ok {
		return true
	}
	const unknown = "validateWasmctlDev"
	spec[unknown] = "x"
	planted := *a
	planted.Object = encode(obj)
	got, err := j.exam.module.Admit(ctx, w.Type, &planted)
	if err != nil || got.Object == nil {
		return true // it may refuse unknown fields
	}
	j.tried["fields"] = true
	has := func(b []byte) bool {
		o, _ := abi.DecodeObject(b)
		spec, _ := o["spec"].(object)
		return spec[unknown] != nil
	}
	if !has(got.Object) && (got.Base == nil || has(got.Base)) {
		return fault("fields", nil, "it deletes a field of the spec that it does not know", "return base, the object as it was read; Defaulter of the SDK does")
	}
	return true
}

// denies returns why validate denies a request, by the webhooks that select its resource. It is empty if it does not.
func (e *exam) denies(ctx context.Context, a *abi.Admission) string {
	for i := range e.module.Manifest().Webhooks {
		w := &e.module.Manifest().Webhooks[i]
		if w.Type != abi.WebhookValidate || !w.Selects(a) {
			continue
		}
		one := *a
		one.Webhook = w.Path
		if res, err := e.module.Admit(ctx, w.Type, &one); err == nil && res.Denied != nil {
			return clip(res.Denied.Message)
		}
	}
	return ""
}

// requests returns requests with all known objects that the rules of a webhook select.
func (e *exam) requests(w *abi.Webhook) []*abi.Admission {
	var out []*abi.Admission
	for _, o := range e.known {
		t := targetOf(o)
		meta, _ := o["metadata"].(object)
		name, _ := meta["name"].(string)
		namespace, _ := meta["namespace"].(string)
		for _, operation := range []abi.Operation{abi.OperationCreate, abi.OperationUpdate, abi.OperationDelete} {
			a := &abi.Admission{
				ID: "validate", Controller: "validate", Webhook: w.Path, Operation: operation, Target: t, Requested: t,
				Key: abi.Key{Namespace: namespace, Name: name}, User: abi.User{Name: "validate"}, Object: encode(o), Old: encode(o),
			}
			if !w.Selects(a) {
				continue
			}
			switch operation {
			case abi.OperationCreate:
				a.Old = nil
			case abi.OperationDelete:
				a.Object = nil
			case abi.OperationUpdate, abi.OperationConnect:
			}
			out = append(out, a)
		}
	}
	return out
}

// targetOf returns the target of requests for an object. Only a cluster knows the resource: it is guessed from the kind.
func targetOf(o object) abi.Target {
	apiVersion, _ := o["apiVersion"].(string)
	kind, _ := o["kind"].(string)
	return abi.Target{Group: groupOf(apiVersion), Version: apiVersion[strings.LastIndexByte(apiVersion, '/')+1:], Kind: kind, Resource: kinds.Plural(kind)}
}
