// SPDX-License-Identifier: Apache-2.0

package wasmctl

import (
	"errors"
	"testing"

	"github.com/wasmctl/wasmctl/guest-sdk/go/internal/wire"
)

type widget struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Spec       struct {
		Size int    `json:"size,omitempty"`
		Tier string `json:"tier,omitempty"`
	} `json:"spec"`
}

// widgets has a webhook of each type and a conversion.
func widgets(judge func(*Context, Admission) Verdict) Manifest {
	return Manifest{
		For: &Watch{Group: "shop.example.com", Version: "v1", Kind: "Widget"},
		Webhooks: []Webhook{
			{Validate: judge},
			{Default: judge},
			{Path: "/pods", Rules: []WebhookRule{{[]string{""}, []string{"v1"}, []string{"pods"}, []Operation{OperationDelete}, ""}}, Validate: judge},
		},
		Conversions: []Conversion{{
			Group: "shop.example.com", Kind: "Widget", Versions: []string{"v1", "v2"},
			Convert: func(_ *Context, o Object, to string) (any, error) {
				if o.Name() == "bad" {
					return nil, errors.New("no way")
				}
				return o, o.Set(to, "apiVersion")
			},
		}},
	}
}

func callWith(t *testing.T, m Manifest, name string, msg Map) Value {
	t.Helper()
	b, err := wire.Append(nil, msg)
	if err != nil {
		t.Fatal(err)
	}
	r := &Reconciler{Manifest: m, Reconcile: func(*Context, Object) (Action, error) { return AwaitChange(), nil }}
	equal(t, r.problem(), "")
	return Value{(&guest{host: &scriptHost{}, reconciler: r}).call(name, b)}
}

func widgetOf(version, name string) Map {
	return Map{
		"apiVersion": "shop.example.com/" + version, "kind": "Widget", "metadata": Map{"name": name, "namespace": "a"},
		"spec": Map{"size": 3, "unknown": "stays"},
	}
}

func TestAdmission_IsReadAndChoosesItsWebhook(t *testing.T) {
	var got Admission
	m := widgets(func(_ *Context, a Admission) Verdict {
		equal(t, []int64{a.Object.Int("spec", "size"), a.Old.Int("spec", "size")}, []int64{3, 3})
		equal(t, a.Options.Kind(), "UpdateOptions")
		a.Object, a.Old, a.Options = Object{}, Object{}, Object{}
		got = a
		return Verdict{Warnings: []string{"slow"}, Audit: map[string]string{"tier": "b"}}
	})
	target := Map{"group": "shop.example.com", "version": "v1", "kind": "Widget", "resource": "widgets", "subresource": "scale"}
	v := callWith(t, m, "validate", Map{
		"v": 1, "id": "u1", "webhook": "/validate-shop-example-com-v1-widget", "operation": "UPDATE", "target": target, "requested": target,
		"key": Map{"namespace": "a", "name": "b"}, "dry_run": true, "object": widgetOf("v1", "b"), "old": widgetOf("v1", "b"),
		"options": Map{"kind": "UpdateOptions"},
		"user":    Map{"username": "ann", "uid": "7", "groups": []string{"dev"}, "extra": Map{"k": []string{"x", "y"}}},
	})
	at := AdmissionTarget{"shop.example.com", "v1", "Widget", "widgets", "scale"}
	equal(t, got, Admission{
		ID: "u1", Webhook: "/validate-shop-example-com-v1-widget", Operation: OperationUpdate, Target: at, Requested: at,
		Namespace: "a", Name: "b", DryRun: true,
		User: User{"ann", "7", []string{"dev"}, map[string][]string{"k": {"x", "y"}}},
	})
	equal(t, []any{v.Strings("warnings"), v.StringMap("audit"), v.Exists("denied")}, []any{[]string{"slow"}, map[string]string{"tier": "b"}, false})
}

