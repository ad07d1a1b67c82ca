// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"fmt"
	"time"

	"github.com/wasmctl/wasmctl/bench/report"
)

// idleWindow is the duration of a round.
const idleWindow = 10 * time.Second

// idle measures the cost of idle contenders, side by side.
func (p *peers) idle(ns, resource string, n int) {
	w := report.Workload{
		Name: "idle", Title: "Nothing to do",
		About: fmt.Sprintf("The same %d pods, %.0f s after the first runs, side by side. A round is %.0f s. CPU time is counted in steps of 10 ms.",
			n, p.undisturbed.Seconds(), idleWindow.Seconds()),
		Metrics: []report.Metric{
			{Name: "CPU", Unit: "ms/s", Chart: true},
			{Name: "resident memory", Unit: "MiB", Chart: true},
			{Name: "Go heap", Unit: "MiB"},
		},
	}
	var all []*observed
	for _, c := range p.all {
		o := c.observe(p.b, job{kubeconfig: p.cluster.Kubeconfig(), namespace: ns, resource: resource})
		o.awaitReconciles(p.b, n)
		close(o.enough)
		all = append(all, o)
		w.Rows = append(w.Rows, report.Row{Contender: c.name})
	}
	<-time.After(p.undisturbed)
	for range p.rounds {
		before := make([]time.Duration, len(all))
		for i, o := range all {
			before[i] = o.cpu(p.b)
		}
		<-time.After(idleWindow)
		for i, o := range all {
			f := figures{
				"CPU":             (o.cpu(p.b) - before[i]).Seconds() * 1000 / idleWindow.Seconds(),
				"resident memory": resident(p.b, o.cmd.Process.Pid),
			}
			if heap := o.get().heap; heap > 0 { // it is a program in Go
				f["Go heap"] = heap
			}
			w.Rows[i].Add(f)
		}
	}
	for _, o := range all {
		o.stop(p.b)
	}
	p.run.Workloads = append(p.run.Workloads, w)
}
