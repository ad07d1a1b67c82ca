// SPDX-License-Identifier: Apache-2.0

package run_test

import (
	"maps"
	"path/filepath"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"github.com/wasmctl/wasmctl/devcluster/devclustertest"
	"github.com/wasmctl/wasmctl/test/e2e/internal/e2e"
)

// TestExample_TwoControllersShareAnObject follows the README of examples/twocontrollers:
// each controller writes its own fields of one ConfigMap, and neither undoes the changes
// of the other.
func TestExample_TwoControllersShareAnObject(t *testing.T) {
	t.Parallel()
	modules := filepath.Dir(e2e.Example(t, "configmapgenerator"))
	e2e.Example(t, "dnsrecord")
	c := devclustertest.Own(t)
	for _, path := range []string{"configmapgenerator/crd.yaml", "dnsrecord/crd.yaml", "twocontrollers/sample.yaml"} {
		devclustertest.ApplyFile(t, c, filepath.Join("../../../examples", path))
	}
	child := e2e.RunEnv(t, []string{"MODULES=" + modules}, "-f", "../../../examples/twocontrollers/controllers.yaml", "--kubeconfig", c.Kubeconfig(), "--socket", "none")
	client, err := dynamic.NewForConfig(c.RESTConfig())
	if err != nil {
		t.Fatal(err)
	}
	const address = "192.0.2.1"
	data := func() map[string]string {
		cm, err := client.Resource(e2e.ConfigMaps).Namespace("dns-system").Get(t.Context(), "example.com", metav1.GetOptions{})
		if err != nil {
			return nil
		}
		entries, _, _ := unstructured.NestedStringMap(cm.Object, "data")
		if www, ok := entries["www"]; ok && len(www) > len(address) {
			entries["www"] = www[:len(address)] // the owner of the entry follows
		}
		return entries
	}
	await := func(what string, want map[string]string) {
		t.Helper()
		for end := time.After(e2e.SettleLimit); !maps.Equal(data(), want); {
			select {
			case <-time.After(100 * time.Millisecond):
			case <-child.Done:
				t.Fatalf("%s: wasmctl has ended", what)
			case <-end:
				t.Fatalf("%s: the zone has %v, want %v", what, data(), want)
			}
		}
	}
	await("at first", map[string]string{"content": "a zone that one controller makes, and another fills", "www": address})

	generators := e2e.ConfigMaps.GroupResource().WithVersion("v1")
	generators.Group, generators.Resource = "examples.wasmctl.dev", "configmapgenerators"
	patch := []byte(`{"spec":{"content":"changed"}}`)
	if _, err := client.Resource(generators).Namespace("dns-system").Patch(t.Context(), "example.com", types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	await("after an edit of the generator", map[string]string{"content": "changed", "www": address})

	records := generators
	records.Resource = "dnsrecords"
	if err := client.Resource(records).Namespace("default").Delete(t.Context(), "web", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	await("after the record is deleted", map[string]string{"content": "changed"})
}
