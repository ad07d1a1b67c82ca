// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"fmt"
	"maps"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/api/v1alpha1"
	"github.com/wasmctl/wasmctl/internal/enginetest"
	"github.com/wasmctl/wasmctl/internal/replay"
)

// hooks is a manifest with a webhook of each type for ConfigMaps, and a conversion.
func hooks(name string) *abi.Manifest {
	m := &abi.Manifest{Version: name, Conversions: []abi.Conversions{{Group: "example.dev", Kind: "Web", Versions: []string{"v1", "v2"}}}}
	rule := abi.WebhookRule{Groups: []string{""}, Versions: []string{"v1"}, Resources: []string{"configmaps"}, Operations: []abi.Operation{"*"}}
	for _, t := range []abi.WebhookType{abi.WebhookValidate, abi.WebhookDefault} {
		m.Webhooks = append(m.Webhooks, abi.Webhook{Type: t, Path: "/" + string(t), Rules: []abi.WebhookRule{rule}})
	}
	return m
}

// warns is a module that allows each request with a warning, which is its name.
func warns(t testing.TB, name string) []byte {
	t.Helper()
	return enginetest.Judging(t, map[string]any{"warnings": []any{name}}, hooks(name))
}

// denies is a module that denies each request.
func denies(t testing.TB, name string) []byte {
	t.Helper()
	causes := []any{map[string]any{"field": "spec.replicas", "message": "too many"}}
	return enginetest.Judging(t, map[string]any{"denied": map[string]any{"message": name, "causes": causes}}, hooks(name))
}

// update is a request of the user alice to change the i-th object.
func (w *swapping) update(i int) *abi.Admission {
	object, err := abi.AppendValue(nil, map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{
		"name": enginetest.ObjectName(i), "namespace": w.ns, "labels": map[string]any{"object": enginetest.ObjectName(i)},
	}})
	if err != nil {
		w.t.Error(err)
	}
	return &abi.Admission{
		ID: fmt.Sprintf("request-%d", i), Webhook: "/validate", Operation: abi.OperationUpdate, Key: w.key(i), Object: object, Old: object,
		Target: abi.Target{Version: "v1", Kind: "ConfigMap", Resource: "configmaps"}, User: abi.User{Name: "alice"},
	}
}

// hook returns the webhook that validates.
func (b *backend) hook(t testing.TB) *abi.Webhook {
	t.Helper()
	routes := b.Routes()
	for i := range routes.Webhooks {
		if w := &routes.Webhooks[i]; w.Path == "/validate" {
			return w
		}
	}
	t.Fatalf("no webhook is served: %+v", routes)
	return nil
}

// judged returns the warning or the denial for an update of the i-th object.
func (w *swapping) judged(b *backend, i int) string {
	w.t.Helper()
	res, err := b.Admit(w.t.Context(), b.hook(w.t), w.update(i))
	switch {
	case err != nil:
		return "error"
	case res.Denied != nil:
		return "denied: " + res.Denied.Message
	}
	return strings.Join(res.Warnings, ",")
}

