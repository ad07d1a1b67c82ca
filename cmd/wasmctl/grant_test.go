package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/wasmctl/wasmctl/devcluster/devclustertest"
)

// TestGrant_IsAllThatTheModuleNeeds: an example runs with the grant that the command
// prints, and nothing of it is refused.
func TestGrant_IsAllThatTheModuleNeeds(t *testing.T) {
	t.Parallel()
	f := newFleet(t, devclustertest.Shared(t))
	f.put(t.Context(), "a", app{image: "i:1"})
	var out, errs bytes.Buffer
	args := []string{"grant", exampleWasm(t, "webapp"), "-n", f.ns, "--kubeconfig", f.cluster.Kubeconfig()}
	if code := execute(t.Context(), args, streams{in: strings.NewReader(""), out: &out, err: &errs}); code != exitOK || errs.Len() > 0 {
		t.Fatalf("exit code %d: %s", code, &errs)
	}
	if !strings.HasPrefix(out.String(), "apiVersion: wasmctl.dev/v1\nkind: Grant\ncontroller: webapp\n") {
		t.Errorf("%s", &out)
	}
	file := filepath.Join(t.TempDir(), "grant.yaml")
	writeFile(t, file, out.String())
	c := startWasmctl(t, exampleWasm(t, "webapp"), "-n", f.ns, "--kubeconfig", f.cluster.Kubeconfig(), "--grant", file)
	c.wantLine(`"msg":"reconciled"`, `"object":"`+f.ns+`/a"`)
	if denied := c.count("not granted"); denied != 0 || c.count("denied") != 0 {
		t.Errorf("something is refused:\n%s", c.text())
	}
	c.signal(syscall.SIGTERM)
	c.wantExit(exitOK)
}

// TestGrant_TheFirstStartSaysAllThatLacks: who runs a module without any grant is
// told all rights at once, in words, and what to do, even before its kind is there;
// among other controllers, the log and status say so.
func TestGrant_TheFirstStartSaysAllThatLacks(t *testing.T) {
	t.Parallel()
	cluster := devclustertest.Shared(t)
	want := []string{
		"wasmctl grant MODULE > grant.yaml", "--grant grant.yaml", "get, list, watch webapps.examples.wasmctl.dev", "webapps.examples.wasmctl.dev/status",
		"list, watch deployments.apps", "list, watch services", "get, create, patch, delete deployments.apps", "create, patch, delete services", "create, patch events.events.k8s.io",
	}
	alone := startWasmctl(t, exampleWasm(t, "webapp"), "--kubeconfig", cluster.Kubeconfig(), "--socket", "none", "--grant-manifest=false")
	alone.wantExit(exitDenied)
	if text := alone.text(); !containsAll(text, want) || strings.ContainsAny(text, `\"`) {
		t.Error(text)
	}
	dir, socket := t.TempDir(), newSocket(t)
	file, module := filepath.Join(dir, "controllers.yaml"), filepath.Join(dir, "web.wasm")
	for from, to := range map[string]string{exampleWasm(t, "webapp"): module, guests + "empty.wasm": filepath.Join(dir, "fine.wasm")} {
		b, err := os.ReadFile(from)
		if err != nil {
			t.Fatal(err)
		}
		replace(t, to, b)
	}
	writeFile(t, file, "apiVersion: wasmctl.dev/v1\nkind: Controllers\ncontrollers:\n- {name: fine, module: fine.wasm, for: cm, grantManifest: true}\n- {name: web, module: web.wasm}\n")
	c := startWasmctl(t, "-f", file, "--kubeconfig", cluster.Kubeconfig(), "--socket", socket)
	c.wantLine(`"level":"ERROR","msg":"controller failed to start; retrying"`, `"controller":"web"`, "create, patch events.events.k8s.io")
	c.wantLine(`"msg":"reconciling"`, `"controller":"fine"`)
	if out := steer(t, "status", socket); !containsAll(out, want) {
		t.Errorf("status: %s", out)
	}
}
