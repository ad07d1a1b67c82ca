// SPDX-License-Identifier: Apache-2.0

package wasmctl

import (
	"bytes"
	"errors"
	"strings"

	"github.com/wasmctl/wasmctl/guest-sdk/go/internal/wire"
)

// Admission is one request to the API server that a Webhook judges. The objects
// are valid until the Webhook's function returns.
type Admission struct {
	// ID is the uid of the request. Webhook is the path of the webhook.
	ID, Webhook string
	Operation   Operation
	// Target is what the webhook selects, and the version of the objects.
	// Requested is what the client sent, which the API server may have
	// converted.
	Target, Requested AdmissionTarget
	// Namespace and Name identify the object. Name is empty if the API server
	// will generate it.
	Namespace, Name string
	// Object is the object after the request; it does not exist for a DELETE.
	// Old is the object before the request; it does not exist for a CREATE.
	// Neither has managedFields. Options are the options of the request, for
	// example CreateOptions, and may not exist.
	Object, Old, Options Object
	// User is the sender of the request.
	User User
	// DryRun means that the request will not be stored.
	DryRun bool
}

// AdmissionTarget is a kind and its resource.
type AdmissionTarget struct {
	Group, Version, Kind string
	// Resource is the plural, "deployments"; Subresource, "scale", may be
	// empty.
	Resource, Subresource string
}

// User is the sender of a request to the API server.
type User struct {
	Name, UID string
	Groups    []string
	Extra     map[string][]string
}

// Verdict is the answer to an Admission. The zero Verdict allows the request.
type Verdict struct {
	// Denied denies the request if it is not nil.
	Denied *Denial
	// Object, from Webhook.Default only, is the complete object as it should
	// be: a *Builder, a Map, a struct or an Object. The host makes the patch.
	// If it is nil, the object is unchanged.
	Object any
	// Base is the object of the request as the module has read it: a value of
	// the type of Object. If it is given, the host changes only the fields in
	// which Object differs from Base, so fields that the type lacks stay. See
	// Defaulter.
	Base any
	// Warnings are shown to the client, at most 50.
	Warnings []string
	// Audit are annotations for the audit log, at most 20.
	Audit map[string]string
	// Err means that the module cannot decide. Then FailurePolicy decides.
	Err error
}

// Denial refuses a request. It has fields of a Kubernetes Status.
type Denial struct {
	// Code is the HTTP status, 400 to 599; 403 if it is 0.
	Code int
	// Reason is a CamelCase word, "Invalid". It may be empty.
	Reason  string
	Message string
	// Causes are the reasons, at most 200.
	Causes []Cause
}

// Cause is one reason of a Denial.
type Cause struct {
	// Type is a CamelCase word, "FieldValueInvalid". Field is the path of the
	// field, "spec.replicas". Both may be empty.
	Type, Field string
	Message     string
}

// Allow returns a Verdict that allows the request.
func Allow(warnings ...string) Verdict { return Verdict{Warnings: warnings} }

// Deny returns a Verdict that denies the request with status 403.
func Deny(message string) Verdict { return Verdict{Denied: &Denial{Message: message}} }

// Invalid returns a Verdict that denies the request with status 422, as the API
// server does for an object that its schema does not allow. Without causes, it
// allows the request.
func Invalid(causes ...Cause) Verdict {
	if len(causes) == 0 {
		return Verdict{}
	}
	texts := make([]string, len(causes))
	for i, c := range causes {
		if texts[i] = c.Message; c.Field != "" {
			texts[i] = c.Field + ": " + c.Message
		}
	}
	message := texts[0]
	if len(texts) > 1 {
		message = "[" + strings.Join(texts, ", ") + "]"
	}
	return Verdict{Denied: &Denial{Code: 422, Reason: "Invalid", Message: message, Causes: causes}}
}

// Defaulted returns a Verdict that replaces the object of the request by
// object.
func Defaulted(object any) Verdict { return Verdict{Object: object} }

// Defaulter returns a function for Webhook.Default that works on a struct. f
// changes obj in place. Fields of the object that T lacks stay.
func Defaulter[T any](f func(ctx *Context, a Admission, obj *T) Verdict) func(*Context, Admission) Verdict {
	return func(ctx *Context, a Admission) Verdict {
		obj, err := Decode[T](a.Object.Value)
		if err != nil {
			return Verdict{Err: Permanent(err)}
		}
		base, err := NewValue(&obj)
		if err != nil {
			return Verdict{Err: Permanent(err)}
		}
		v := f(ctx, a, &obj)
		if v.Denied != nil || v.Err != nil || v.Object != nil {
			return v
		}
		now, err := NewValue(&obj)
		if err != nil {
			return Verdict{Err: Permanent(err)}
		}
		if !bytes.Equal(base.view, now.view) {
			v.Object, v.Base = now, base
		}
		return v
	}
}

