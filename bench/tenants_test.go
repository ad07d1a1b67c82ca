// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"

	"github.com/wasmctl/wasmctl/devcluster"
	"github.com/wasmctl/wasmctl/devcluster/devclustertest"
)

// objectsOfTenant is the number of objects that the module of each tenant reconciles.
const objectsOfTenant = 10

// idleInstances is how long an instance stays open without a run; the memory of a tenant is measured before and after.
const idleInstances = 5*time.Minute + 30*time.Second

var reconcilers = schema.GroupVersionResource{Group: "wasmctl.dev", Version: "v1alpha1", Resource: "reconcilers"}

// tenantRights let the account of each tenant do what the example needs, and read its module.
const tenantRights = `{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRoleBinding, metadata: {name: tenants},
  roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: cluster-admin},
  subjects: [{apiGroup: rbac.authorization.k8s.io, kind: Group, name: "system:serviceaccounts"}]}`

// BenchmarkTenants reports what wasmctl serve needs for 1 and for 50 tenants with a Go module each: CPU time until all
// are ready, CPU time while nothing happens, memory, and series of metrics.
func BenchmarkTenants(b *testing.B) {
	onlyNamed(b, "Tenants")
	cluster := devclustertest.Own(b)
	devclustertest.ApplyFile(b, cluster, "../examples/configmapgenerator/crd.yaml")
	devclustertest.Apply(b, cluster, []byte(output(b, ".", "../bin/wasmctl", "crds")))
	devclustertest.Apply(b, cluster, []byte(tenantRights))
	client := dynamic.NewForConfigOrDie(cluster.RESTConfig()).Resource(reconcilers)
	tenants := 0
	for b.Loop() {
		for _, n := range []int{1, 50} {
			for ; tenants < n; tenants++ {
				addTenant(b, cluster)
			}
			metrics := freeAddress(b)
			cmd := exec.Command("../bin/wasmctl", "serve", "--kubeconfig", cluster.Kubeconfig(), "--socket", "none", "--metrics-address", metrics)
			cmd.Stderr = b.Output()
			if err := cmd.Start(); err != nil {
				b.Fatal(err)
			}
			b.Cleanup(func() { _ = cmd.Process.Kill() }) // the benchmark has failed
			awaitReady(b, client, n)
			<-time.After(settled)
			report := func(value float64, unit string) { b.ReportMetric(value, fmt.Sprintf("%s-%d", unit, n)) }
			started := onCPU(b, cmd.Process.Pid)
			report(started.Seconds(), "CPU-s-start")
			report(resident(b, cmd.Process.Pid), "MiB")
			report(float64(seriesOf(b, "http://"+metrics+"/metrics")), "series")
			<-time.After(idleInstances)
			begin := onCPU(b, cmd.Process.Pid)
			<-time.After(6 * idleWindow)
			report(float64((onCPU(b, cmd.Process.Pid)-begin).Milliseconds())/(6*idleWindow).Seconds(), "CPU-ms/s-idle")
			report(resident(b, cmd.Process.Pid), "MiB-idle")
			signal(b, cmd, syscall.SIGTERM)
			_ = cmd.Wait()
		}
		b.ReportMetric(0, "ns/op") // meaningless: it is for all of them
	}
}

// addTenant creates a namespace with a Reconciler and its objects.
func addTenant(b *testing.B, cluster *devcluster.Cluster) {
	b.Helper()
	ns := devclustertest.Namespace(b, cluster)
	wasm, err := os.ReadFile("../bin/examples/configmapgenerator.wasm")
	if err != nil {
		b.Fatal(err)
	}
	var packed bytes.Buffer
	w := gzip.NewWriter(&packed)
	if _, err = w.Write(wasm); err == nil {
		err = w.Close()
	}
	if err == nil {
		module := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "module"}, BinaryData: map[string][]byte{"module.wasm": packed.Bytes()}}
		_, err = kubernetes.NewForConfigOrDie(cluster.RESTConfig()).CoreV1().ConfigMaps(ns).Create(b.Context(), module, metav1.CreateOptions{})
	}
	if err != nil {
		b.Fatal(err)
	}
	objects := "{apiVersion: wasmctl.dev/v1alpha1, kind: Reconciler, metadata: {name: web}, spec: {module: {configMapKeyRef: {name: module, key: module.wasm}}, grant: {manifest: true}}}\n"
	for i := range objectsOfTenant {
		objects += fmt.Sprintf("---\n{apiVersion: examples.wasmctl.dev/v1, kind: ConfigMapGenerator, metadata: {name: g%d}, spec: {content: x}}\n", i)
	}
	devclustertest.ApplyIn(b, cluster, ns, []byte(objects))
}

// awaitReady waits until n Reconcilers are ready.
func awaitReady(b *testing.B, client dynamic.NamespaceableResourceInterface, n int) {
	b.Helper()
	for limit := time.Now().Add(20 * time.Minute); time.Now().Before(limit); <-time.After(time.Second) {
		list, err := client.List(b.Context(), metav1.ListOptions{})
		if err != nil {
			b.Fatal(err)
		}
		ready := 0
		for _, o := range list.Items {
			conditions, _, _ := unstructured.NestedSlice(o.Object, "status", "conditions")
			if text := fmt.Sprint(conditions); strings.Contains(text, "status:True type:Ready") {
				ready++
			}
		}
		if ready == n {
			return
		}
	}
	b.Fatal("not all Reconcilers are ready")
}

// seriesOf counts the series that a process serves.
func seriesOf(b *testing.B, url string) (n int) {
	b.Helper()
	res, err := http.Get(url) //nolint:gosec,noctx // of a process that was started here
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		b.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		if !strings.HasPrefix(line, "#") {
			n++
		}
	}
	return n
}
