package bench

import (
	"flag"
	"fmt"
	"math"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"github.com/wasmctl/wasmctl/devcluster"
	"github.com/wasmctl/wasmctl/devcluster/devclustertest"
)

const (
	// scaleObjects is how many objects there are.
	scaleObjects = 100_000
	// scaleRounds is how often each contender syncs and resyncs.
	scaleRounds = 3
	// calm is how long contenders are left alone before what they take is measured.
	calm = 45 * time.Second
	// idle is how long they are watched then: as long as the Go runtime waits for
	// a cause before it collects without one, so that each has one collection.
	idle = 2 * time.Minute
)

// onlyNamed skips a benchmark that takes long, unless -bench names it.
func onlyNamed(b *testing.B, name string) {
	b.Helper()
	if pattern := flag.Lookup("test.bench").Value.String(); !strings.Contains(pattern, name) {
		b.Skipf("SKIPPED: takes minutes: name it to run it: make bench BENCH=%s", name)
	}
}

// BenchmarkScale_ConfigMaps compares controllers of 100,000 small ConfigMaps.
// Typed clients read them as protobuf. See scale.
func BenchmarkScale_ConfigMaps(b *testing.B) {
	onlyNamed(b, "Scale")
	scale(b, configMaps, scaleObjects, smallConfigMap)
}

// BenchmarkScale_Pods compares controllers of 10,000 pods of 5 KB. See scale.
func BenchmarkScale_Pods(b *testing.B) {
	onlyNamed(b, "Scale")
	scale(b, schema.GroupVersionResource{Version: "v1", Resource: "pods"}, scaleObjects/10, largePod)
}

// largePod is a pod of four containers.
func largePod(i int) map[string]any {
	var containers []any
	for c := range 4 {
		var env []any
		for k := range 12 {
			env = append(env, map[string]any{"name": fmt.Sprint("VARIABLE_", k), "value": fmt.Sprint("the value of pod ", i)})
		}
		containers = append(containers, map[string]any{
			"name": fmt.Sprint("c", c), "image": "registry.example/team/app:v1.2.3", "env": env, "command": []any{"/bin/server", "--verbose"},
			"ports":          []any{map[string]any{"containerPort": 8080 + c, "name": fmt.Sprint("http", c)}},
			"resources":      map[string]any{"limits": map[string]any{"cpu": "500m", "memory": "512Mi"}, "requests": map[string]any{"cpu": "100m", "memory": "128Mi"}},
			"livenessProbe":  map[string]any{"httpGet": map[string]any{"path": "/healthz", "port": 8080 + c}},
			"readinessProbe": map[string]any{"httpGet": map[string]any{"path": "/readyz", "port": 8080 + c}},
		})
	}
	return map[string]any{"apiVersion": "v1", "kind": "Pod", "metadata": scaleMeta(i), "spec": map[string]any{
		"automountServiceAccountToken": false, "containers": containers,
	}}
}

var configMaps = schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}

func smallConfigMap(i int) map[string]any {
	return map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap", "metadata": scaleMeta(i),
		"data": map[string]any{"config.yaml": settings(i)},
	}
}

// BenchmarkScale_CustomResources compares controllers of 100,000 small custom
// resources, which are JSON for every client. See scale.
func BenchmarkScale_CustomResources(b *testing.B) {
	onlyNamed(b, "Scale")
	scale(b, generators, scaleObjects, func(i int) map[string]any {
		return map[string]any{
			"apiVersion": generators.GroupVersion().String(), "kind": "ConfigMapGenerator", "metadata": scaleMeta(i),
			"spec": map[string]any{"content": settings(i)},
		}
	})
}

// scaleName is the name of the i-th object.
func scaleName(i int) string { return fmt.Sprintf("object-%06d", i) }

func scaleMeta(i int) map[string]any {
	return map[string]any{
		"name":        scaleName(i),
		"labels":      map[string]any{"app.kubernetes.io/name": fmt.Sprintf("shop-%d", i%1000), "app.kubernetes.io/part-of": "shop", "tier": "web"},
		"annotations": map[string]any{"example.com/team": "payments", "example.com/contact": "payments@example.com"},
	}
}

// settings is what the i-th object has for content, some 300 bytes.
func settings(i int) string {
	var s strings.Builder
	for line := range 8 {
		fmt.Fprintf(&s, "setting-%d: the value of object %d\n", line, i)
	}
	return s.String()
}

// figures are what is measured of a contender; the least of several rounds
// where there are several.
type figures struct {
	sync, syncCPU     float64 // s; start to synced; the CPU time includes that of the first pass
	first             float64 // s; start to the last of the first reconciles
	resync, resyncCPU float64 // s
	peak              float64 // MiB
	resident, heap    float64 // MiB, when idle
	idleCPU           float64 // ms/s
}

func (f *figures) least(g figures) {
	for _, p := range [][2]*float64{
		{&f.sync, &g.sync}, {&f.syncCPU, &g.syncCPU}, {&f.first, &g.first}, {&f.resync, &g.resync}, {&f.resyncCPU, &g.resyncCPU}, {&f.peak, &g.peak},
	} {
		*p[0] = math.Min(*p[0], *p[1])
	}
}