func TestVerdict_IsWritten(t *testing.T) {
	spec := func(size int) Map { return Map{"spec": Map{"size": size}} }
	two := Invalid(Cause{Type: "FieldValueInvalid", Field: "spec.size", Message: "is odd"}, Cause{Message: "no"})
	for name, c := range map[string]struct {
		entry   string
		verdict Verdict
		want    any
	}{
		"allowed":    {"validate", Allow(), nil},
		"denied":     {"validate", Deny("no"), Map{"denied": Map{"message": "no"}}},
		"no causes":  {"validate", Invalid(), nil},
		"undecided":  {"default", Verdict{Err: Permanent(errors.New("x"))}, Map{"error": Map{"class": "permanent", "message": "x"}}},
		"defaulted":  {"default", Defaulted(spec(4)), Map{"object": spec(4)}},
		"with base":  {"default", Verdict{Object: spec(4), Base: spec(3)}, Map{"object": spec(4), "base": spec(3)}},
		"both":       {"default", Verdict{Object: spec(4), Denied: &Denial{Code: 409, Message: "no"}}, Map{"denied": Map{"message": "no", "code": 409}}},
		"validating": {"validate", Defaulted(spec(4)), Map{"error": Map{"class": "permanent", "message": errOnlyObject.Error()}}},
		"unsendable": {"default", Defaulted(make(chan int)), Map{"error": Map{"class": "permanent", "reason": "BadResult"}}},
		"causes": {"validate", two, Map{"denied": Map{
			"code": 422, "reason": "Invalid", "message": "[spec.size: is odd, no]",
			"causes": []any{Map{"type": "FieldValueInvalid", "field": "spec.size", "message": "is odd"}, Map{"message": "no"}},
		}}},
	} {
		t.Run(name, func(t *testing.T) {
			path := map[string]string{"validate": "/pods", "default": "/mutate-shop-example-com-v1-widget"}[c.entry]
			m := widgets(func(*Context, Admission) Verdict { return c.verdict })
			v := callWith(t, m, c.entry, Map{"webhook": path, "object": widgetOf("v1", "b")})
			if name == "unsendable" {
				equal(t, v.String("error", "reason"), "BadResult")
			} else if c.want == nil {
				equal(t, len(v.view), 0)
			} else {
				equal(t, Equal(v, c.want), true)
			}
		})
	}
}

func TestDefaulter_KeepsFieldsThatTheTypeLacks(t *testing.T) {
	m := widgets(nil)
	m.Webhooks = []Webhook{{Path: "/d", Default: Defaulter(func(_ *Context, _ Admission, w *widget) Verdict {
		if w.Spec.Tier == "" {
			w.Spec.Tier = "basic"
		}
		return Allow("note")
	})}}
	v := callWith(t, m, "default", Map{"webhook": "/d", "object": widgetOf("v1", "b")})
	equal(t, v.Strings("warnings"), []string{"note"})
	equal(t, []any{v.String("object", "spec", "tier"), v.Int("base", "spec", "size"), v.Exists("base", "spec", "tier")}, []any{"basic", int64(3), false})
	done := widgetOf("v1", "b")
	done["spec"] = Map{"tier": "basic"}
	v = callWith(t, m, "default", Map{"webhook": "/d", "object": done})
	equal(t, v.Exists("object"), false)
	v = callWith(t, m, "default", Map{"webhook": "/d", "object": Map{"spec": 7}})
	equal(t, v.String("error", "class"), "permanent")
}

func TestConvert_ObjectsStayInTheirOrder(t *testing.T) {
	m := widgets(func(*Context, Admission) Verdict { return Verdict{} })
	call := func(objects ...Map) Value {
		return callWith(t, m, "convert", Map{"to": "shop.example.com/v2", "objects": objects})
	}
	var got []string
	for _, o := range call(widgetOf("v1", "a"), widgetOf("v2", "b"), widgetOf("v1", "c")).Elements("objects") {
		got = append(got, o.String("apiVersion")+" "+o.String("metadata", "name"))
	}
	equal(t, got, []string{"shop.example.com/v2 a", "shop.example.com/v2 b", "shop.example.com/v2 c"})
	equal(t, call(widgetOf("v1", "a"), widgetOf("v1", "bad")).String("error", "message"), "Widget[a/bad]: no way")
	equal(t, call(Map{"apiVersion": "x/v1", "kind": "Widget"}).String("error", "message"), "Widget[]: "+errNoConversion.Error())
}

