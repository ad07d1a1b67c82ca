package bench

import (
	"bytes"
	"fmt"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/wasmctl/wasmctl/devcluster"
	"github.com/wasmctl/wasmctl/devcluster/devclustertest"
)

// dnsRecords is the work of the example dnsrecord, of which nothing is watched but the
// records: about five requests for each.
var dnsRecords = work{
	resource: schema.GroupVersionResource{Group: "examples.wasmctl.dev", Version: "v1", Resource: "dnsrecords"}, kind: "DNSRecord",
	spec: func(i int) map[string]any {
		return map[string]any{"zone": fmt.Sprint("zone", i%zonesOfBench), "hostname": fmt.Sprint("h", hostnames.Add(1)), "address": "192.0.2.1"}
	},
	done: func(o *unstructured.Unstructured) bool {
		conditions, _, _ := unstructured.NestedSlice(o.Object, "status", "conditions")
		return len(conditions) == 1 && conditions[0].(map[string]any)["status"] == "True"
	},
}

// hostnames counts them: each belongs to one record.
var hostnames atomic.Int64

// zonesOfBench is how many zones they are in: so many that replicas hardly meet.
const zonesOfBench = 300

// applyZones makes the zones, and the CRD.
func applyZones(b *testing.B, cluster *devcluster.Cluster) {
	b.Helper()
	devclustertest.ApplyFile(b, cluster, "../examples/dnsrecord/crd.yaml")
	objects := "apiVersion: v1\nkind: Namespace\nmetadata: {name: dns-system}\n"
	for i := range zonesOfBench {
		objects += fmt.Sprintf("---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: zone%d, namespace: dns-system}\n", i)
	}
	devclustertest.Apply(b, cluster, []byte(objects))
}

// slotsOfBench is how many slots the objects are split into.
const slotsOfBench = 64

// replicas are processes that share the objects of a namespace.
type replicas struct {
	b          *testing.B
	r          *running // the objects
	ns, config string
	list       []*exec.Cmd
	logs       []*replicaLog
}

// replicaLog is what a replica has printed.
type replicaLog struct {
	mu   sync.Mutex
	text bytes.Buffer // guarded by mu
}

func (l *replicaLog) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *replicaLog) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

func newReplicas(b *testing.B, cluster *devcluster.Cluster, kubeconfig string) *replicas {
	b.Helper()
	s := &replicas{b: b, config: kubeconfig}
	s.r, s.ns = attach(b, cluster, dnsRecords)
	return s
}

// add starts a replica with one worker, so that it is bound by the API server's
// distance.
func (s *replicas) add() {
	s.b.Helper()
	s.start(s.config, "../bin/examples/dnsrecord.wasm", "--concurrency", "1")
}

// start starts a replica.
func (s *replicas) start(kubeconfig string, args ...string) {
	s.b.Helper()
	cmd := exec.Command("../bin/wasmctl", append([]string{
		"run", "--grant-manifest", "--socket", "none", "-v",
		"--log-format", "json", "--kubeconfig", kubeconfig, "-n", s.ns, "--shards", fmt.Sprint(slotsOfBench),
		"--leader-elect-resource-namespace", s.ns, "--leader-elect-lease-duration", "60s", "--leader-elect-renew-deadline", "40s",
	}, args...)...)
	log := &replicaLog{}
	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Start(); err != nil {
		s.b.Fatal(err)
	}
	s.b.Cleanup(func() { _ = cmd.Process.Kill() }) // where the benchmark has failed
	s.list, s.logs = append(s.list, cmd), append(s.logs, log)
}

// await waits until so many replicas run all slots, by what they say: one that has
// written it to its Lease has yet to look at the objects.
func (s *replicas) await(n int) {
	s.b.Helper()
	for limit := time.Now().Add(3 * time.Minute); ; <-time.After(20 * time.Millisecond) {
		open, holders := 0, 0
		for _, log := range s.logs {
			text := log.String()
			if n := strings.Count(text, `"shards: slot is open"`) - strings.Count(text, `"shards: slot is closing"`); n > 0 {
				open, holders = open+n, holders+1
			}
		}
		if open == slotsOfBench && holders == n {
			return
		}
		if time.Now().After(limit) {
			s.b.Fatalf("%d slots are run, by %d replicas of %d\n%.3000s", open, holders, n, s.logs[0])
		}
	}
}

func (s *replicas) signal(sig syscall.Signal) {
	for _, cmd := range s.list {
		signal(s.b, cmd, sig)
	}
}

// stop stops all replicas.
func (s *replicas) stop() {
	s.b.Helper()
	s.r.watch.Stop()
	s.signal(syscall.SIGTERM)
	for i, cmd := range s.list {
		if err := cmd.Wait(); err != nil {
			s.b.Errorf("replica %d: %v\n%s", i, err, s.logs[i])
		}
	}
}

// capacityTime is for how long replicas with work for longer are watched.
const capacityTime = 20 * time.Second

// BenchmarkShards_Capacity reports how many runs a second one replica does and how many
// five do together, while each has objects to run and the API server is what they wait
// for: 5 or 25 ms away, with one worker each. (5 ms away, five and the API server need
// most of a machine of two cores.) They are stopped while the objects are created, as in
// compare.
func BenchmarkShards_Capacity(b *testing.B) {
	cluster := devclustertest.Own(b, "--feature-gates=ShardedListAndWatch=true") // the server selects
	applyZones(b, cluster)
	for _, delay := range []time.Duration{5 * time.Millisecond, 25 * time.Millisecond} {
		b.Run(delay.String(), func(b *testing.B) { benchCapacity(b, cluster, delay) })
	}
}

func benchCapacity(b *testing.B, cluster *devcluster.Cluster, delay time.Duration) {
	kubeconfig := distant(b, cluster, delay)
	each := int(capacityTime / delay / 4) // a run is more than two requests, there and back
	for b.Loop() {
		var rates [2]float64
		var ratios []float64
		for range 3 {
			for i, n := range []int{1, 5} {
				s := newReplicas(b, cluster, kubeconfig)
				for range n {
					s.add()
				}
				s.await(n)
				s.signal(syscall.SIGSTOP)
				s.r.create(b, "g", n*each)
				s.signal(syscall.SIGCONT)
				<-time.After(calm / 20)
				before := s.lines(`"msg":"reconciled"`)
				begin := time.Now()
				<-time.After(capacityTime)
				rates[i] = float64(s.lines(`"msg":"reconciled"`)-before) / time.Since(begin).Seconds()
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

// lines counts the lines of all replicas' logs with this text.
func (s *replicas) lines(text string) (n int) {
	for _, log := range s.logs {
		n += strings.Count(log.String(), text)
	}
	return n
}
