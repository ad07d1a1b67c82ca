package main

import (
	"testing"

	"k8s.io/client-go/dynamic"

	"github.com/wasmctl/wasmctl/cmd/wasmctl/internal/project/operator"
	"github.com/wasmctl/wasmctl/devcluster/devclustertest"
)

// TestControllerRuntime_ClientsOfClientGoCallTheHost: typed and dynamic ones, whatever
// their context is; with the rights of the module, and the errors of the API server.
// Flags and environment of main are those of the build.
func TestControllerRuntime_ClientsOfClientGoCallTheHost(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("SKIPPED: -short: builds an operator, and starts a control plane")
	}
	module := buildOperatorWith(t, "clientgo", operator.Main{Args: []string{"--label=counted=yes"}, Env: map[string]string{"NAME": "seen"}})
	c := devclustertest.Shared(t)
	client, err := dynamic.NewForConfig(c.RESTConfig())
	if err != nil {
		t.Fatal(err)
	}
	o := &operatorTest{T: t, client: client, ns: devclustertest.Namespace(t, c)}
	o.child = startWasmctl(t, module, "--kubeconfig", c.Kubeconfig(), "--namespace", o.ns, "--socket", "none")
	o.child.wantLine(`"controller":"seen"`)
	o.create(configMaps, map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "a", "labels": map[string]any{"counted": "yes"}}})
	const note = "1 labelled, data map[k:dg==], version true, denied true"
	o.await("the Secret", func() bool { return o.get(secrets).GetAnnotations()["note"] == note })
	o.patch(configMaps, `{"metadata":{"labels":null}}`)
	o.await("no Secret", func() bool { return o.get(secrets).GetName() == "" })
	if failed := o.child.failures(); len(failed) > 0 {
		t.Errorf("runs failed: %q", failed)
	}
}
