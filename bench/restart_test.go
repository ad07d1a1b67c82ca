// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/wasmctl/wasmctl/bench/report"
)

// restart measures a new process that finds everything as the last one has left it: generators whose ConfigMaps match.
// wasmctl runs with and without --memo.
func (p *peers) restart() {
	var all []contender
	dir := p.b.TempDir()
	for _, c := range p.all {
		if strings.HasPrefix(c.name, "wasmctl") {
			all = append(all, withMemo(c, filepath.Join(dir, c.name)))
		}
	}
	all = append(all, withoutMetadata(p.all)...)
	namespaces := map[string]string{}
	for _, c := range all {
		namespaces[c.name] = populate(p.b, p.cluster, generators, p.restarted, largeGenerator)
		o := c.observe(p.b, p.restartJob(namespaces[c.name]))
		o.awaitReconciles(p.b, p.restarted)
		o.await(p.b, "calm", func(s sight) bool { return time.Since(s.last) > 3*time.Second })
		o.stop(p.b)
	}
	p.compare(report.Workload{
		Name: "restart", Title: "Restart where nothing has changed",
		About: fmt.Sprintf("%d ConfigMapGenerators, whose ConfigMaps are as they should be, until each was run or skipped. Only "+
			"`--memo` ([memo.md](memo.md)) skips: the others apply each ConfigMap again.", p.restarted),
		Metrics: []report.Metric{
			{Name: "start to last run", Unit: "s", Chart: true},
			{Name: "CPU until then", Unit: "s", Chart: true},
			{Name: "resident memory", Unit: "MiB"},
		},
	}, all, func(c contender) figures {
		o := c.observe(p.b, p.restartJob(namespaces[c.name]))
		s := o.awaitReconciles(p.b, p.restarted)
		f := figures{
			"start to last run": s.last.Sub(o.started).Seconds(), "CPU until then": o.cpu(p.b).Seconds(),
			"resident memory": resident(p.b, o.cmd.Process.Pid),
		}
		o.stop(p.b)
		return f
	})
}

func (p *peers) restartJob(namespace string) job {
	return job{kubeconfig: p.cluster.Kubeconfig(), namespace: namespace, resource: generators.Resource}
}

// withMemo returns a contender with a memo in a folder.
func withMemo(c contender, dir string) contender {
	return contender{c.name + ", memo", func(j job, metrics string) *exec.Cmd {
		j.memo = dir
		return c.command(j, metrics)
	}}
}

// withoutMetadata omits the contender that does not see the specs of generators.
func withoutMetadata(all []contender) (rest []contender) {
	for _, c := range all {
		if !strings.HasSuffix(c.name, "metadata") {
			rest = append(rest, c)
		}
	}
	return rest
}

// largeGenerator requests a ConfigMap of some 300 bytes.
func largeGenerator(i int) map[string]any {
	return map[string]any{
		"apiVersion": generators.GroupVersion().String(), "kind": generator.kind, "metadata": metaOf(i),
		"spec": map[string]any{"content": settings(i)},
	}
}