func TestManifest_WebhooksAreDescribedWithDefaults(t *testing.T) {
	judge := func(*Context, Admission) Verdict { return Verdict{} }
	r := &Reconciler{Manifest: widgets(judge)}
	m := Value{describe(r)}
	equal(t, m.Strings("hooks"), []string{"validate", "default", "convert"})
	var got []string
	for _, w := range m.Elements("webhooks") {
		for _, r := range w.Elements("rules") {
			got = append(got, w.String("type")+" "+w.String("path")+" "+r.Strings("resources")[0]+" "+r.Strings("operations")[0])
		}
	}
	equal(t, got, []string{
		"validate /validate-shop-example-com-v1-widget widgets CREATE", "default /mutate-shop-example-com-v1-widget widgets CREATE",
		"validate /pods pods DELETE",
	})
	for want, bad := range map[string]Manifest{
		"a webhook needs a Path, or Manifest.For with a Version": {For: &Watch{Kind: "Pod"}, Webhooks: []Webhook{{Validate: judge}}},
		"the webhook /a needs one of Validate and Default":       {Webhooks: []Webhook{{Path: "/a"}}},
		"two webhooks have the path /a":                          {Webhooks: []Webhook{{Path: "/a", Validate: judge}, {Path: "/a", Default: judge}}},
		"the conversion of Widget needs Group, Kind and Convert": {Conversions: []Conversion{{Group: "a.b", Kind: "Widget"}}},
	} {
		equal(t, bad.webhookProblem(), want)
	}
}

func TestValidateByReconcile_DeniesOnlyPermanentErrorsOfAChangedObject(t *testing.T) {
	object := func(generation int, deleting bool) Map {
		meta := Map{"name": "b", "namespace": "a", "generation": generation}
		if deleting {
			meta["deletionTimestamp"] = "2026-01-01T00:00:00Z"
		}
		return Map{"apiVersion": "shop.example.com/v1", "kind": "Widget", "metadata": meta, "spec": Map{"size": 3}}
	}
	wrong := Permanent(errors.New("spec.size: is odd"))
	for name, c := range map[string]struct {
		msg    Map
		err    error
		denied string
		runs   int
	}{
		"valid":             {Map{"object": object(1, false)}, nil, "", 1},
		"wrong":             {Map{"object": object(1, false)}, wrong, "spec.size: is odd", 1},
		"wrapped":           {Map{"object": object(1, false)}, errors.Join(wrong), "spec.size: is odd", 1},
		"may be over later": {Map{"object": object(1, false)}, errors.New("no Secret yet"), "", 1},
		"a conflict":        {Map{"object": object(1, false)}, Conflict(errors.New("x")), "", 1},
		"changed":           {Map{"object": object(2, false), "old": object(1, false)}, wrong, "spec.size: is odd", 1},
		"without numbers":   {Map{"object": object(0, false), "old": object(0, false)}, wrong, "spec.size: is odd", 1},
		"only its metadata": {Map{"object": object(1, false), "old": object(1, false)}, wrong, "", 0},
		"deleted":           {Map{"old": object(1, false)}, wrong, "", 0},
		"being deleted":     {Map{"object": object(2, true), "old": object(1, true)}, wrong, "", 0},
		"its status":        {Map{"object": object(1, false), "target": Map{"subresource": "status"}}, wrong, "", 0},
	} {
		t.Run(name, func(t *testing.T) {
			runs := 0
			m := widgets(ValidateByReconcile(func(ctx *Context, obj Object) (Action, error) {
				runs++
				equal(t, []any{ctx.DryRun(), obj.Int("spec", "size"), ctx.Key().Name}, []any{true, int64(3), "b"})
				return AwaitChange(), c.err
			}))
			c.msg["webhook"], c.msg["key"] = "/pods", Map{"namespace": "a", "name": "b"}
			v := callWith(t, m, "validate", c.msg)
			equal(t, []any{v.String("denied", "message"), v.Exists("error"), runs}, []any{c.denied, false, c.runs})
		})
	}
}
