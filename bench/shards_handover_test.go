// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"encoding/json"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/wasmctl/wasmctl/devcluster/devclustertest"
)

// BenchmarkShards_Handover reports how long slots are not run while their replica stops: from when it prevents new runs
// to when the next one starts runs.
func BenchmarkShards_Handover(b *testing.B) {
	cluster := devclustertest.Shared(b)
	applyZones(b, cluster)
	for b.Loop() {
		s := newReplicas(b, cluster, cluster.Kubeconfig())
		for range 3 {
			s.add()
		}
		s.await(3)
		s.r.create(b, "g", 600)
		s.r.measure(b, "g", 600)
		for i := range 5 { // a rolling restart, and two more replicas
			signal(b, s.list[i], syscall.SIGTERM)
			if err := s.list[i].Wait(); err != nil {
				b.Fatalf("%v\n%s", err, s.logs[i])
			}
			s.add()
			s.await(3)
		}
		s.list, s.logs = s.list[5:], append(s.logs[5:], s.logs[:5]...)
		s.stop()
		gaps := gapsOf(b, s.logs)
		b.ReportMetric(float64(len(gaps)), "handovers")
		b.ReportMetric(gaps[len(gaps)/2].Seconds()*1e3, "p50-ms")
		b.ReportMetric(gaps[len(gaps)*99/100].Seconds()*1e3, "p99-ms")
	}
}

// gapsOf returns how long slots were closed, from the logs of all replicas, the shortest first.
func gapsOf(b *testing.B, logs []*replicaLog) (gaps []time.Duration) {
	b.Helper()
	type line struct {
		Time time.Time
		Msg  string
		Slot int
	}
	var lines []line
	for _, log := range logs {
		for text := range strings.Lines(log.String()) {
			var l line
			if json.Unmarshal([]byte(text), &l) == nil && strings.HasPrefix(l.Msg, "shards: slot is") {
				lines = append(lines, l)
			}
		}
	}
	slices.SortFunc(lines, func(a, b line) int { return a.Time.Compare(b.Time) })
	closing := map[int]time.Time{}
	for _, l := range lines {
		switch since, closed := closing[l.Slot]; {
		case l.Msg == "shards: slot is closing":
			closing[l.Slot] = l.Time
		case l.Msg == "shards: slot is open" && closed:
			gaps = append(gaps, l.Time.Sub(since))
			delete(closing, l.Slot)
		}
	}
	slices.Sort(gaps)
	if len(gaps) == 0 {
		b.Fatal("no slot was handed over")
	}
	return gaps
}
