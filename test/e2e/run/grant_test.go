// SPDX-License-Identifier: Apache-2.0

package run_test

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/wasmctl/wasmctl/devcluster/devclustertest"
	"github.com/wasmctl/wasmctl/test/e2e/internal/e2e"
)

// TestGrant_IsAllThatTheModuleNeeds: an example runs with the grant that wasmctl grant
// prints, and none of its requests is denied.
func TestGrant_IsAllThatTheModuleNeeds(t *testing.T) {
	t.Parallel()
	f := e2e.NewFleet(t, devclustertest.Shared(t))
	f.Put(t.Context(), "a", e2e.App{Image: "i:1"})
	out := e2e.Output(t, "grant", e2e.Example(t, "webapp"), "-n", f.Ns, "--kubeconfig", f.Cluster.Kubeconfig())
	if !strings.HasPrefix(out, "apiVersion: wasmctl.dev/v1\nkind: Grant\ncontroller: webapp\n") {
		t.Errorf("%s", out)
	}
	file := filepath.Join(t.TempDir(), "grant.yaml")
	writeFile(t, file, out)
	c := e2e.Run(t, e2e.Example(t, "webapp"), "-n", f.Ns, "--kubeconfig", f.Cluster.Kubeconfig(), "--grant", file)
	c.WantLine(`"msg":"reconciled"`, `"object":"`+f.Ns+`/a"`)
	if denied := c.Count("not granted"); denied != 0 || c.Count("denied") != 0 {
		t.Errorf("something is refused:\n%s", c.Text())
	}
	c.Signal(syscall.SIGTERM)
	c.WantExit(e2e.ExitOK)
}

// TestGrant_TheFirstStartSaysAllThatLacks: without a grant, the error lists all rights
// in words, and the next step, even before the kind of the module exists. Among other
// controllers, the log and status do.
func TestGrant_TheFirstStartSaysAllThatLacks(t *testing.T) {
	t.Parallel()
	cluster := devclustertest.Shared(t)
	want := []string{
		"wasmctl grant MODULE > grant.yaml", "get, list, watch webapps.examples.wasmctl.dev", "webapps.examples.wasmctl.dev/status",
		"list, watch deployments.apps", "list, watch services", "get, create, patch, delete deployments.apps", "create, patch, delete services", "create, patch events.events.k8s.io",
	}
	alone := e2e.Run(t, e2e.Example(t, "webapp"), "--kubeconfig", cluster.Kubeconfig(), "--socket", "none", "--grant-manifest=false")
	alone.WantExit(e2e.ExitDenied)
	if text := alone.Text(); !e2e.ContainsAll(text, append(want, "--grant grant.yaml", "--grant-manifest")) || strings.ContainsAny(text, `\"`) {
		t.Error(text)
	}
	dir, socket := t.TempDir(), e2e.NewSocket(t)
	file, module := filepath.Join(dir, "controllers.yaml"), filepath.Join(dir, "web.wasm")
	for from, to := range map[string]string{e2e.Example(t, "webapp"): module, e2e.Guests + "empty.wasm": filepath.Join(dir, "fine.wasm")} {
		b, err := os.ReadFile(from)
		if err != nil {
			t.Fatal(err)
		}
		e2e.Replace(t, to, b)
	}
	writeFile(t, file, "apiVersion: wasmctl.dev/v1\nkind: Controllers\ncontrollers:\n- {name: fine, module: fine.wasm, for: cm, grant: {manifest: true}}\n- {name: web, module: web.wasm}\n")
	c := e2e.Run(t, "-f", file, "--kubeconfig", cluster.Kubeconfig(), "--socket", socket)
	c.WantLine(`"level":"ERROR","msg":"controller failed to start; retrying"`, `"controller":"web"`, "create, patch events.events.k8s.io")
	c.WantLine(`"msg":"reconciling"`, `"controller":"fine"`)
	if out := e2e.Steer(t, "status", socket); !e2e.ContainsAll(out, want) {
		t.Errorf("status: %s", out)
	}
}
