// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/wasmctl/wasmctl/devcluster"
	"github.com/wasmctl/wasmctl/devcluster/devclustertest"
)

// capacityTime is how long replicas that are fully loaded are observed.
const capacityTime = 20 * time.Second

// BenchmarkShards_Capacity reports how many runs per second one replica does, and five do together, while each has
// objects to run and waits for the API server: 5 or 25 ms away, with one worker each. A run of reads checks whether an
// object is as it should be: one request. A run of writes makes more than two, most of them writes: 5 ms away, five
// replicas and the API server need most of a machine with two cores.
func BenchmarkShards_Capacity(b *testing.B) {
	cluster := devclustertest.Own(b, "--feature-gates=ShardedListAndWatch=true") // the API server selects
	applyZones(b, cluster)
	for _, delay := range []time.Duration{5 * time.Millisecond, 25 * time.Millisecond} {
		kubeconfig := distant(b, cluster, delay)
		b.Run("writes/"+delay.String(), func(b *testing.B) {
			capacity(b, func(n int) *replicas { return writing(b, cluster, kubeconfig, n, n*int(capacityTime/delay/4)) })
		})
		b.Run("reads/"+delay.String(), func(b *testing.B) {
			done := newReplicas(b, cluster, cluster.Kubeconfig())
			done.start(done.config, dnsRecord, "--concurrency", "8")
			done.r.create(b, "g", readObjects)
			done.r.measure(b, "g", readObjects)
			done.stop()
			capacity(b, func(n int) *replicas { return reading(b, done, kubeconfig, n) })
		})
	}
}

// readObjects is the number of objects that replicas check, each once per second: more than they can.
const readObjects = 500

// writing starts replicas, and gives them new objects. The replicas are stopped while these are created, as in compare.
func writing(b *testing.B, cluster *devcluster.Cluster, kubeconfig string, n, objects int) *replicas {
	b.Helper()
	s := newReplicas(b, cluster, kubeconfig)
	for range n {
		s.add()
	}
	s.await(n)
	s.signal(syscall.SIGSTOP)
	s.r.create(b, "g", objects)
	s.signal(syscall.SIGCONT)
	return s
}

// reading starts replicas for objects that others have reconciled already, and waits until each object has run once: a
// replica writes the first status of an object that it receives.
func reading(b *testing.B, others *replicas, kubeconfig string, n int) *replicas {
	b.Helper()
	s := &replicas{b: b, r: others.r, ns: others.ns}
	for range n {
		s.start(kubeconfig, dnsRecord, "--concurrency", "1", "--resync", "1s")
	}
	s.await(n)
	for s.runs() < readObjects {
		<-time.After(calm / 20)
	}
	return s
}

// capacity reports the median of three rounds with one replica and with five, which are fully loaded for longer than
// capacityTime.
func capacity(b *testing.B, working func(n int) *replicas) {
	b.Helper()
	for b.Loop() {
		var rates [2]float64
		var ratios []float64
		for range 3 {
			for i, n := range []int{1, 5} {
				s := working(n)
				<-time.After(calm / 20)
				before, begin := s.runs(), time.Now()
				<-time.After(capacityTime)
				rates[i] = float64(s.runs()-before) / time.Since(begin).Seconds()
				s.stop()
			}
			b.Logf("one replica %.1f runs/s, five %.1f", rates[0], rates[1])
			ratios = append(ratios, rates[1]/rates[0])
		}
		slices.Sort(ratios)
		b.ReportMetric(rates[0], "one-runs/s")
		b.ReportMetric(rates[1], "five-runs/s")
		b.ReportMetric(ratios[1], "five/one")
	}
}

// runs sums up the runs of all replicas. Logs omit lines that come too often.
func (s *replicas) runs() (n int) {
	for _, url := range s.metrics {
		n += reconcilesAt(url)
	}
	return n
}
