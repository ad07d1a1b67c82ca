// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/wasmctl/wasmctl/bench/report"
	"github.com/wasmctl/wasmctl/devcluster"
	"github.com/wasmctl/wasmctl/devcluster/devclustertest"
)

// sizes determine the amount of work.
type sizes struct {
	rounds                               int
	pods, configMaps, restarted, written int
	// undisturbed is how long contenders have been idle when idle measures them. After two minutes, the Go runtime
	// collects garbage without another reason.
	undisturbed time.Duration
}

var (
	fullSizes  = sizes{rounds: 5, pods: 5_000, configMaps: 10_000, restarted: 1_000, written: 300, undisturbed: 150 * time.Second}
	shortSizes = sizes{rounds: 2, pods: 500, configMaps: 500, restarted: 100, written: 100, undisturbed: 5 * time.Second}
)

// peers compares contenders on one control plane.
type peers struct {
	b       *testing.B
	cluster *devcluster.Cluster
	sizes

	all []contender // wasmctl with Rust is first, if available
	run *report.Run
}

// BenchmarkPeers compares wasmctl with controller-runtime and kube-rs for the same tasks, and writes the results to the
// file WASMCTL_PEERS. -short makes it short, and BENCH_ROUNDS changes the number of rounds. make bench-peers runs it.
func BenchmarkPeers(b *testing.B) {
	onlyNamed(b, "Peers")
	p := newPeers(b)
	for _, w := range []struct {
		name string
		run  func()
	}{
		{"noop-pods", p.noopPods},
		{"noop-configmaps", p.noopConfigMaps},
		{"restart", p.restart},
		{"controllers", p.controllers},
		{"configmapgenerator", p.generate},
		{"labeler", p.label},
	} {
		b.Run(w.name, func(b *testing.B) {
			p.b = b
			w.run()
			p.run.Load = append(p.run.Load, loadAverage(b))
			b.ReportMetric(0, "ns/op") // meaningless: it is for all rounds of all contenders
			p.save()                   // the following steps may fail
		})
	}
}

// save writes the results so far.
func (p *peers) save() {
	p.b.Helper()
	path := os.Getenv("WASMCTL_PEERS")
	if path == "" || p.b.Failed() {
		return
	}
	if err := p.run.Save(path); err != nil {
		p.b.Fatal(err)
	}
}

func newPeers(b *testing.B) *peers {
	b.Helper()
	p := &peers{cluster: devclustertest.Own(b), sizes: fullSizes}
	if testing.Short() {
		p.sizes = shortSizes
	}
	if rounds := os.Getenv("BENCH_ROUNDS"); rounds != "" {
		n, err := strconv.Atoi(rounds)
		if err != nil || n < 1 {
			b.Fatalf("BENCH_ROUNDS=%s: a number above 0", rounds)
		}
		p.rounds = n
	}
	devclustertest.ApplyFile(b, p.cluster, "../examples/configmapgenerator/crd.yaml")
	p.run = &report.Run{
		Commit: output(b, ".", "git", "rev-parse", "HEAD"), Time: time.Now().UTC().Format(time.RFC3339),
		Machine:    fmt.Sprintf("%d CPUs, %s/%s, %s", runtime.NumCPU(), runtime.GOOS, runtime.GOARCH, runtime.Version()),
		Kubernetes: output(b, "../devcluster/server", "go", "list", "-m", "-f", "{{.Version}}", "k8s.io/kubernetes"),
		Load:       []string{loadAverage(b)}, Rounds: p.rounds,
	}
	p.all, p.run.Skipped = allContenders(b)
	return p
}

// output returns the output of a command.
func output(b *testing.B, dir, name string, args ...string) string {
	b.Helper()
	cmd := exec.Command(name, args...)
	cmd.Dir = dir
	out, err := cmd.Output()
	if err != nil {
		b.Fatalf("%s %s: %v", name, strings.Join(args, " "), err)
	}
	return strings.TrimSpace(string(out))
}

// loadAverage returns that of the machine in the last minute.
func loadAverage(b *testing.B) string {
	b.Helper()
	text, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		b.Fatal(err)
	}
	average, _, _ := strings.Cut(string(text), " ")
	return average
}

// figures are the results of one round, by name of the metric.
type figures = map[string]float64

// compare measures each contender in each round, in rotating order, after one warm-up round, which compiles modules and
// fills the caches of the API server.
func (p *peers) compare(w report.Workload, all []contender, measure func(c contender) figures) {
	p.b.Helper()
	for _, c := range all {
		w.Rows = append(w.Rows, report.Row{Contender: c.name})
		measure(c)
	}
	for round := range p.rounds {
		for k := range all {
			i := (round + k) % len(all)
			found := measure(all[i])
			p.b.Logf("round %d: %-35s %.3v", round, all[i].name, found)
			w.Rows[i].Add(found)
		}
	}
	p.run.Workloads = append(p.run.Workloads, w)
}
