// SPDX-License-Identifier: Apache-2.0

package wasmctl

import (
	"context"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/api/v1alpha1"
	"github.com/wasmctl/wasmctl/internal/enginetest"
	"github.com/wasmctl/wasmctl/runtime/webhook"
)

// TestJudge_ARestartRefusesNothing: requests wait while the controller loads its module again, and its webhooks stay
// registered. They end with the controller.
func TestJudge_ARestartRefusesNothing(t *testing.T) {
	virtually(t, func(t *testing.T, r *running) {
		synctest.Wait() // Run has begun without a server, which needs a network
		r.hooks = &hooks{server: webhook.New(webhook.Config{})}
		hook := abi.Webhook{Type: abi.WebhookValidate, Path: "/validate", Rules: []abi.WebhookRule{{
			Groups: []string{""}, Versions: []string{"v1"}, Resources: []string{"configmaps"}, Operations: []abi.Operation{"*"},
		}}}
		module := enginetest.Judging(t, map[string]any{"warnings": []any{"judged"}}, &abi.Manifest{
			Version: "1", For: &abi.Watch{Version: "v1", Kind: "ConfigMap"}, Webhooks: []abi.Webhook{hook},
		})
		o := ControllerOptions{ControllerSpec: configmaps("judge")}
		o.Grant = &v1alpha1.Grant{Manifest: true}
		c, err := r.Load(t.Context(), Bytes(module), o)
		if err != nil {
			t.Fatal(err)
		}
		passes(time.Second)
		served := r.hooks.server.Backends()
		if len(served) != 1 || len(served[0].Backend.Routes().Webhooks) != 1 {
			t.Fatalf("served: %+v", served)
		}
		backend := served[0].Backend
		failed, unrouted := 0, 0
		for range 20 {
			c.Restart()
			for range 50 { // no time passes, so they meet each state of the restart
				runtime.Gosched()
				ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
				res, err := backend.Admit(ctx, &hook, &abi.Admission{
					ID: "u", Operation: abi.OperationDelete, Key: abi.Key{Namespace: "shop", Name: "o0"}, Target: abi.Target{Version: "v1", Kind: "ConfigMap", Resource: "configmaps"},
				})
				cancel()
				if err != nil || len(res.Warnings) != 1 {
					failed++
					t.Logf("%+v, %v", res, err)
				}
				if routes := backend.Routes(); routes == nil || len(routes.Webhooks) != 1 {
					unrouted++
				}
			}
			passes(time.Second)
		}
		if failed > 0 || unrouted > 0 {
			t.Errorf("%d requests failed; no routes after %d", failed, unrouted)
		}
		if err := c.Stop(t.Context()); err != nil {
			t.Error(err)
		}
		synctest.Wait()
		if served := r.hooks.server.Backends(); len(served) > 0 {
			t.Errorf("served after the end: %+v", served)
		}
	})
}
