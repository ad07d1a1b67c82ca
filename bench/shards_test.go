// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"bytes"
	"fmt"
	"os/exec"
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

// dnsRecords is the workload of the example dnsrecord, which watches only the records: about five requests for each.
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

// zonesOfBench is the number of zones: enough for replicas to rarely conflict.
const zonesOfBench = 300

// applyZones creates the zones and the CRD.
func applyZones(b *testing.B, cluster *devcluster.Cluster) {
	b.Helper()
	devclustertest.ApplyFile(b, cluster, "../examples/dnsrecord/crd.yaml")
	objects := "apiVersion: v1\nkind: Namespace\nmetadata: {name: dns-system}\n"
	for i := range zonesOfBench {
		objects += fmt.Sprintf("---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: zone%d, namespace: dns-system}\n", i)
	}
	devclustertest.Apply(b, cluster, []byte(objects))
}

// dnsRecord is the module for this workload.
const dnsRecord = "../bin/examples/dnsrecord.wasm"

// slotsOfBench is the number of slots.
const slotsOfBench = 64

// replicas are processes that share the objects of a namespace.
type replicas struct {
	b          *testing.B
	r          *running // resource of the objects
	ns, config string
	list       []*exec.Cmd
	logs       []*replicaLog
	metrics    []string // where they serve metrics
}

// replicaLog is the output of a replica.
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

// add starts a replica with one worker, so that it is limited by the latency of the API server.
func (s *replicas) add() {
	s.b.Helper()
	s.start(s.config, dnsRecord, "--concurrency", "1")
}

// start starts a replica.
func (s *replicas) start(kubeconfig string, args ...string) {
	s.b.Helper()
	metrics := freeAddress(s.b)
	cmd := exec.Command("../bin/wasmctl", append([]string{
		"run", "--grant-manifest", "--socket", "none", "-v", "--metrics-address", metrics,
		"--log-format", "json", "--kubeconfig", kubeconfig, "-n", s.ns, "--shards", fmt.Sprint(slotsOfBench),
		"--leader-elect-resource-namespace", s.ns, "--leader-elect-lease-duration", "60s", "--leader-elect-renew-deadline", "40s",
	}, args...)...)
	log := &replicaLog{}
	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Start(); err != nil {
		s.b.Fatal(err)
	}
	s.b.Cleanup(func() { _ = cmd.Process.Kill() }) // the benchmark has failed
	s.list, s.logs, s.metrics = append(s.list, cmd), append(s.logs, log), append(s.metrics, "http://"+metrics+"/metrics")
}

// await waits until the given number of replicas run all slots, according to their logs: one that has written this to
// its Lease must still list the objects.
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
