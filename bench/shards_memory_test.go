// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/wasmctl/wasmctl/devcluster/devclustertest"
)

// BenchmarkShards_Memory reports what one replica receives and stores of 60,000 ConfigMaps of 2.5 KB, and what a
// replica that joins four others does, if the API server selects. A ratio of 0.2 is a fifth. Memory is the private
// memory of the process, without the binary.
func BenchmarkShards_Memory(b *testing.B) {
	onlyNamed(b, "Shards_Memory")
	const n = 60_000
	cluster := devclustertest.Own(b, "--feature-gates=ShardedListAndWatch=true")
	ns := populate(b, cluster, configMaps, n, func(i int) map[string]any {
		object := smallConfigMap(i)
		object["data"] = map[string]any{"config.yaml": strings.Repeat(settings(i), 7)}
		return object
	})
	for b.Loop() {
		var received, private [2]float64 // MB and MiB
		for i, count := range []int{1, 5} {
			s := &replicas{b: b, ns: ns}
			var link *atomic.Int64 // of the last one
			for range count {
				link = new(atomic.Int64)
				s.start(counted(b, cluster, 0, link), "../testdata/wasm/empty.wasm", "--for", "configmaps", "--leader-elect-resource-name", "bench")
				s.await(len(s.list))
			}
			<-time.After(calm)
			received[i] = float64(link.Load()) / 1e6
			private[i] = memory(b, s.list[count-1].Process.Pid, "RssAnon")
			s.signal(syscall.SIGTERM)
			for k, cmd := range s.list {
				if err := cmd.Wait(); err != nil {
					b.Errorf("replica %d: %v\n%s", k, err, s.logs[k])
				}
			}
			b.Logf("the last of %d replicas: %.0f MB received, %.0f MiB private", count, received[i], private[i])
		}
		b.ReportMetric(received[1]/received[0], "received-five/one")
		b.ReportMetric(private[1]/private[0], "memory-five/one")
	}
}
