// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"

	"github.com/wasmctl/wasmctl/devcluster"
	"github.com/wasmctl/wasmctl/devcluster/devclustertest"
)

const (
	latencyObjects = 200             // number of objects that are changed in turn
	latencyRounds  = 5               // rounds of each contender, in turns
	latencyTime    = 6 * time.Second // duration of the changes in one round
)

// BenchmarkLatency_Idle measures the time from the request that changes an object to the beginning of its reconcile, at
// 50 changes per second. It includes the API server; "watch" is a bare watch that only reads, which is a lower bound
// for every controller.
func BenchmarkLatency_Idle(b *testing.B) { latency(b, 50) }

// BenchmarkLatency_Load is the same at 400 changes a second.
func BenchmarkLatency_Load(b *testing.B) { latency(b, 400) }

// changed records, for each object, when its change was requested.
type changed struct {
	mu      sync.Mutex
	pending map[string]time.Time // guarded by mu; changes for which no reconcile has begun
	took    []time.Duration      // guarded by mu
}

// change records a change that is about to be requested. If two are pending, the first counts.
func (c *changed) change(object string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, waits := c.pending[object]; !waits {
		c.pending[object] = time.Now()
	}
}

// reconciled records a reconcile.
func (c *changed) reconciled(r reconcile) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if asked, waits := c.pending[r.object]; waits && !r.begun.Before(asked) {
		c.took = append(c.took, r.begun.Sub(asked))
		delete(c.pending, r.object)
	}
}

func (c *changed) waiting() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.pending)
}

// lag is the median and the 99th percentile of latencies, in ms.
type lag struct{ p50, p99 float64 }

// latency reports the lag of each contender: the lowest of its rounds.
func latency(b *testing.B, perSecond int) {
	onlyNamed(b, "Latency")
	cluster := devclustertest.Shared(b)
	ns := populate(b, cluster, configMaps, latencyObjects, smallConfigMap)
	client, err := dynamic.NewForConfig(cluster.RESTConfig())
	if err != nil {
		b.Fatal(err)
	}
	load := &load{client.Resource(configMaps).Namespace(ns), ns, perSecond}
	all := append([]contender{emptyModule}, programs(b, "typed", "unstructured")...)
	for b.Loop() {
		found := make([][]lag, len(all)+1)
		for range latencyRounds {
			found[0] = append(found[0], lagOf(load.watch(b)))
			for i, c := range all {
				found[i+1] = append(found[i+1], lagOf(load.controller(b, cluster, c)))
			}
		}
		b.ReportMetric(0, "ns/op") // meaningless: it is for all rounds of all contenders
		reportLag(b, "watch", found[0])
		for i, c := range all {
			reportLag(b, c.name, found[i+1])
		}
	}
}

func lagOf(took []time.Duration) lag {
	slices.Sort(took)
	ms := func(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
	return lag{ms(took[len(took)/2]), ms(took[len(took)*99/100])}
}

func reportLag(b *testing.B, name string, rounds []lag) {
	least := rounds[0]
	for _, l := range rounds {
		least.p50, least.p99 = math.Min(least.p50, l.p50), math.Min(least.p99, l.p99)
	}
	unit := strings.ReplaceAll(name, ", ", "-") // without a space
	b.ReportMetric(least.p50, unit+"-p50-ms")
	b.ReportMetric(least.p99, unit+"-p99-ms")
	b.Logf("%-15s p50 %6.2f ms, p99 %6.2f ms; rounds: %.2f", name, least.p50, least.p99, rounds)
}

// load changes objects in a namespace at a rate per second.
type load struct {
	api       dynamic.ResourceInterface
	namespace string
	perSecond int
}

// controller is one round of a contender, in its own process.
func (l *load) controller(b *testing.B, cluster *devcluster.Cluster, c contender) []time.Duration {
	b.Helper()
	p := c.observe(b, job{kubeconfig: cluster.Kubeconfig(), namespace: l.namespace, resource: configMaps.Resource, logRuns: true})
	p.awaitReconciles(b, latencyObjects)
	defer p.stop(b)
	return l.run(b, func(notify func(reconcile)) {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.notify = notify
	})
}

// watch is one round of a bare watch, in this process.
func (l *load) watch(b *testing.B) []time.Duration {
	b.Helper()
	w, err := l.api.Watch(b.Context(), metav1.ListOptions{})
	if err != nil {
		b.Fatal(err)
	}
	var wg sync.WaitGroup
	defer wg.Wait()
	defer w.Stop()
	return l.run(b, func(notify func(reconcile)) {
		wg.Go(func() {
			for ev := range w.ResultChan() {
				if o, ok := ev.Object.(*unstructured.Unstructured); ok && ev.Type == watch.Modified {
					notify(reconcile{o.GetNamespace() + "/" + o.GetName(), time.Now()})
				}
			}
		})
	})
}

// run changes objects and returns how long each change took until it was reconciled, as reported to the callback of
// begin. The first tenth is a warm-up and not counted.
func (l *load) run(b *testing.B, begin func(notify func(reconcile))) []time.Duration {
	b.Helper()
	c := &changed{pending: map[string]time.Time{}}
	begin(c.reconciled)
	tick := time.NewTicker(time.Second / time.Duration(l.perSecond))
	defer tick.Stop()
	var wg sync.WaitGroup
	for i := range l.perSecond * int(latencyTime/time.Second) {
		<-tick.C
		wg.Go(func() { l.change(b, c, i) })
	}
	wg.Wait()
	for limit := time.After(roundLimit); c.waiting() > 0; {
		select {
		case <-tick.C:
		case <-limit:
			b.Fatalf("%d changes were not reconciled", c.waiting())
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.took[len(c.took)/10:]
}

func (l *load) change(b *testing.B, c *changed, i int) {
	name := nameOf(i % latencyObjects)
	patch := fmt.Appendf(nil, `{"data":{"change":"%d %d"}}`, i, time.Now().UnixNano())
	c.change(l.namespace + "/" + name)
	if _, err := l.api.Patch(b.Context(), name, types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
		b.Error(err)
	}
}
