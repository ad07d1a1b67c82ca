// SPDX-License-Identifier: Apache-2.0

package run_test

import (
	"fmt"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/wasmctl/wasmctl/host/load"
	"github.com/wasmctl/wasmctl/internal/enginetest"
	"github.com/wasmctl/wasmctl/test/e2e/internal/e2e"
)

// TestShardBy_SplitsOneNamespace: with --shard-by uid, two replicas share the objects of
// one namespace, and each repairs the children of its own. The second one uses the
// setting of the first, and logs the difference.
func TestShardBy_SplitsOneNamespace(t *testing.T) {
	t.Parallel()
	w := newWalled(t)
	args := []string{"--shards", "4", "--leader-elect-resource-namespace", w.ns}
	first := w.run(append(args, "--shard-by", "uid")...)
	first.WantLine(`"msg":"sharing the objects with other replicas"`, `"by":"metadata.uid"`)
	second := w.run(args...)
	second.WantLine(`"msg":"the objects stay split`, `"by":"metadata.uid","wanted":"metadata.namespace"`)
	var names []string
	for i := range 24 {
		names = append(names, fmt.Sprintf("g%02d", i))
		w.generate(names[i])
	}
	all := func() bool { return w.configMaps() == strings.Join(names, ",") }
	enginetest.Until(t, "all ConfigMaps are there", all)
	mine := func(c *e2e.Process) (n int) {
		for _, name := range names {
			n += min(1, c.Count(`"msg":"reconciled"`, w.ns+"/"+name+`"`))
		}
		return n
	}
	enginetest.Until(t, "both have reconciled some", func() bool { return mine(first) > 0 && mine(second) > 0 })
	for _, name := range names {
		if err := w.client.Resource(e2e.ConfigMaps).Namespace(w.ns).Delete(t.Context(), name, metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	enginetest.Until(t, "all ConfigMaps are there again", all)
	for _, c := range []*e2e.Process{first, second} {
		c.Signal(syscall.SIGTERM)
		c.WantExit(e2e.ExitOK)
	}
}

// TestShardBy_IsRefusedWhereDeletesWouldBeLost: --shard-by is refused if deletes would be lost, or if one
// replica would run all objects.
func TestShardBy_IsRefusedWhereDeletesWouldBeLost(t *testing.T) {
	t.Parallel()
	w := newWalled(t)
	module := filepath.Join(t.TempDir(), "m.wasm")
	wasm := e2e.ReadFile(t, e2e.Example(t, "configmapgenerator"))
	man := *load.Inspect(t.Context(), wasm).Manifest
	reconciled := *man.For
	reconciled.Deletes, man.For = true, &reconciled
	wasm, err := load.WithManifest(wasm, &man)
	if err != nil {
		t.Fatal(err)
	}
	e2e.Replace(t, module, wasm)
	args := []string{"--socket", "none", "--kubeconfig", w.cluster.Kubeconfig(), "--shards", "4", "--leader-elect-resource-namespace", w.ns, "--leader-elect-resource-name", "x"}
	c := e2e.Run(t, append([]string{module, "--shard-by", "uid"}, args...)...)
	c.WantExit(e2e.ExitUsage)
	if !strings.Contains(c.Text(), "shardBy uid: the module is called after an object is gone") {
		t.Errorf("output: %s", c.Text())
	}
	c = e2e.Run(t, append([]string{e2e.Example(t, "configmapgenerator"), "--for", "nodes", "--shard-by", "namespace"}, args...)...)
	c.WantExit(e2e.ExitUsage)
	if !strings.Contains(c.Text(), "is cluster-scoped") {
		t.Errorf("output: %s", c.Text())
	}
}
