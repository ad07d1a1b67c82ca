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
	if err == nil && len(out)-len(dst) > wire.MaxBytes {
		err = wire.ErrTooLarge
	}
	if err != nil {
		return appendFailed(dst, WithReason(Permanent(err), "BadResult"))
	}
	return out
}

// admission decodes the Admission of the call.
func (g *guest) admission() Admission {
	in := &g.ctx.in
	key, user := objectKey(in.key), Value{in.judged.user}
	a := Admission{
		ID: g.ctx.ID(), Webhook: Value{in.judged.webhook}.String(), Operation: Operation(Value{in.judged.operation}.String()),
		Target: admissionTarget(in.judged.target), Requested: admissionTarget(in.judged.requested),
		Namespace: key.Namespace, Name: key.Name,
		Object: g.object(), Old: Object{Value: Value{in.old}}, Options: Object{Value: Value{in.judged.options}},
		User:   User{Name: user.String("username"), UID: user.String("uid"), Groups: user.Strings("groups")},
		DryRun: in.dryRun,
	}
	for k, v := range user.Entries("extra") {
		if a.User.Extra == nil {
			a.User.Extra = map[string][]string{}
		}
		a.User.Extra[k] = v.Strings()
	}
	return a
}

func admissionTarget(view []byte) AdmissionTarget {
	v := Value{view}
	return AdmissionTarget{
		Group: v.String("group"), Version: v.String("version"), Kind: v.String("kind"),
		Resource: v.String("resource"), Subresource: v.String("subresource"),
	}
}

// append writes the Verdict. It writes nothing for the zero Verdict.
func (v *Verdict) append(dst []byte) ([]byte, error) {
	b := wire.NewBuilder(dst)
	switch {
	case v.Err != nil:
		return appendFailed(dst, v.Err), nil
	case v.Denied != nil:
		b.Map("denied", v.Denied.append)
	case v.Object != nil:
		if err := b.Value("object", v.Object); err != nil {
			return dst, &encodeError{"verdict: object", err}
		}
		if v.Base == nil {
			break
		}
		if err := b.Value("base", v.Base); err != nil {
			return dst, &encodeError{"verdict: base", err}
		}
	case len(v.Warnings) == 0 && len(v.Audit) == 0:
		return dst, nil
	}
	if len(v.Warnings) > 0 {
		if err := b.Value("warnings", v.Warnings); err != nil {
			return dst, &encodeError{"verdict: warnings", err}
		}
	}
	if len(v.Audit) > 0 {
		if err := b.Value("audit", v.Audit); err != nil {
			return dst, &encodeError{"verdict: audit", err}
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
	for _, c := range d.Causes {
		m := wire.NewBuilder(causes)
		m.String("type", clip(c.Type))
		m.String("field", clip(c.Field))
		m.Text("message", clip(c.Message))
		causes = m.End()
	}
	b.Raw("causes", causes)
}