// TestWebhooks_FollowTheRevisions: the live module judges, and a canary the requests about its objects. Each
// change of the module changes the routes.
func TestWebhooks_FollowTheRevisions(t *testing.T) {
	virtually(t, warns(t, "first"), 4, func(w *swapping) {
		b := &backend{Controller: w.engine}
		want := func(verdicts ...string) {
			w.t.Helper()
			var got []string
			for i := range 4 {
				got = append(got, w.judged(b, i))
			}
			if diff := cmp.Diff(verdicts, got); diff != "" {
				w.t.Error(diff)
			}
		}
		passes(time.Second)
		want("first", "first", "first", "first")
		routes := b.Routes()
		if routes != b.Routes() || routes.Digest != w.engine.Module.Digest() || len(routes.Webhooks) != 2 || len(routes.Conversions) != 1 || len(routes.Owned) != 1 {
			w.t.Errorf("routes: %+v", routes)
		}
		options := w.bySelector(1, 3)
		w.canary(warns(t, "canary"), options)
		want("first", "canary", "first", "canary")
		created := w.update(1)
		created.Operation, created.Old, created.Key.Name = abi.OperationCreate, nil, "new"
		if res, err := b.Admit(w.t.Context(), b.hook(w.t), created); err != nil || res.Warnings[0] != "canary" {
			w.t.Errorf("an object to be created with the labels of the canary: %v, %v", res, err)
		}
		pods := w.update(1)
		pods.Target.Resource, pods.Object, pods.Old = "pods", []byte("\xc1 hostile"), nil
		if res, err := b.Admit(w.t.Context(), b.hook(w.t), pods); err != nil || res.Warnings[0] != "first" {
			w.t.Errorf("another kind, without labels: %v, %v", res, err)
		}
		if b.Routes() != routes {
			w.t.Error("a canary changes the routes")
		}
		w.steerCanary(true)
		want("canary", "canary", "canary", "canary")
		if b.Routes() == routes || b.Routes().Digest == routes.Digest {
			w.t.Error("the routes did not follow")
		}
		w.canary(enginetest.Judging(t, map[string]any{}, &abi.Manifest{Version: "no webhooks"}), options)
		want("canary", "canary", "canary", "canary")
		former := b.hook(w.t)
		w.steerCanary(true)
		if res, err := b.Admit(w.t.Context(), former, w.update(0)); err != nil || len(res.Warnings) > 0 || len(b.Routes().Webhooks) > 0 {
			w.t.Errorf("the module judges by a webhook that it does not have: %v, %v", res, err)
		}
	})
}

// TestWebhooks_OutsideOfTheGrantNothingIsAsked: a request in a namespace that is not granted is allowed
// without the module, and the selector of the webhook excludes it.
func TestWebhooks_OutsideOfTheGrantNothingIsAsked(t *testing.T) {
	virtually(t, denies(t, "no"), 1, func(w *swapping) {
		b := &backend{Controller: w.engine}
		passes(time.Second)
		elsewhere := w.update(0)
		elsewhere.Key.Namespace = "other"
		if res, err := b.Admit(w.t.Context(), b.hook(w.t), elsewhere); err != nil || res.Denied != nil {
			w.t.Errorf("%+v, %v", res, err)
		}
		if s := b.hook(w.t).Namespaces; s != "kubernetes.io/metadata.name in (shop)" {
			w.t.Errorf("selector %q", s)
		}
		w.engine.opts.Mode = v1alpha1.ModeDryRun
		if got := b.Routes(); len(got.Webhooks)+len(got.Conversions) != 0 {
			w.t.Errorf("a dry run judges: %+v", got)
		}
	})
}

// TestWebhooks_AWorseModuleIsRolledBack: one that denies more than the one before, or whose calls fail, is
// rolled back, also as a canary. The runs of the module succeed.
func TestWebhooks_AWorseModuleIsRolledBack(t *testing.T) {
	const objects = 10
	virtually(t, warns(t, "first"), objects, func(w *swapping) {
		b := &backend{Controller: w.engine}
		all := func() {
			for i := range objects {
				w.judged(b, i)
			}
			passes(time.Second)
		}
		passes(time.Second)
		all()
		for name, module := range map[string][]byte{
			"denied by a webhook": denies(t, "no"), "calls of webhooks failed": enginetest.Judging(t, nil, hooks("traps")),
		} {
			number := w.mustSwap(module)
			all()
			w.wantState(name, number, "failed")
			if got := w.judged(b, 0); got != "first" {
				w.t.Errorf("%s: after the rollback: %s", name, got)
			}
			for _, r := range w.engine.Revisions() {
				if r.Number == number && !strings.Contains(r.Reason, name) {
					w.t.Errorf("reason: %s", r.Reason)
				}
			}
			passes(time.Minute)
		}
		canary := w.canary(denies(t, "canary"), w.bySelector(1, 3, 5))
		for range 3 {
			all()
		}
		w.wantState("a canary that denies", canary, "failed")
		stricter := w.mustSwap(enginetest.Judging(t, map[string]any{"warnings": []any{"second"}}, hooks("second")))
		all()
		passes(time.Minute)
		w.wantState("one that is as good", stricter, "live")
	})
}

