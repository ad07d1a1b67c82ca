// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"fmt"
	"syscall"
	"time"

	"github.com/wasmctl/wasmctl/bench/report"
)

// The number of requests for all objects in a round: enough for a while, but at least a few.
const (
	leastResyncs = 3
	mostResyncs  = 10
	resyncTime   = 2 * time.Second
)

var noopMetrics = []report.Metric{
	{Name: "start to synced", Unit: "s"},
	{Name: "start to last first run", Unit: "s", Chart: true},
	{Name: "CPU until then", Unit: "s"},
	{Name: "resident memory then", Unit: "MiB", Chart: true},
	{Name: "runs a second", Chart: true},
	{Name: "CPU of a run", Unit: "µs", Chart: true},
	{Name: "peak in the end", Unit: "MiB"},
}

func (p *peers) noopPods() {
	ns := populate(p.b, p.cluster, pods, p.pods, largePod)
	p.compare(report.Workload{
		Name: "noop-pods", Title: "Runs that change nothing: pods",
		About:   fmt.Sprintf("%d pods of 13 KB of JSON, half of which is managedFields. %s", p.pods, noopAbout),
		Metrics: noopMetrics,
	}, p.all, func(c contender) figures { return p.noop(c, ns, pods.Resource, p.pods) })
	p.idle(ns, pods.Resource, p.pods)
}

func (p *peers) noopConfigMaps() {
	ns := populate(p.b, p.cluster, configMaps, p.configMaps, smallConfigMap)
	p.compare(report.Workload{
		Name: "noop-configmaps", Title: "Runs that change nothing: ConfigMaps",
		About:   fmt.Sprintf("%d ConfigMaps with 300 bytes of data, and otherwise the same.", p.configMaps),
		Metrics: noopMetrics,
	}, p.all, func(c contender) figures { return p.noop(c, ns, configMaps.Resource, p.configMaps) })
}

const noopAbout = "A run reads three fields; with metadata only, they are others. Four objects are reconciled at a " +
	"time. After the first runs, all objects are asked for three to ten times: that gives runs a second, and their CPU."

// noop measures a contender from start to end.
func (p *peers) noop(c contender, ns, resource string, n int) figures {
	o := c.observe(p.b, job{kubeconfig: p.cluster.Kubeconfig(), namespace: ns, resource: resource})
	s := o.awaitReconciles(p.b, n)
	cpu := o.cpu(p.b)
	f := figures{
		"start to synced": s.synced.Sub(o.started).Seconds(), "start to last first run": s.last.Sub(o.started).Seconds(),
		"CPU until then": cpu.Seconds(), "resident memory then": resident(p.b, o.cmd.Process.Pid),
	}
	var runs int
	var took time.Duration
	for i := 0; i < leastResyncs || i < mostResyncs && took < resyncTime; i++ {
		before, begin := s.reconciled, time.Now()
		signal(p.b, o.cmd, syscall.SIGUSR1)
		s = o.awaitReconciles(p.b, before+n)
		runs, took = runs+n, took+s.last.Sub(begin)
	}
	f["runs a second"] = float64(runs) / took.Seconds()
	f["CPU of a run"] = float64((o.cpu(p.b) - cpu).Microseconds()) / float64(runs)
	f["peak in the end"] = o.stop(p.b)
	return f
}
