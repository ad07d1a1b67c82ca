// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"bytes"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/wasmctl/wasmctl/devcluster/devclustertest"
)

// operator is an ordinary operator with controller-runtime, built from the same files as a program and as a module.
type operator struct {
	work

	crd, binary, wasm string
}

// BenchmarkOperator_APIBound compares an operator as a module with its own binary, both with their defaults: each
// reconciles one Site at a time, with a Deployment, an Event and a status. The API server is 5 ms away. See compare.
func BenchmarkOperator_APIBound(b *testing.B) {
	o := buildOperator(b, "")
	devclustertest.ApplyFile(b, devclustertest.Shared(b), o.crd)
	compare(b, comparison{work: o.work, objects: 200, rounds: 10, delay: 5 * time.Millisecond, native: o.native, wasm: o.module})
}

// BenchmarkOperator_Memory reports the resident memory of ten different operators: of their ten processes together, and
// of the one that runs the ten modules. Each has reconciled ten objects. The peak is that of the one process, and
// includes loading.
func BenchmarkOperator_Memory(b *testing.B) {
	const n = 10
	cluster := devclustertest.Shared(b)
	var all []*operator
	file := "apiVersion: wasmctl.dev/v1\nkind: Controllers\ndefaults: {grant: {manifest: true}}\ncontrollers:\n"
	for i := range n {
		o := buildOperator(b, fmt.Sprint(i))
		devclustertest.ApplyFile(b, cluster, o.crd)
		all, file = append(all, o), file+fmt.Sprintf("- {name: operator-%d, module: %s}\n", i, o.wasm)
	}
	path := filepath.Join(b.TempDir(), "controllers.yaml")
	if err := os.WriteFile(path, []byte(file), 0o600); err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		natives := make([]*running, n)
		for i, o := range all {
			natives[i] = start(b, cluster, o.work, func(ns string) *exec.Cmd { return o.native(cluster.Kubeconfig(), ns) })
		}
		b.ReportMetric(residentAfterWork(b, natives), "native-MiB")
		for _, r := range natives {
			r.stop(b)
		}
		modules := []*running{start(b, cluster, all[0].work, func(string) *exec.Cmd {
			return exec.Command("../bin/wasmctl", "run", "-f", path, "--kubeconfig", cluster.Kubeconfig(), "--socket", "none")
		})}
		for _, o := range all[1:] {
			r, _ := attach(b, cluster, o.work)
			modules = append(modules, r)
		}
		b.ReportMetric(residentAfterWork(b, modules), "wasm-MiB")
		b.ReportMetric(memory(b, modules[0].cmd.Process.Pid, "VmHWM"), "wasm-peak-MiB")
		modules[0].stop(b)
	}
}

// residentAfterWork makes each reconcile ten objects, and returns the resident memory of their processes, in MiB.
func residentAfterWork(b *testing.B, all []*running) (sum float64) {
	b.Helper()
	for _, r := range all {
		r.create(b, "g", 10)
		r.measure(b, "g", 10)
	}
	for _, r := range all {
		if r.cmd != nil {
			sum += resident(b, r.cmd.Process.Pid)
		}
	}
	return sum
}

// buildOperator builds the operator; name distinguishes its group from those of others.
func buildOperator(b *testing.B, name string) *operator {
	b.Helper()
	dir, group := b.TempDir(), "apps"+name+".wasmctl.test"
	source := os.DirFS("../guest-sdk/controller-runtime/testdata/webapp")
	files, err := fs.Glob(source, "*")
	if err != nil {
		b.Fatal(err)
	}
	write := func(name string, data []byte) {
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o600); err != nil {
			b.Fatal(err)
		}
	}
	for _, file := range files {
		data, err := fs.ReadFile(source, file)
		if err != nil {
			b.Fatal(err)
		}
		write(file, bytes.ReplaceAll(data, []byte("apps.wasmctl.test"), []byte(group)))
	}
	write("go.mod", []byte("module example.com/operator\n\ngo 1.26.0\n\nrequire sigs.k8s.io/controller-runtime v0.24.1\n"))
	o := &operator{crd: filepath.Join(dir, "crd.yaml"), binary: filepath.Join(dir, "operator"), wasm: filepath.Join(dir, "operator.wasm"), work: sites(group)}
	run(b, dir, "go", "mod", "tidy")
	run(b, dir, "go", "build", "-o", o.binary, ".")
	run(b, ".", "../bin/wasmctl", "build", dir, "--sdk", "..", "--file", o.wasm)
	return o
}

func run(b *testing.B, dir, name string, args ...string) {
	b.Helper()
	cmd := exec.Command(name, args...)
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		b.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, out)
	}
}

// sites is the workload of the operator.
func sites(group string) work {
	return work{
		resource: schema.GroupVersionResource{Group: group, Version: "v1", Resource: "sites"}, kind: "Site",
		spec: func(int) map[string]any { return map[string]any{"image": "nginx"} },
		done: func(o *unstructured.Unstructured) bool {
			list, _, _ := unstructured.NestedSlice(o.Object, "status", "conditions")
			return len(list) > 0
		},
	}
}

// native runs the program. It watches all namespaces.
func (o *operator) native(kubeconfig, _ string) *exec.Cmd {
	cmd := exec.Command(o.binary, "-health-probe-bind-address", "0")
	cmd.Env = append(os.Environ(), "KUBECONFIG="+kubeconfig)
	return cmd
}

// module runs the module. It watches all namespaces.
func (o *operator) module(kubeconfig, _ string) *exec.Cmd {
	return exec.Command("../bin/wasmctl", "run", o.wasm, "--grant-manifest", "--kubeconfig", kubeconfig, "--socket", "none")
}
