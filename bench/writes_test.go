// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"fmt"
	"os/exec"
	"syscall"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/wasmctl/wasmctl/bench/report"
)

// generate measures the example configmapgenerator, which makes two writes for each object. Deletions are not measured:
// the garbage collector does all the work.
func (p *peers) generate() {
	p.compare(report.Workload{
		Name: "configmapgenerator", Title: "ConfigMapGenerator",
		About: fmt.Sprintf("%d generators are created and then changed, while the controller is stopped. It then applies a ConfigMap and a status "+
			"for each, on two CPUs that the API server needs too.", p.written),
		Metrics: []report.Metric{
			{Name: "created objects a second", Chart: true},
			{Name: "changed objects a second", Chart: true},
			{Name: "CPU of an object", Unit: "µs", Chart: true},
			{Name: "resident memory", Unit: "MiB", Chart: true},
		},
	}, withoutMetadata(p.all), p.createAndUpdate)
}

func (p *peers) createAndUpdate(c contender) figures {
	b, n := p.b, p.written
	r := p.start(c, generator)
	pid := r.cmd.Process.Pid
	f, cpu := figures{}, cpuTime(b, pid)
	f["created objects a second"] = r.whileStopped(b, func() { r.create(b, "g", n) }, n)
	r.done = observed2
	f["changed objects a second"] = r.whileStopped(b, func() { r.change(b, "g", n) }, n)
	f["CPU of an object"] = float64((cpuTime(b, pid) - cpu).Microseconds()) / float64(2*n)
	f["resident memory"] = resident(b, pid)
	r.stop(b)
	return f
}

// labeled is the workload of pods that get the name of their node as a label: the guests and the peers recognize such
// pods by it.
var labeled = work{
	resource: pods, kind: "Pod",
	spec: func(i int) map[string]any {
		spec := largePod(i)["spec"].(map[string]any)
		spec["nodeName"] = fmt.Sprint("label-", i%100)
		return spec
	},
	done: func(o *unstructured.Unstructured) bool { return o.GetLabels()["node"] != "" },
}

// label measures controllers that patch each new pod.
func (p *peers) label() {
	p.compare(report.Workload{
		Name: "labeler", Title: "Pod labeler",
		About: fmt.Sprintf("%d pods are created while the controller is stopped. It then labels each with a merge patch.", p.written),
		Metrics: []report.Metric{
			{Name: "pods a second", Chart: true},
			{Name: "CPU of a pod", Unit: "µs", Chart: true},
			{Name: "resident memory", Unit: "MiB"},
		},
	}, withoutMetadata(p.all), func(c contender) figures {
		r := p.start(c, labeled)
		pid := r.cmd.Process.Pid
		f, cpu := figures{}, cpuTime(p.b, pid)
		f["pods a second"] = r.whileStopped(p.b, func() { r.create(p.b, "g", p.written) }, p.written)
		f["CPU of a pod"] = float64((cpuTime(p.b, pid) - cpu).Microseconds()) / float64(p.written)
		f["resident memory"] = resident(p.b, pid)
		r.stop(p.b)
		return f
	})
}

// start starts a contender in a namespace of its own.
func (p *peers) start(c contender, w work) *running {
	p.b.Helper()
	return start(p.b, p.cluster, w, func(ns string) *exec.Cmd {
		return c.command(job{kubeconfig: p.cluster.Kubeconfig(), namespace: ns, resource: w.resource.Resource}, freeAddress(p.b))
	})
}

// whileStopped calls something for n objects while the controller is stopped, and returns how many it then reconciles
// per second.
func (r *running) whileStopped(b *testing.B, do func(), n int) float64 {
	b.Helper()
	signal(b, r.cmd, syscall.SIGSTOP)
	do()
	signal(b, r.cmd, syscall.SIGCONT)
	return r.measure(b, "g", n)
}

// change changes the spec of n generators with names of this prefix.
func (r *running) change(b *testing.B, prefix string, n int) {
	b.Helper()
	inParallel(n, func(i int) {
		patch := fmt.Appendf(nil, `{"spec":{"content":"changed %d"}}`, i)
		if _, err := r.api.Patch(b.Context(), fmt.Sprint(prefix, i), types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
			b.Error(err)
		}
	})
}
