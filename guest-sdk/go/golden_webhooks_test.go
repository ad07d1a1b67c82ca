// SPDX-License-Identifier: Apache-2.0

package wasmctl

import (
	"errors"
	"testing"

	"github.com/wasmctl/wasmctl/guest-sdk/go/internal/wire"
)

const (
	goldenValidate = "/validate-examples-wasmctl-dev-v1-configmapgenerator"
	goldenMutate   = "/mutate-examples-wasmctl-dev-v1-configmapgenerator"
)

// goldenWebhooks has the webhooks of the golden messages, with their default paths.
func goldenWebhooks(judge func(*Context, Admission) Verdict) *Reconciler {
	return &Reconciler{Manifest: Manifest{
		For:      &Watch{Group: "examples.wasmctl.dev", Version: "v1", Kind: "ConfigMapGenerator"},
		Webhooks: []Webhook{{Validate: judge}, {Default: judge}},
	}}
}

func TestGolden_AdmissionsAreRead(t *testing.T) {
	at := AdmissionTarget{Group: "examples.wasmctl.dev", Version: "v1", Kind: "ConfigMapGenerator", Resource: "configmapgenerators"}
	create := Admission{
		ID: "0b6f-1", Webhook: goldenValidate, Operation: OperationCreate, Target: at, Requested: at,
		Namespace: "default", Name: "hello", User: User{Name: "ann"},
	}
	update, gone := create, create
	update.Webhook, update.Operation, update.DryRun = goldenMutate, OperationUpdate, true
	update.Target.Subresource, update.Requested.Subresource, update.Requested.Version = "status", "status", "v1beta1"
	update.User = User{
		Name: "system:serviceaccount:default:ci", UID: "u-7", Groups: []string{"system:authenticated", "größe"},
		Extra: map[string][]string{"scopes": {"a", "b"}, "empty": nil},
	}
	gone.Operation, gone.Namespace, gone.Name = OperationDelete, "", "cluster-scoped"
	for name, want := range map[string]Admission{"admission-create": create, "admission-update": update, "admission-delete": gone} {
		var got Admission
		g := &guest{host: &scriptHost{}, reconciler: goldenWebhooks(func(ctx *Context, a Admission) Verdict {
			m := goldenValue(t, name)
			equal(t, []bool{a.Object.Exists(), a.Old.Exists(), a.Options.Exists()}, []bool{m["object"] != nil, m["old"] != nil, m["options"] != nil})
			equal(t, []any{ctx.Controller(), ctx.DryRun(), ctx.HostHas("cache_get")}, []any{"configmapgenerator", want.DryRun, name == "admission-update"})
			a.Object, a.Old, a.Options = Object{}, Object{}, Object{}
			got = a
			return Allow()
		})}
		equal(t, len(g.call("validate", golden(t, name))), 0)
		equal(t, got, want)
	}
}

func TestGolden_VerdictsAreWritten(t *testing.T) {
	object := goldenValue(t, "verdict-object")["object"]
	for name, v := range map[string]Verdict{
		"verdict-warnings": {Warnings: []string{"spec.content is long"}, Audit: map[string]string{"size": "large"}},
		"verdict-denied":   Deny("no"),
		"verdict-invalid":  Invalid(Cause{Type: "FieldValueInvalid", Field: "spec.content", Message: "is empty"}, Cause{Message: "no owner"}),
		"verdict-object":   Defaulted(object),
		"verdict-base":     {Object: Map{"a": 2}, Base: Map{"a": 1}},
		"verdict-error":    {Err: WithReason(errors.New("the cache has no namespace yet"), "NotSynced")},
	} {
		g := &guest{host: &scriptHost{}, reconciler: goldenWebhooks(func(*Context, Admission) Verdict { return v })}
		got, err := wire.Decode(g.call("default", golden(t, "admission-update")))
		equal(t, []any{got, err}, []any{any(goldenValue(t, name)), nil})
	}
	// The SDK writes nothing instead of verdict-allowed.
	equal(t, len(goldenValue(t, "verdict-allowed")), 0)
}

func TestGolden_ConversionsAreReadAndWritten(t *testing.T) {
	object := goldenValue(t, "converted-two")["objects"].([]any)[0]
	for name, fails := range map[string]bool{"converted-two": false, "converted-error": true} {
		g := &guest{host: &scriptHost{}, reconciler: &Reconciler{Manifest: Manifest{Conversions: []Conversion{{
			Group: "examples.wasmctl.dev", Kind: "ConfigMapGenerator",
			Convert: func(_ *Context, o Object, to string) (any, error) {
				equal(t, []string{o.Name(), to}, []string{"hello", "examples.wasmctl.dev/v2"})
				if fails {
					return nil, Permanent(errors.New("no way"))
				}
				return object, nil
			},
		}}}}}
		got, err := wire.Decode(g.call("convert", golden(t, "conversion-two")))
		equal(t, []any{got, err}, []any{any(goldenValue(t, name)), nil})
	}
}
