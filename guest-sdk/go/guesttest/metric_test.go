// SPDX-License-Identifier: Apache-2.0

package guesttest_test

import (
	"maps"
	"testing"

	wasmctl "github.com/wasmctl/wasmctl/guest-sdk/go"
	"github.com/wasmctl/wasmctl/guest-sdk/go/guesttest"
)

func TestHost_KeepsMetricsAsPrometheusShowsThem(t *testing.T) {
	ref := wasmctl.ObjectRef{APIVersion: "example.com/v1", Kind: "Greeting", Namespace: "default", Name: "hello"}
	h := guesttest.New(t, wasmctl.Map{"apiVersion": ref.APIVersion, "kind": ref.Kind, "metadata": wasmctl.Map{"name": ref.Name, "namespace": ref.Namespace}})
	reconciler := wasmctl.Reconciler{
		Manifest: wasmctl.Manifest{Name: "greeter", For: &wasmctl.Watch{Group: "example.com", Version: "v1", Kind: "Greeting"}},
		Reconcile: func(ctx *wasmctl.Context, _ wasmctl.Object) (wasmctl.Action, error) {
			for _, value := range []float64{1, 2} {
				if ctx.Metric(wasmctl.MetricCounter, "greetings", value) != nil || ctx.Metric(wasmctl.MetricGauge, "size", value) != nil {
					t.Error("a good metric is refused")
				}
			}
			for _, name := range []string{"", "9", "größe", "a_total", "a b"} {
				if ctx.Metric(wasmctl.MetricGauge, name, 1) == nil {
					t.Errorf("%q is not refused", name)
				}
			}
			return wasmctl.AwaitChange(), nil
		},
	}
	h.Reconcile(reconciler, ref)
	if got, want := h.Metrics(), (map[string]float64{"greetings_total": 3, "size": 2}); !maps.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}
