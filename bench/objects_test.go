// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"flag"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"github.com/wasmctl/wasmctl/devcluster"
	"github.com/wasmctl/wasmctl/devcluster/devclustertest"
)

// calm is how long contenders are idle before a measurement.
const calm = 45 * time.Second

// onlyNamed skips a slow benchmark unless -bench names it.
func onlyNamed(b *testing.B, name string) {
	b.Helper()
	if pattern := flag.Lookup("test.bench").Value.String(); !strings.Contains(pattern, name) {
		b.Skipf("SKIPPED: takes minutes: name it to run it: make bench BENCH=%s", name)
	}
}

var (
	pods       = schema.GroupVersionResource{Version: "v1", Resource: "pods"}
	configMaps = schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}
)

// largePod returns a pod with four containers: 6.3 KB of JSON, plus the same amount of managedFields.
func largePod(i int) map[string]any {
	var containers []any
	for c := range 4 {
		var env []any
		for k := range 12 {
			env = append(env, map[string]any{"name": fmt.Sprint("VARIABLE_", k), "value": fmt.Sprint("the value of pod ", i)})
		}
		containers = append(containers, map[string]any{
			"name": fmt.Sprint("c", c), "image": "registry.example/team/app:v1.2.3", "env": env, "command": []any{"/bin/server", "--verbose"},
			"ports":          []any{map[string]any{"containerPort": 8080 + c, "name": fmt.Sprint("http", c)}},
			"resources":      map[string]any{"limits": map[string]any{"cpu": "500m", "memory": "512Mi"}, "requests": map[string]any{"cpu": "100m", "memory": "128Mi"}},
			"livenessProbe":  map[string]any{"httpGet": map[string]any{"path": "/healthz", "port": 8080 + c}},
			"readinessProbe": map[string]any{"httpGet": map[string]any{"path": "/readyz", "port": 8080 + c}},
		})
	}
	return map[string]any{"apiVersion": "v1", "kind": "Pod", "metadata": metaOf(i), "spec": map[string]any{
		"automountServiceAccountToken": false, "containers": containers, "nodeName": fmt.Sprint("node-", i%100),
	}}
}

func smallConfigMap(i int) map[string]any {
	return map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap", "metadata": metaOf(i),
		"data": map[string]any{"config.yaml": settings(i)},
	}
}

// nameOf returns the name of the i-th object.
func nameOf(i int) string { return fmt.Sprintf("object-%06d", i) }

func metaOf(i int) map[string]any {
	return map[string]any{
		"name":        nameOf(i),
		"labels":      map[string]any{"app.kubernetes.io/name": fmt.Sprintf("shop-%d", i%1000), "app.kubernetes.io/part-of": "shop", "tier": "web"},
		"annotations": map[string]any{"example.com/team": "payments", "example.com/contact": "payments@example.com"},
	}
}

// settings returns the content of the i-th object, some 300 bytes.
func settings(i int) string {
	var s strings.Builder
	for line := range 8 {
		fmt.Fprintf(&s, "setting-%d: the value of object %d\n", line, i)
	}
	return s.String()
}

// populate creates objects in a new namespace, and returns its name.
func populate(b *testing.B, cluster *devcluster.Cluster, gvr schema.GroupVersionResource, n int, object func(i int) map[string]any) string {
	b.Helper()
	ns := devclustertest.Namespace(b, cluster)
	create(b, cluster, gvr, ns, 0, n, object)
	return ns
}

// create creates the objects of a range of numbers in a namespace.
func create(b *testing.B, cluster *devcluster.Cluster, gvr schema.GroupVersionResource, ns string, from, to int, object func(i int) map[string]any) {
	b.Helper()
	client, err := dynamic.NewForConfig(cluster.RESTConfig())
	if err != nil {
		b.Fatal(err)
	}
	begin := time.Now()
	inParallel(to-from, func(i int) {
		if _, err := client.Resource(gvr).Namespace(ns).Create(b.Context(), &unstructured.Unstructured{Object: object(from + i)}, metav1.CreateOptions{}); err != nil {
			b.Error(err)
		}
	})
	b.Logf("%d %s created in %.0f s", to-from, gvr.Resource, time.Since(begin).Seconds())
	if b.Failed() {
		b.FailNow()
	}
}

// inParallel calls do for each number below n, several at a time.
func inParallel(n int, do func(i int)) {
	var wg sync.WaitGroup
	numbers := make(chan int)
	for range 16 {
		wg.Go(func() {
			for i := range numbers {
				do(i)
			}
		})
	}
	for i := range n {
		numbers <- i
	}
	close(numbers)
	wg.Wait()
}