var (
	errNoWebhook  = errors.New("module: no webhook has the path of the request")
	errOnlyObject = errors.New("verdict: an Object is for Webhook.Default, and for a request with an object")
)

// judge runs the entry calls validate and default.
func (g *guest) judge(dst []byte) []byte {
	w := g.reconciler.Manifest.webhook(Value{g.ctx.in.judged.webhook}.String())
	if w == nil {
		return appendFailed(dst, Permanent(errNoWebhook))
	}
	a := g.admission()
	run := w.Validate
	if w.Default != nil {
		run = w.Default
	}
	v := run(&g.ctx, a)
	if v.Object != nil && (w.Default == nil || !a.Object.Exists()) {
		v.Err = Permanent(errOnlyObject)
	}
	out, err := v.append(dst)
	return g.bounded(dst, out, err)
}

// admission decodes the Admission of the call.
func (g *guest) admission() Admission {
	in := &g.ctx.in
	a := Admission{
		Object: g.object(), Old: Object{Value: Value{in.old}}, Options: Object{Value: Value{in.judged.options}}, DryRun: in.dryRun,
		ID: g.ctx.ID(), Webhook: Value{in.judged.webhook}.String(), Operation: Operation(Value{in.judged.operation}.String()),
	}
	readTexts(in.key, "namespace name", &a.Namespace, &a.Name)
	readTexts(in.judged.user, "username uid", &a.User.Name, &a.User.UID)
	for i, t := range [...]*AdmissionTarget{&a.Target, &a.Requested} {
		view := [...][]byte{in.judged.target, in.judged.requested}[i]
		readTexts(view, "group version kind resource subresource", &t.Group, &t.Version, &t.Kind, &t.Resource, &t.Subresource)
	}
	user := Value{in.judged.user}
	a.User.Groups = user.Strings("groups")
	for it := wire.Walk(user.At("extra").view); it.Next(); {
		if a.User.Extra == nil {
			a.User.Extra = map[string][]string{}
		}
		a.User.Extra[string(it.Key)] = Value{it.Value}.Strings()
	}
	return a
}

// readTexts reads the strings under some keys of a map, which a space separates.
func readTexts(view []byte, keys string, into ...*string) {
	for _, s := range into {
		var key string
		key, keys, _ = strings.Cut(keys, " ")
		*s = Value{view}.String(key)
	}
}

// append writes the Verdict. It writes nothing for the zero Verdict.
func (v *Verdict) append(dst []byte) ([]byte, error) {
	if v.Err != nil {
		return dst, v.Err
	}
	if v.Denied == nil && v.Object == nil && len(v.Warnings) == 0 && len(v.Audit) == 0 {
		return dst, nil
	}
	b := wire.NewBuilder(dst)
	object, base := v.Object, v.Base
	if v.Denied != nil {
		b.Map("denied", v.Denied.append)
		object = nil
	}
	if object == nil {
		base = nil
	}
	for _, f := range [...]struct {
		key   string
		value any
		given bool
	}{
		{"object", object, object != nil},
		{"base", base, base != nil},
		{"warnings", v.Warnings, len(v.Warnings) > 0},
		{"audit", v.Audit, len(v.Audit) > 0},
	} {
		if !f.given {
			continue
		}
		if err := b.Value(f.key, f.value); err != nil {
			return dst, WithReason(Permanent(&located{"verdict: " + f.key, err}), "BadResult")
		}
	}
	return b.End(), nil
}

func (d *Denial) append(b *wire.Builder) {
	b.Int("code", int64(d.Code))
	b.String("reason", clip(d.Reason))
	b.Text("message", clip(d.Message))
	if len(d.Causes) == 0 {
		return
	}
	causes := wire.AppendArray(nil, len(d.Causes))
	for i := range d.Causes {
		c := &d.Causes[i]
		m := wire.NewBuilder(causes)
		m.String("type", clip(c.Type))
		m.String("field", clip(c.Field))
		m.Text("message", clip(c.Message))
		causes = m.End()
	}
	b.Raw("causes", causes)
}