// TestWebhooks_ASwapRefusesNothing: while modules are swapped, and worse ones are rolled back, each request
// is answered by one of the good modules or denied by a bad one, but none fails.
func TestWebhooks_ASwapRefusesNothing(t *testing.T) {
	virtually(t, warns(t, "first"), 8, func(w *swapping) {
		b := &backend{Controller: w.engine}
		passes(time.Second)
		var failed, requests atomic.Int64
		done := make(chan struct{})
		var clients sync.WaitGroup
		end := sync.OnceFunc(func() { close(done); clients.Wait() })
		defer end()
		for i := range 4 {
			clients.Go(func() {
				for {
					select {
					case <-done:
						return
					case <-time.After(time.Millisecond):
					}
					requests.Add(1)
					if _, err := b.Admit(w.t.Context(), b.hook(w.t), w.update(i)); err != nil {
						failed.Add(1)
						w.t.Log(err)
					}
					if _, err := b.Convert(w.t.Context(), &abi.Conversion{ID: fmt.Sprint(i)}); err != nil && !strings.Contains(err.Error(), "conversion") {
						failed.Add(1)
						w.t.Log(err)
					}
				}
			})
		}
		for n := range 20 {
			switch n % 4 {
			case 3:
				w.canary(warns(t, fmt.Sprint("canary ", n)), halfOf(time.Minute))
				passes(20 * time.Millisecond)
				w.steerCanary(n%8 == 3)
			default:
				w.mustSwap(warns(t, fmt.Sprint(n)))
			}
			passes(20 * time.Millisecond)
		}
		end()
		if failed.Load() > 0 || requests.Load() < 100 {
			w.t.Errorf("%d of %d requests failed", failed.Load(), requests.Load())
		}
	})
}

// TestWebhooks_AShadowJudgesTheSameRequests: the live module answers, and the differences of the shadow's
// verdicts are reported.
func TestWebhooks_AShadowJudgesTheSameRequests(t *testing.T) {
	virtually(t, warns(t, "live"), 2, func(w *swapping) {
		b := &backend{Controller: w.engine}
		passes(time.Second)
		for name, tt := range map[string]struct {
			module []byte
			want   map[string]any // what the shadow has, by what the difference is of
		}{
			"denies":      {denies(t, "no"), map[string]any{"error": "denied: no; spec.replicas: too many", "warn about v1/ConfigMap shop/o0": nil}},
			"warns":       {warns(t, "shadow"), map[string]any{"warn about v1/ConfigMap shop/o0": "shadow"}},
			"agrees":      {enginetest.Numbered(warns(t, "live"), 7), map[string]any{}},
			"no webhooks": {enginetest.Judging(t, map[string]any{}, &abi.Manifest{Version: "1"}), map[string]any{"error": "the module has no webhook /validate", "warn about v1/ConfigMap shop/o0": nil}},
		} {
			got := map[string]any{}
			end := make(chan struct{})
			var client sync.WaitGroup
			client.Go(func() {
				for {
					select {
					case <-end:
						return
					case <-time.After(10 * time.Millisecond):
						w.judged(b, 0)
					}
				}
			})
			sum, err := w.life.Shadow(w.t.Context(), Bytes(tt.module), ShadowOptions{Limit: replay.Limit{For: time.Second, Count: 1}}, func(c replay.Compared) error {
				for _, d := range c.Differences {
					what := d.Write
					if d.Write == "" {
						what = d.Of
					}
					got[what] = d.Shadow
				}
				return nil
			})
			close(end)
			client.Wait()
			if err != nil || sum.Runs != 1 {
				w.t.Errorf("%s: %v, %v", name, sum, err)
			}
			if !maps.Equal(got, tt.want) {
				w.t.Errorf("%s: %v, want %v", name, got, tt.want)
			}
		}
	})
}
