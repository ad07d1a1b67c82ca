// SPDX-License-Identifier: Apache-2.0

package serve_test

import (
	"syscall"
	"testing"

	"github.com/wasmctl/wasmctl/internal/enginetest"
	"github.com/wasmctl/wasmctl/test/e2e/internal/e2e"
)

// TestServe_IsolatesTenants: the Reconcilers of a namespace share a guest process, which those of
// another namespace do not use. They run in the process of serve if it isolates other namespaces.
func TestServe_IsolatesTenants(t *testing.T) {
	e2e.NeedsGuestProcesses(t)
	shop, bank, free := newTenant(t), newTenant(t), newTenant(t)
	socket := e2e.NewSocket(t)
	c := startServe(shop, "-n", bank.ns, "-n", free.ns, "--socket", socket, "--isolate=tenant", "--isolate-namespaces", shop.ns+","+bank.ns)
	for _, tenant := range []*tenant{shop, bank, free} {
		spec := map[string]any{
			"module": tenant.module("v1", enginetest.Worse(enginetest.Good, 1)), "for": map[string]any{"apiVersion": "v1", "kind": "ConfigMap"},
			"rollout": map[string]any{"probation": "0s"},
		}
		tenant.create("one", spec)
		tenant.create("two", spec)
	}
	for _, tenant := range []*tenant{shop, bank, free} {
		tenant.ready("one", "True", "Succeeded")
		tenant.ready("two", "True", "Succeeded")
	}
	controllers := e2e.ControllersOf(t, socket)
	pid := func(tenant *tenant, name string) int {
		if p := controllers[tenant.ns+"."+name].Process; p != nil {
			return p.PID
		}
		return 0
	}
	if a, b := pid(shop, "one"), pid(bank, "one"); a == 0 || b == 0 || a == b || pid(shop, "two") != a || pid(bank, "two") != b || pid(free, "one") != 0 {
		t.Errorf("guest processes: %d and %d of one tenant, %d and %d of another, %d of one that is not isolated", a, pid(shop, "two"), b, pid(bank, "two"), pid(free, "one"))
	}
	c.Signal(syscall.SIGTERM)
	c.WantExit(e2e.ExitOK)
}
