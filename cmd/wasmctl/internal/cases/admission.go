// SPDX-License-Identifier: Apache-2.0

package cases

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"net/http"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/host/kubeapi/kinds"
	"github.com/wasmctl/wasmctl/runtime/webhook"
)

// Admission is a request to the API server. The webhooks that select it judge it in the order of
// the API server: those that set defaults, then those that validate the result.
type Admission struct {
	// Webhook is the path of the only webhook to call. If empty, their rules decide.
	Webhook string `yaml:"webhook"`
	// Operation is CREATE, UPDATE or DELETE. If empty, it follows from the objects. Object and Old
	// are the object after and before the request.
	Operation string `yaml:"operation"`
	Object    Object `yaml:"object"`
	Old       Object `yaml:"old"`
	// User is the sender.
	User   User `yaml:"user"`
	DryRun bool `yaml:"dryRun"`
}

// User is the sender of a request.
type User struct {
	Username string   `yaml:"username"`
	Groups   []string `yaml:"groups"`
}

// Conversion is an object to convert to the apiVersion To.
type Conversion struct {
	To     string `yaml:"to"`
	Object Object `yaml:"object"`
}

// Denied is a denial. In an expectation, an empty field matches anything, and Message is a part of
// the text. Causes have the form "spec.size: message".
type Denied struct {
	Code    int      `yaml:"code,omitempty"`
	Reason  string   `yaml:"reason,omitempty"`
	Message string   `yaml:"message,omitempty"`
	Causes  []string `yaml:"causes,omitempty"`
}

// admission calls the webhooks that select the request.
func (b *bench) admission(ctx context.Context) (*Expect, error) {
	request, err := b.request()
	if err != nil {
		return nil, fmt.Errorf("admission: %w", err)
	}
	seen, called, m := &Expect{Action: noRun}, false, b.module.Manifest()
	now := map[string]any(b.c.Admission.Object)
	for _, t := range []abi.WebhookType{abi.WebhookDefault, abi.WebhookValidate} {
		for i := range m.Webhooks {
			w := &m.Webhooks[i]
			if path := b.c.Admission.Webhook; w.Type != t || path != "" && path != w.Path || path == "" && !w.Selects(request) {
				continue
			}
			called, request.Webhook = true, w.Path
			res, err := b.module.Admit(ctx, t, request)
			if err != nil {
				seen.Error = errorOf(err)
				return seen, nil
			}
			seen.Warnings = append(seen.Warnings, res.Warnings...)
			if res.Denied != nil {
				seen.Denied = deniedOf(res.Denied)
				return seen, nil
			}
			if res.Object == nil {
				continue
			}
			if now, err = applied(now, &res); err != nil {
				return nil, fmt.Errorf("admission: %s: %w", w.Path, err)
			}
			if request.Object, err = abi.AppendValue(nil, now); err != nil {
				return nil, err
			}
		}
	}
	if !called {
		return nil, fmt.Errorf("admission: no webhook of the module selects %s of %s", request.Operation, request.Target.Resource)
	}
	seen.Changes = objectDiff(b.c.Admission.Object, now)
	return seen, nil
}

// request returns the request of the case.
func (b *bench) request() (*abi.Admission, error) {
	a := b.c.Admission
	content, operation := a.Object, abi.OperationUpdate
	switch {
	case a.Object == nil && a.Old == nil:
		return nil, fmt.Errorf("object or old is needed")
	case a.Object == nil:
		content, operation = a.Old, abi.OperationDelete
	case a.Old == nil:
		operation = abi.OperationCreate
	}
	o := unstructured.Unstructured{Object: content}
	gvk := o.GroupVersionKind()
	at := abi.Target{Group: gvk.Group, Version: gvk.Version, Kind: gvk.Kind, Resource: kinds.Plural(gvk.Kind)}
	if kind, ok := b.w.server.Kind(gvk); ok {
		at.Resource = kind.Resource
	}
	request := &abi.Admission{
		ID: runID, Controller: b.w.name(), Operation: cmp.Or(abi.Operation(a.Operation), operation), Target: at, Requested: at,
		Key: abi.Key{Namespace: o.GetNamespace(), Name: o.GetName()}, User: abi.User{Name: cmp.Or(a.User.Username, "test"), Groups: a.User.Groups}, DryRun: a.DryRun,
	}
	for _, state := range []struct {
		object Object
		to     *[]byte
	}{{a.Object, &request.Object}, {a.Old, &request.Old}} {
		if state.object == nil {
			continue
		}
		var err error
		if *state.to, err = abi.AppendValue(nil, map[string]any(state.object)); err != nil {
			return nil, err
		}
	}
	return request, nil
}

// applied returns the object of a request after the verdict, as the API server has it then.
func applied(request map[string]any, res *abi.AdmissionResult) (map[string]any, error) {
	var base map[string]any
	object, err := abi.DecodeObject(res.Object)
	if err == nil && res.Base != nil {
		base, err = abi.DecodeObject(res.Base)
	}
	if err != nil {
		return nil, err
	}
	return webhook.Apply(request, base, object), nil
}

func deniedOf(d *abi.Denial) *Denied {
	out := &Denied{Code: cmp.Or(d.Code, http.StatusForbidden), Reason: d.Reason, Message: d.Message}
	for _, c := range d.Causes {
		text := c.Message
		if c.Field != "" {
			text = c.Field + ": " + text
		}
		out.Causes = append(out.Causes, text)
	}
	return out
}

// conversion converts the object of the case. As at the API server, only labels and annotations of
// the metadata change.
func (b *bench) conversion(ctx context.Context) (*Expect, error) {
	c, seen := b.c.Convert, &Expect{Action: noRun}
	object, err := abi.AppendValue(nil, map[string]any(c.Object))
	if err != nil {
		return nil, fmt.Errorf("convert: %w", err)
	}
	got, err := b.module.Convert(ctx, &abi.Conversion{ID: runID, Controller: b.w.name(), To: c.To, Objects: [][]byte{object}})
	if err != nil {
		seen.Error = errorOf(err)
		return seen, nil
	}
	converted, err := abi.DecodeObject(got[0])
	if err != nil {
		return nil, fmt.Errorf("convert: %w", err)
	}
	if converted["apiVersion"] != c.To || converted["kind"] != c.Object["kind"] {
		seen.Error = &Error{Kind: string(abi.FailureOutput), Message: fmt.Sprintf("the result is %v %v, want %s", converted["apiVersion"], converted["kind"], c.To)}
		return seen, nil
	}
	was, _ := c.Object["metadata"].(map[string]any)
	is, _ := converted["metadata"].(map[string]any)
	metadata := maps.Clone(was)
	for _, key := range []string{"labels", "annotations"} {
		if delete(metadata, key); is[key] != nil {
			metadata[key] = is[key]
		}
	}
	converted["metadata"] = metadata
	seen.Changes = objectDiff(c.Object, converted)
	return seen, nil
}
