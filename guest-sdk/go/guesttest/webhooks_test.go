// SPDX-License-Identifier: Apache-2.0

package guesttest_test

import (
	"errors"
	"testing"

	wasmctl "github.com/wasmctl/wasmctl/guest-sdk/go"
	"github.com/wasmctl/wasmctl/guest-sdk/go/guesttest"
)

func TestWebhooks_GetACompleteRequestAndReadTheCache(t *testing.T) {
	var got wasmctl.Admission
	var write error
	r := wasmctl.Reconciler{
		Reconcile: func(*wasmctl.Context, wasmctl.Object) (wasmctl.Action, error) { return wasmctl.AwaitChange(), nil },
		Manifest: wasmctl.Manifest{
			For: &wasmctl.Watch{Group: "example.com", Version: "v1", Kind: "Color"},
			Webhooks: []wasmctl.Webhook{
				{Validate: func(ctx *wasmctl.Context, a wasmctl.Admission) wasmctl.Verdict {
					got = a
					if _, err := ctx.Cache().Get(wasmctl.ObjectRef{APIVersion: "example.com/v1", Kind: "Color", Namespace: "d", Name: "blue"}); err != nil {
						return wasmctl.Verdict{Err: err}
					}
					_, write = ctx.Client().Create(a.Object, wasmctl.WriteOptions{})
					return wasmctl.Invalid(wasmctl.Cause{Field: "spec", Message: "no"})
				}},
				{Default: func(*wasmctl.Context, wasmctl.Admission) wasmctl.Verdict {
					return wasmctl.Verdict{Object: wasmctl.Map{"a": 1}, Base: wasmctl.Map{}, Warnings: []string{"w"}}
				}},
			},
			Conversions: []wasmctl.Conversion{{Group: "example.com", Kind: "Color", Convert: func(*wasmctl.Context, wasmctl.Object, string) (any, error) {
				return nil, errors.New("no way")
			}}},
		},
	}
	color := wasmctl.Map{"apiVersion": "example.com/v1", "kind": "Color", "metadata": wasmctl.Map{"name": "blue", "namespace": "d"}}
	obj, err := wasmctl.NewObject(color)
	if err != nil {
		t.Fatal(err)
	}
	host := guesttest.New(t, color)
	v := host.Validate(r, wasmctl.Admission{Object: obj, Old: obj})
	if v.Err != nil || v.Denied == nil || v.Denied.Code != 422 || v.Denied.Causes[0].Field != "spec" {
		t.Errorf("got %+v", v)
	}
	if !wasmctl.IsUnavailable(write) {
		t.Errorf("a write: %v", write)
	}
	if got.Operation != wasmctl.OperationUpdate || got.Target.Resource != "colors" || got.Requested != got.Target || got.Name != "blue" || got.Namespace != "d" {
		t.Errorf("got %+v", got)
	}
	v = host.Default(r, wasmctl.Admission{Object: obj})
	if o, ok := v.Object.(wasmctl.Object); !ok || o.Int("a") != 1 || v.Base == nil || len(v.Warnings) != 1 {
		t.Errorf("got %+v", v)
	}
	if _, err := host.Convert(r, color, "example.com/v2"); err == nil || err.Error() != "Color[d/blue]: no way" {
		t.Errorf("got %v", err)
	}
}
