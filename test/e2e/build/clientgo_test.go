// SPDX-License-Identifier: Apache-2.0

package build_test

import (
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"github.com/wasmctl/wasmctl/devcluster/devclustertest"
	"github.com/wasmctl/wasmctl/test/e2e/internal/e2e"
)

var optionalWidgets = schema.GroupVersionResource{Group: "optional.example.com", Version: "v1", Resource: "widgets"}

const widgetCRD = `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.optional.example.com}
spec:
  group: optional.example.com
  names: {kind: Widget, listKind: WidgetList, plural: widgets, singular: widget}
  scope: Namespaced
  versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}]
`

// TestControllerRuntime_ClientsOfClientGoCallTheHost: typed and dynamic clients work
// with any context, and with the configuration of the manager or one that client-go
// finds. They have the rights of the module, and get the errors of the API server.
// Handlers of informers are left out, and the build reports it. Flags and environment of
// main are those of the build. Events of a broadcaster are recorded by the host. Before
// the manager starts, main sees a cluster with only the objects of wasmctl.yaml, and its
// writes have no effect. A kind may be missing: reads of it return the error of a
// missing kind, and its watch begins when it is created. The files of wasmctl.yaml can
// be read in main and in runs.
func TestControllerRuntime_ClientsOfClientGoCallTheHost(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("SKIPPED: -short: builds an operator, and starts a control plane")
	}
	module := buildOperator(t, "clientgo", "--env", "NAME=seen", "--without", "Gadget.optional.example.com,writes,sources", "--", "--config=/etc/app/label")
	c := devclustertest.Shared(t)
	client, err := dynamic.NewForConfig(c.RESTConfig())
	if err != nil {
		t.Fatal(err)
	}
	o := &operatorTest{T: t, client: client, ns: devclustertest.Namespace(t, c)}
	o.child = e2e.Run(t, module, "--kubeconfig", c.Kubeconfig(), "--namespace", o.ns, "--socket", "none")
	o.child.WantLine(`"controller":"seen"`)
	o.child.WantLine(`main reads an object before the manager starts`, `--objects`, `kube-root-ca.crt`)
	o.create(e2e.ConfigMaps, map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "a", "labels": map[string]any{"counted": "yes"}}})
	const note = "1 labelled, data map[k:dg==], version 1, denied true, in shop"
	o.await("the Secret", func() bool { return o.get(e2e.Secrets).GetAnnotations()["note"] == note })
	o.awaitEvent("no such kind")
	devclustertest.Apply(t, c, []byte(widgetCRD))
	o.child.WantLine(`"msg":"watch ready"`, `"watch":"widgets.optional.example.com`)
	o.patch(e2e.ConfigMaps, `{"data":{"a":"1"}}`)
	o.await("the Widget", func() bool { return o.get(optionalWidgets).GetUID() != "" })
	uid := o.get(optionalWidgets).GetUID()
	o.delete(optionalWidgets)
	o.await("a deletion of the Widget", func() bool { now := o.get(optionalWidgets).GetUID(); return now != "" && now != uid })
	o.patch(e2e.ConfigMaps, `{"metadata":{"labels":null}}`)
	o.await("no Secret", func() bool { return o.get(e2e.Secrets).GetName() == "" })
	if failed := o.child.Failures(); len(failed) > 0 {
		t.Errorf("runs failed: %q", failed)
	}
}
