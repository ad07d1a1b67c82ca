// SPDX-License-Identifier: Apache-2.0

package serve_test

import (
	"fmt"
	"syscall"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/wasmctl/wasmctl/api/v1alpha1"
	"github.com/wasmctl/wasmctl/host/load"
	"github.com/wasmctl/wasmctl/internal/enginetest"
	"github.com/wasmctl/wasmctl/test/e2e/internal/e2e"
)

// TestServe_ManyAreSwappedAcrossAKill: 50 Reconcilers of 10 tenants get another module,
// one in five a bad one, and the process is killed in the middle. All good ones are
// Ready with the new module, and the bad ones continue with the old one.
func TestServe_ManyAreSwappedAcrossAKill(t *testing.T) {
	t.Parallel()
	const each = 5
	old, good, bad := enginetest.Worse(enginetest.Good, 1), enginetest.Worse(enginetest.Good, 2), enginetest.Worse(enginetest.Traps, 3)
	var tenants []*tenant
	var namespaces []string
	modules := map[string]map[string]any{}
	for i := range 10 {
		tn := newTenant(t)
		tenants = append(tenants, tn)
		if i > 0 { // startServe names the first one
			namespaces = append(namespaces, "-n", tn.ns)
		}
		first := tn.module("old", old)
		modules["good"], modules["bad"] = tn.module("good", good), tn.module("bad", bad)
		for i := range each {
			tn.create(fmt.Sprintf("r%d", i), map[string]any{
				"module": first, "for": map[string]any{"apiVersion": "v1", "kind": "ConfigMap"}, "rollout": map[string]any{"probation": "2s"},
				"selector": map[string]any{"matchExpressions": []any{map[string]any{"key": "module", "operator": "DoesNotExist"}}},
			})
		}
	}
	all := func(what string, ok func(i int, r *v1alpha1.Reconciler) bool) {
		t.Helper()
		for _, tn := range tenants {
			for i := range each {
				name, last := fmt.Sprintf("r%d", i), v1alpha1.Reconciler{}
				t.Cleanup(func() {
					if t.Failed() {
						t.Logf("%s/%s: %+v", tn.ns, name, last.Status)
					}
				})
				enginetest.Until(t, fmt.Sprintf("%s/%s %s", tn.ns, name, what), func() bool {
					last = tn.get(name)
					return ok(i, &last)
				})
			}
		}
	}
	is := func(r *v1alpha1.Reconciler, reason string, module []byte) bool {
		c := meta.FindStatusCondition(r.Status.Conditions, v1alpha1.Ready)
		return c != nil && c.Reason == reason && c.ObservedGeneration == r.Generation && r.Status.Live.Digest == load.DigestOf(module)
	}
	c := startServe(tenants[0], namespaces...)
	all("runs the first module", func(_ int, r *v1alpha1.Reconciler) bool { return is(r, "Succeeded", old) })
	for _, tn := range tenants {
		for i := range each {
			next := "good"
			if i == each-1 {
				next = "bad"
			}
			tn.patch(fmt.Sprintf("r%d", i), map[string]any{"module": modules[next]})
		}
	}
	enginetest.Until(t, "some are swapped, or were", func() bool {
		r := tenants[0].get("r0")
		return r.Status.ObservedGeneration == r.Generation
	})
	c.Signal(syscall.SIGKILL)
	<-c.Done
	c = startServe(tenants[0], namespaces...)
	all("ends as it must", func(i int, r *v1alpha1.Reconciler) bool {
		if i == each-1 {
			return is(r, "RolledBack", old)
		}
		return is(r, "Succeeded", good)
	})
	c.Signal(syscall.SIGTERM)
	c.WantExit(e2e.ExitOK)
}
