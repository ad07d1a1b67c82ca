// SPDX-License-Identifier: Apache-2.0

package main

import wasmctl "github.com/wasmctl/wasmctl/guest-sdk/go"

// judge returns the function of a webhook, which does what spec.validate or
// spec.default asks for.
func judge(entry string) func(*wasmctl.Context, wasmctl.Admission) wasmctl.Verdict {
	return func(ctx *wasmctl.Context, a wasmctl.Admission) wasmctl.Verdict {
		obj := a.Object
		if !obj.Exists() {
			obj = a.Old
		}
		do := obj.At("spec", entry)
		tell(ctx, wasmctl.Map{
			"entry": entry, "id": a.ID, "controller": ctx.Controller(), "webhook": a.Webhook, "operation": string(a.Operation),
			"target": target(a.Target), "requested": target(a.Requested), "key": wasmctl.ObjectKey{Namespace: a.Namespace, Name: a.Name},
			"new": a.Object.Exists(), "old": a.Old.Exists(), "options": a.Options, "dry_run": a.DryRun, "user": user(a.User),
			"steps": steps(ctx, obj, do.At("steps")),
		})
		return verdict(do)
	}
}

func target(t wasmctl.AdmissionTarget) wasmctl.Map {
	return wasmctl.Map{"group": t.Group, "version": t.Version, "kind": t.Kind, "resource": t.Resource, "subresource": t.Subresource}
}

func user(u wasmctl.User) wasmctl.Map {
	return wasmctl.Map{"username": u.Name, "uid": u.UID, "groups": u.Groups, "extra": u.Extra}
}

func verdict(do wasmctl.Value) wasmctl.Verdict {
	v := wasmctl.Verdict{Warnings: do.Strings("warnings"), Audit: do.StringMap("audit")}
	if do.Exists("error") {
		v.Err = failure(do.At("error"))
	}
	if do.Exists("object") {
		v.Object = do.At("object")
	}
	if do.Exists("base") {
		v.Base = do.At("base")
	}
	if d := do.At("denied"); d.Exists() {
		v.Denied = &wasmctl.Denial{Code: int(d.Int("code")), Reason: d.String("reason"), Message: d.String("message")}
		for _, c := range d.Elements("causes") {
			v.Denied.Causes = append(v.Denied.Causes, wasmctl.Cause{Type: c.String("type"), Field: c.String("field"), Message: c.String("message")})
		}
	}
	return v
}

func convert(ctx *wasmctl.Context, obj wasmctl.Object, to string) (any, error) {
	do := obj.At("spec", "convert")
	tell(ctx, wasmctl.Map{
		"entry": "convert", "to": to, "from": obj.APIVersion(), "key": obj.Key(), "steps": steps(ctx, obj, do.At("steps")),
	})
	if do.Exists("error") {
		return nil, failure(do.At("error"))
	}
	return obj, obj.Set(to, "apiVersion")
}
