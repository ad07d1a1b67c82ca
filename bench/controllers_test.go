// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"fmt"
	"testing"
	"time"

	"github.com/wasmctl/wasmctl/bench/report"
	"github.com/wasmctl/wasmctl/devcluster/devclustertest"
)

// manyControllers is the number of controllers in one process.
var manyControllers = []int{1, 10, 50}

// controllers measures processes with several controllers. Those of wasmctl are different
// modules.
func (p *peers) controllers() {
	const objects = 100
	ns := populate(p.b, p.cluster, pods, objects, largePod)
	w := report.Workload{
		Name: "controllers", Title: "Several controllers in one process",
		About: fmt.Sprintf("%d pods, of which each controller reads three fields. Controllers of wasmctl are different modules. Those of "+
			"the others are the same code: different programs are a process each, with the figures of one controller.", objects),
	}
	for _, what := range []report.Metric{{Name: "start", Unit: "s"}, {Name: "memory", Unit: "MiB"}} {
		for i, n := range manyControllers {
			w.Metrics = append(w.Metrics, report.Metric{Name: fmt.Sprint(what.Name, " of ", n), Unit: what.Unit, Chart: i > 0})
		}
	}
	p.compare(w, p.all, func(c contender) figures {
		f := figures{}
		for _, n := range manyControllers {
			o := c.observe(p.b, job{kubeconfig: p.cluster.Kubeconfig(), namespace: ns, resource: pods.Resource, controllers: n})
			s := o.awaitReconciles(p.b, n*objects)
			f[fmt.Sprint("start of ", n)] = s.last.Sub(o.started).Seconds()
			f[fmt.Sprint("memory of ", n)] = resident(p.b, o.cmd.Process.Pid)
			o.stop(p.b)
		}
		return f
	})
}

// BenchmarkControllers_Start: fifty different modules in one process, until each has reconciled one pod: first with an
// empty compilation cache, and then with a filled one. Then they become idle.
func BenchmarkControllers_Start(b *testing.B) {
	onlyNamed(b, "Controllers_Start")
	const modules, rest = 50, 20 * time.Second
	cluster := devclustertest.Shared(b)
	j := job{kubeconfig: cluster.Kubeconfig(), namespace: populate(b, cluster, pods, 1, largePod), resource: pods.Resource, controllers: modules}
	for _, c := range []contender{module(b, "Rust", ".rust.wasm"), module(b, "Go", ".wasm")} {
		b.Run(c.name, func(b *testing.B) {
			b.Setenv("XDG_CACHE_HOME", b.TempDir())
			seldom := j
			seldom.seldom = true // it compiles for half a minute, and frequent responses would take a tenth of that
			empty := c.observe(b, seldom)
			compiled := empty.awaitReconciles(b, modules)
			empty.stop(b)
			for b.Loop() {
				o := c.observe(b, j)
				s := o.awaitReconciles(b, modules)
				b.ReportMetric(s.last.Sub(o.started).Seconds(), "s")
				b.ReportMetric(o.cpu(b).Seconds(), "cpu-s")
				b.ReportMetric(resident(b, o.cmd.Process.Pid), "MiB")
				close(o.enough) // responding a hundred times per second would not be idle
				<-time.After(rest)
				b.ReportMetric(resident(b, o.cmd.Process.Pid), "MiB-at-rest")
				o.stop(b)
			}
			b.ReportMetric(compiled.last.Sub(empty.started).Seconds(), "s-empty")
			state := empty.cmd.ProcessState
			b.ReportMetric((state.UserTime() + state.SystemTime()).Seconds(), "cpu-s-empty") // including the compilers
			b.ReportMetric(0, "ns/op")                                                       // meaningless: it includes the idle time
		})
	}
}
