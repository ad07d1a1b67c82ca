// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"github.com/wasmctl/wasmctl/devcluster"
	"github.com/wasmctl/wasmctl/devcluster/devclustertest"
)

const (
	growthEvents = 2_000           // for each figure
	settled      = 5 * time.Second // after the first runs
)

// uninterested are the ways in which controllers ignore data changes of ConfigMaps in a namespace, with the entry of
// the i-th of them in the file of controllers.
var uninterested = []struct {
	name  string
	entry func(i int, ns string) string
}{
	{"elsewhere", func(i int, _ string) string { return fmt.Sprintf("for: configmaps, namespace: elsewhere-%d", i) }},
	{"other-kinds", func(i int, ns string) string {
		return fmt.Sprintf("for: %s, namespace: %s", otherKinds[i%len(otherKinds)], ns)
	}},
	{"hidden", func(_ int, ns string) string {
		return fmt.Sprintf("for: configmaps, namespaces: %s, predicates: labels", ns)
	}},
}

var otherKinds = []string{"secrets", "services", "endpoints", "pods", "deployments.apps", "daemonsets.apps", "statefulsets.apps", "jobs.batch", "cronjobs.batch"}

// BenchmarkGrowth_Controllers reports the CPU time of a change for one controller next to others of the same module
// that ignore it: they have another namespace, other kinds, or the same objects and a predicate that hides it.
func BenchmarkGrowth_Controllers(b *testing.B) {
	onlyNamed(b, "Growth")
	cluster := devclustertest.Own(b)
	ns := populate(b, cluster, configMaps, latencyObjects, smallConfigMap)
	for b.Loop() {
		for _, others := range uninterested {
			for _, n := range []int{1, 10, 100} {
				least := time.Duration(math.MaxInt64)
				for range growthRounds {
					least = min(least, eventCost(b, cluster, ns, n, others.entry))
				}
				b.ReportMetric(float64(least.Nanoseconds())/1000, fmt.Sprintf("µs/event-%s-%d", others.name, n))
				b.Logf("%3d controllers, the others %s: %v of CPU for an event", n, others.name, least)
			}
		}
		b.ReportMetric(0, "ns/op") // meaningless: it is for all of them
	}
}

// eventCost is the CPU time of a change in a process with the given number of controllers, the first of which handles
// it.
func eventCost(b *testing.B, cluster *devcluster.Cluster, ns string, controllers int, entry func(i int, ns string) string) time.Duration {
	b.Helper()
	wasm, err := filepath.Abs("../testdata/wasm/empty.wasm")
	if err != nil {
		b.Fatal(err)
	}
	file := "apiVersion: wasmctl.dev/v1\nkind: Controllers\ncontrollers:\n"
	for i := range controllers {
		wants := fmt.Sprintf("for: configmaps, namespaces: %s", ns)
		if i > 0 {
			wants = entry(i, ns)
		}
		file += fmt.Sprintf("- {name: c-%d, module: %s, %s}\n", i, wasm, wants)
	}
	path := filepath.Join(b.TempDir(), "controllers.yaml")
	if err := os.WriteFile(path, []byte(file), 0o600); err != nil {
		b.Fatal(err)
	}
	o := contender{"wasmctl", func(j job, metrics string) *exec.Cmd { return wasmctlCommand(j, metrics, "-f", path) }}.
		observe(b, job{kubeconfig: cluster.Kubeconfig(), controllers: 2, seldom: true})
	o.awaitReconciles(b, latencyObjects)
	defer o.stop(b)
	close(o.enough) // serving the metrics of a hundred controllers takes more time than the measured work
	<-time.After(settled)
	return o.costOf(b, cluster, ns)
}

// costOf changes each object several times, and returns the CPU time per change, including its run.
func (p *observed) costOf(b *testing.B, cluster *devcluster.Cluster, ns string) time.Duration {
	b.Helper()
	client, err := dynamic.NewForConfig(cluster.RESTConfig())
	if err != nil {
		b.Fatal(err)
	}
	api := client.Resource(configMaps).Namespace(ns)
	before := reconcilesAt(p.metrics)
	begin := onCPU(b, p.cmd.Process.Pid)
	for round := range growthEvents / latencyObjects { // no object changes again before it has run
		patch := fmt.Appendf(nil, `{"data":{"change":"%d %d"}}`, round, time.Now().UnixNano())
		inParallel(latencyObjects, func(i int) {
			if _, err := api.Patch(b.Context(), nameOf(i), types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
				b.Error(err)
			}
		})
		<-time.After(settled / 10)
	}
	took := onCPU(b, p.cmd.Process.Pid) - begin
	if ran := reconcilesAt(p.metrics) - before; ran != growthEvents {
		b.Errorf("%d changes had %d runs", growthEvents, ran)
	}
	return took / growthEvents
}
