package main

import (
	"bytes"
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
