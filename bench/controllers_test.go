package bench

import (
	"fmt"

	"github.com/wasmctl/wasmctl/bench/report"
)

// manyControllers are how many controllers are in one process.
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
