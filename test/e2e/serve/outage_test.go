// SPDX-License-Identifier: Apache-2.0

package serve_test

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/wasmctl/wasmctl/devcluster/devclustertest"
	"github.com/wasmctl/wasmctl/host/load"
	"github.com/wasmctl/wasmctl/host/oci/ocitest"
	"github.com/wasmctl/wasmctl/internal/enginetest"
	"github.com/wasmctl/wasmctl/test/e2e/internal/e2e"
)

// pushed pushes a module to a registry without a password, and returns its reference for
// a spec.
func (t *tenant) pushed(reg *ocitest.Registry, image string, module []byte) map[string]any {
	t.Helper()
	file := filepath.Join(t.TempDir(), "m.wasm")
	e2e.Replace(t.T, file, module)
	if code, out := e2e.Exec(t.T, nil, "push", "oci://"+reg.Host+"/"+image, file, "--insecure-registry", reg.Host); code != e2e.ExitOK {
		t.Fatal(out)
	}
	return map[string]any{"image": reg.Host + "/" + image}
}

// TestServe_OutlivesTheAPIServer kills the API server with -9 under Reconcilers whose
// objects change, until each reconcile of them has failed. Their modules are changed as
// soon as it is back. No change is lost, each Reconciler runs its new module, and the
// process is the same.
func TestServe_OutlivesTheAPIServer(t *testing.T) {
	t.Parallel()
	cluster, reg := devclustertest.Own(t), ocitest.NewPlain(t)
	tenant := newTenantOn(t, cluster)
	tenant.allow("all", rbacv1.PolicyRule{APIGroups: []string{"*"}, Resources: []string{"*"}, Verbs: []string{"*"}})
	f := e2e.NewFleet(t, cluster)
	f.Ns = tenant.ns
	webapp := e2e.ReadFile(t, e2e.Example(t, "webapp"))
	after := enginetest.Numbered(webapp, 2)
	const others, apps, rounds = 4, 20, 3
	first, next := tenant.module("v1", enginetest.Worse(enginetest.Good, 1)), tenant.module("v2", enginetest.Worse(enginetest.Good, 2))
	for i := range others {
		tenant.create(fmt.Sprint("other-", i), map[string]any{
			"module": first, "for": map[string]any{"apiVersion": "v1", "kind": "ConfigMap"}, "rollout": map[string]any{"probation": "1s"},
		})
	}
	tenant.create("apps", map[string]any{
		"module": tenant.pushed(reg, "webapp:1", webapp), "grant": map[string]any{"manifest": true}, "rollout": map[string]any{"probation": "1s"},
	})
	tenant.create("broken", map[string]any{"module": map[string]any{"configMapKeyRef": map[string]any{"name": "absent", "key": "module.wasm"}}})
	moved := tenant.pushed(reg, "webapp:2", after)

	c := startServe(tenant, "--insecure-registry", reg.Host)
	settled := func(module, ofOthers []byte) {
		t.Helper()
		if r := tenant.ready("apps", "True", "Succeeded"); r.Status.Live.Digest != load.DigestOf(module) {
			t.Errorf("apps: %+v", r.Status)
		}
		for i := range others {
			if r := tenant.ready(fmt.Sprint("other-", i), "True", "Succeeded"); r.Status.Live.Digest != load.DigestOf(ofOthers) {
				t.Errorf("other-%d: %+v", i, r.Status)
			}
		}
		tenant.ready("broken", "False", "ConfigMapFailed")
	}
	settled(webapp, enginetest.Worse(enginetest.Good, 1))
	wait := f.Churn(t.Context(), apps, rounds)
	f.AwaitPuts(apps)
	tenant.must(cluster.Kill())
	for i := range others {
		c.WantLine(`"msg":"reconcile failed"`, `"controller":"wasmctl-reconcilers"`, fmt.Sprintf(`"object":"%s/other-%d"`, tenant.ns, i))
	}
	tenant.must(cluster.Restart(t.Context()))
	tenant.patch("apps", map[string]any{"module": moved})
	for i := range others {
		tenant.patch(fmt.Sprint("other-", i), map[string]any{"module": next})
	}
	wait()
	f.Confirm()
	settled(after, enginetest.Worse(enginetest.Good, 2))
	f.Confirm()
	c.Signal(syscall.SIGTERM)
	c.WantExit(e2e.ExitOK)
	runs := slices.DeleteFunc(c.Reconciles(), func(r e2e.Reconcile) bool { return !strings.Contains(r.Text, tenant.ns+`.apps"`) })
	e2e.WantNoneTwice(t, runs)
}
