// SPDX-License-Identifier: Apache-2.0

package guesttest

import (
	"errors"
	"slices"

	wasmctl "github.com/wasmctl/wasmctl/guest-sdk/go"
	"github.com/wasmctl/wasmctl/guest-sdk/go/internal/entry"
)

// Validate calls Webhook.Validate of the webhook with the path a.Webhook, or of the only webhook
// with a Validate. It fills in missing fields of a: Operation from the presence of Object and Old,
// Target, Namespace and Name from the object.
func (h *Host) Validate(r wasmctl.Reconciler, a wasmctl.Admission) wasmctl.Verdict {
	h.t.Helper()
	return h.admit(r, entry.Validate, a)
}

// Default calls Webhook.Default; see Validate. If the Verdict has an Object, it is a wasmctl.Object,
// and so is Base.
func (h *Host) Default(r wasmctl.Reconciler, a wasmctl.Admission) wasmctl.Verdict {
	h.t.Helper()
	return h.admit(r, entry.Default, a)
}

// Convert converts an object to another version.
func (h *Host) Convert(r wasmctl.Reconciler, obj any, to string) (wasmctl.Object, error) {
	h.t.Helper()
	h.manifest = r.Manifest
	out := h.answer(r, entry.Convert, map[string]any{"v": 1, "id": "convert", "controller": r.Manifest.Name, "to": to, "objects": []any{obj}})
	if message := out.String("error", "message"); out.Exists("error") {
		return wasmctl.Object{}, errors.New(message)
	}
	for _, o := range out.Elements("objects") {
		return wasmctl.Object{Value: o}, nil
	}
	return wasmctl.Object{}, errors.New("convert: no object")
}

func (h *Host) admit(r wasmctl.Reconciler, name string, a wasmctl.Admission) wasmctl.Verdict {
	h.t.Helper()
	h.manifest = r.Manifest
	out := h.answer(r, name, h.admission(r, name, a))
	v := wasmctl.Verdict{Warnings: out.Strings("warnings"), Audit: out.StringMap("audit")}
	if out.Exists("error") {
		v.Err = errors.New(out.String("error", "message"))
	}
	if out.Exists("object") {
		v.Object = wasmctl.Object{Value: out.At("object")}
	}
	if out.Exists("base") {
		v.Base = wasmctl.Object{Value: out.At("base")}
	}
	if d := out.At("denied"); d.Exists() {
		v.Denied = &wasmctl.Denial{Code: int(d.Int("code")), Reason: d.String("reason"), Message: d.String("message")}
		for _, c := range d.Elements("causes") {
			v.Denied.Causes = append(v.Denied.Causes, wasmctl.Cause{Type: c.String("type"), Field: c.String("field"), Message: c.String("message")})
		}
	}
	return v
}

// answer makes one entry call and returns a copy of its result.
func (h *Host) answer(r wasmctl.Reconciler, name string, msg map[string]any) wasmctl.Value {
	h.t.Helper()
	out, err := decodeMap(h.invoke(r, name, msg))
	if err != nil {
		h.t.Fatalf("guesttest: %s: %v", name, err)
	}
	v, err := wasmctl.NewValue(out)
	if err != nil {
		h.t.Fatalf("guesttest: %s: %v", name, err)
	}
	return v
}

// admission completes an Admission, and returns its message.
func (h *Host) admission(r wasmctl.Reconciler, name string, a wasmctl.Admission) map[string]any {
	obj := a.Object
	if !obj.Exists() {
		obj = a.Old
	}
	if a.Operation == "" {
		switch {
		case !a.Old.Exists():
			a.Operation = wasmctl.OperationCreate
		case !a.Object.Exists():
			a.Operation = wasmctl.OperationDelete
		default:
			a.Operation = wasmctl.OperationUpdate
		}
	}
	if a.Target.Kind == "" {
		at := idOfRef(obj.Ref())
		a.Target.Group, a.Target.Kind, a.Target.Resource = at.group, at.kind, wasmctl.Plural(at.kind)
		_, a.Target.Version = groupVersion(obj.APIVersion())
	}
	if a.Requested.Kind == "" {
		a.Requested = a.Target
	}
	if a.Name == "" {
		a.Namespace, a.Name = obj.Namespace(), obj.Name()
	}
	if a.Webhook == "" {
		a.Webhook = h.onlyWebhook(r, name)
	}
	msg := map[string]any{
		"v": 1, "id": "admission", "controller": r.Manifest.Name, "webhook": a.Webhook, "operation": string(a.Operation),
		"target": targetMessage(a.Target), "requested": targetMessage(a.Requested),
		"key":     wasmctl.ObjectKey{Namespace: a.Namespace, Name: a.Name},
		"user":    map[string]any{"username": a.User.Name, "uid": a.User.UID, "groups": a.User.Groups, "extra": a.User.Extra},
		"dry_run": a.DryRun || h.DryRun, "config_gen": h.configGen, "caps": caps,
	}
	return withObject(withObject(withObject(msg, "options", a.Options), "old", a.Old), "object", a.Object)
}

func targetMessage(t wasmctl.AdmissionTarget) map[string]any {
	return map[string]any{"group": t.Group, "version": t.Version, "kind": t.Kind, "resource": t.Resource, "subresource": t.Subresource}
}

// onlyWebhook returns the path of the only webhook of a type.
func (h *Host) onlyWebhook(r wasmctl.Reconciler, typ string) string {
	h.t.Helper()
	manifest, err := Manifest(r)
	if err != nil {
		h.t.Fatal(err)
	}
	var paths []string
	for _, w := range manifest.Elements("webhooks") {
		if w.String("type") == typ {
			paths = append(paths, w.String("path"))
		}
	}
	if len(paths) != 1 {
		slices.Sort(paths)
		h.t.Fatalf("guesttest: %s: %d webhooks have this type; choose one by Admission.Webhook: %q", typ, len(paths), paths)
	}
	return paths[0]
}