// scale creates the objects, which are in one namespace of a control plane of
// their own, and lets contenders sync, reconcile each object once, and once
// more when asked to: by turns, in a process of its own each time. Then all are
// left alone together, and what they take is measured.
func scale(b *testing.B, gvr schema.GroupVersionResource, n int, object func(i int) map[string]any) {
	cluster := devclustertest.Own(b)
	devclustertest.ApplyFile(b, cluster, "../examples/configmapgenerator/crd.yaml")
	ns := populate(b, cluster, gvr, n, object)
	all := contenders(b, "typed", "typed-stripped", "unstructured")
	for b.Loop() {
		found := make([]figures, len(all))
		for round := range scaleRounds {
			for i, c := range all {
				f := syncAndResync(b, cluster, c, ns, gvr.Resource, n)
				if b.Logf("%-15s round %d: %+.2f", c.name, round, f); round == 0 {
					found[i] = f
				}
				found[i].least(f)
			}
		}
		leaveAlone(b, cluster, all, found, ns, gvr.Resource, n)
		reportScale(b, all, found)
	}
}

// populate creates objects in a new namespace, whose name it returns.
func populate(b *testing.B, cluster *devcluster.Cluster, gvr schema.GroupVersionResource, n int, object func(i int) map[string]any) string {
	b.Helper()
	client, err := dynamic.NewForConfig(cluster.RESTConfig())
	if err != nil {
		b.Fatal(err)
	}
	ns := devclustertest.Namespace(b, cluster)
	begin := time.Now()
	var wg sync.WaitGroup
	numbers := make(chan int)
	for range 32 {
		wg.Go(func() {
			for i := range numbers {
				if _, err := client.Resource(gvr).Namespace(ns).Create(b.Context(), &unstructured.Unstructured{Object: object(i)}, metav1.CreateOptions{}); err != nil {
					b.Error(err)
				}
			}
		})
	}
	for i := range n {
		numbers <- i
	}
	close(numbers)
	wg.Wait()
	b.Logf("%d %s created in %.0f s", n, gvr.Resource, time.Since(begin).Seconds())
	if b.Failed() {
		b.FailNow()
	}
	return ns
}

// syncAndResync measures a contender from its start to its end.
func syncAndResync(b *testing.B, cluster *devcluster.Cluster, c contender, ns, resource string, n int) (f figures) {
	p := c.observe(b, cluster, ns, resource)
	s := p.awaitReconciles(b, n)
	cpu := p.cpu(b)
	f.sync, f.first, f.syncCPU = s.synced.Sub(p.started).Seconds(), s.last.Sub(p.started).Seconds(), cpu.Seconds()
	begin, before := time.Now(), s.reconciled
	signal(b, p.cmd, syscall.SIGUSR1)
	s = p.awaitReconciles(b, before+n)
	f.resync, f.resyncCPU = s.last.Sub(begin).Seconds(), (p.cpu(b) - cpu).Seconds()
	f.peak = p.stop(b)
	return f
}

// leaveAlone measures what contenders take that have nothing to do. The heap is
// what the collection without a cause leaves.
func leaveAlone(b *testing.B, cluster *devcluster.Cluster, all []contender, found []figures, ns, resource string, n int) {
	processes := make([]*observed, len(all))
	for i, c := range all {
		processes[i] = c.observe(b, cluster, ns, resource)
		processes[i].awaitReconciles(b, n)
	}
	before := make([]time.Duration, len(all))
	<-time.After(calm)
	for i, p := range processes {
		before[i] = p.cpu(b)
	}
	<-time.After(idle)
	for i, p := range processes {
		found[i].idleCPU = (p.cpu(b) - before[i]).Seconds() * 1000 / idle.Seconds()
	}
	for i, p := range processes {
		found[i].heap = p.await(b, "a collection without a cause", func(s sight) bool { return s.forced > 0 }).heap
	}
	<-time.After(calm) // the runtime gives memory back bit by bit
	for i, p := range processes {
		found[i].resident = resident(b, p.cmd.Process.Pid)
		p.stop(b)
	}
}

func reportScale(b *testing.B, all []contender, found []figures) {
	b.ReportMetric(0, "ns/op") // of no use: it is for all rounds of all
	for _, m := range []struct {
		unit  string
		value func(f *figures) float64
	}{
		{"sync-s", func(f *figures) float64 { return f.sync }},
		{"first-pass-s", func(f *figures) float64 { return f.first }},
		{"first-pass-cpu-s", func(f *figures) float64 { return f.syncCPU }},
		{"resync-s", func(f *figures) float64 { return f.resync }},
		{"resync-cpu-s", func(f *figures) float64 { return f.resyncCPU }},
		{"peak-MiB", func(f *figures) float64 { return f.peak }},
		{"resident-MiB", func(f *figures) float64 { return f.resident }},
		{"heap-MiB", func(f *figures) float64 { return f.heap }},
		{"idle-cpu-ms/s", func(f *figures) float64 { return f.idleCPU }},
	} {
		for i := range found {
			b.ReportMetric(m.value(&found[i]), all[i].name+"-"+m.unit)
		}
		b.Logf("%-17s %s", m.unit, row(len(found), func(i int) float64 { return m.value(&found[i]) }))
	}
}

// row shows a figure of each contender, and how many times that of the first it
// is.
func row(n int, value func(i int) float64) string {
	var s strings.Builder
	for i := range n {
		fmt.Fprintf(&s, "%10.2f (%.2fx)", value(i), value(i)/value(0))
	}
	return s.String()
}
