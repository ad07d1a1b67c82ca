// SPDX-License-Identifier: Apache-2.0

package wasmctl

import (
	"strconv"
	"testing"

	"github.com/wasmctl/wasmctl/guest-sdk/go/internal/wire"
)

// benchPod returns a pod of about 4 KiB in msgpack, as the host writes it.
func benchPod(tb testing.TB) []byte {
	tb.Helper()
	containers := make([]any, 5)
	for i := range containers {
		env := make([]any, 9)
		for j := range env {
			env[j] = Map{"name": "VARIABLE_" + strconv.Itoa(j), "value": "some value of a variable " + strconv.Itoa(i*j)}
		}
		containers[i] = Map{
			"name": "container-" + strconv.Itoa(i), "image": "registry.example.com/team/app:v1.2." + strconv.Itoa(i), "env": env,
			"ports":     []any{Map{"containerPort": 8080 + i, "name": "http", "protocol": "TCP"}},
			"resources": Map{"limits": Map{"cpu": "500m", "memory": "512Mi"}, "requests": Map{"cpu": "100m", "memory": "128Mi"}},
		}
	}
	labels := Map{}
	for i := range 10 {
		labels["app.kubernetes.io/label-"+strconv.Itoa(i)] = "value-" + strconv.Itoa(i)
	}
	return must(tb, Map{
		"apiVersion": "v1", "kind": "Pod",
		"metadata": Map{"name": "web-0", "namespace": "shop", "uid": "5c2f1f3e-8f0c-4b0e-9a43-0f1f6f2d7c11", "labels": labels, "generation": 4},
		"spec":     Map{"containers": containers, "nodeName": "node-1", "restartPolicy": "Always"},
		"status":   Map{"phase": "Running", "podIP": "10.0.0.1", "startTime": "2026-01-01T00:00:00Z"},
	})
}

// BenchmarkRead3 reads one field each of metadata, spec and status: near the
// start, after the largest part, and at the end.
func BenchmarkRead3(b *testing.B) {
	pod := benchPod(b)
	obj := Object{Value: Value{pod}}
	b.ReportMetric(float64(len(pod)), "object-bytes")
	b.ReportAllocs()
	for range b.N {
		if obj.Name() == "" || obj.String("spec", "nodeName") == "" || obj.String("status", "phase") == "" {
			b.Fatal("not read")
		}
	}
}

// BenchmarkDecodeAll decodes the complete object as maps, for comparison with
// BenchmarkRead3.
func BenchmarkDecodeAll(b *testing.B) {
	pod := benchPod(b)
	b.ReportAllocs()
	for range b.N {
		if _, err := wire.Decode(pod); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkDecodeStruct decodes a part into a struct.
func BenchmarkDecodeStruct(b *testing.B) {
	obj := Object{Value: Value{benchPod(b)}}
	b.ReportAllocs()
	for range b.N {
		var labels map[string]string
		if err := obj.Decode(&labels, "metadata", "labels"); err != nil || len(labels) != 10 {
			b.Fatal(err)
		}
	}
}

// BenchmarkRun measures a complete run without host calls, from request to
// result.
func BenchmarkRun(b *testing.B) {
	m := wire.NewBuilder(nil)
	m.String("id", "8f3a-42")
	m.Int("attempt", 1)
	m.Raw("key", must(b, Map{"namespace": "shop", "name": "web-0"}))
	m.Raw("object", benchPod(b))
	msg := m.End()
	g := &guest{host: &scriptHost{}, reconciler: &Reconciler{Reconcile: func(_ *Context, obj Object) (Action, error) {
		if obj.Int("metadata", "generation") != 4 {
			b.Fatal("not read")
		}
		return AwaitChange(), nil
	}}}
	b.ReportAllocs()
	for range b.N {
		g.call("reconcile", msg)
	}
}

// childMap and childBuilder write the same small object in two ways.
func childMap(owner Object) any {
	return Map{
		"apiVersion": "v1", "kind": "ConfigMap",
		"metadata": Map{"name": "a", "namespace": "b", "ownerReferences": []any{owner.ControllerRef()}},
		"data":     Map{"content": "hello, world"},
	}
}

func childBuilder(owner Object) any {
	return BuildObject(ObjectRef{APIVersion: "v1", Kind: "ConfigMap", Namespace: "b", Name: "a"}).
		Controller(owner).End().
		Map("data").Set("content", "hello, world")
}

// BenchmarkChild makes a small object and writes it into a message, in both
// ways. The difference is the cost of Map literals in a run.
func BenchmarkChild(b *testing.B) {
	g := &guest{host: &scriptHost{}}
	g.begin(input{object: benchPod(b)})
	for _, way := range []struct {
		name string
		make func(Object) any
	}{{"map", childMap}, {"builder", childBuilder}} {
		b.Run(way.name, func(b *testing.B) {
			var dst []byte
			b.ReportAllocs()
			for range b.N {
				var err error
				if dst, err = wire.Append(dst[:0], way.make(g.object())); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkDeclare measures a complete run that declares a child and a status.
func BenchmarkDeclare(b *testing.B) {
	m := wire.NewBuilder(nil)
	m.String("id", "8f3a-42")
	m.Raw("object", benchPod(b))
	msg := m.End()
	for _, way := range []struct {
		name   string
		make   func(Object) any
		status func() any
	}{
		{"map", childMap, func() any { return Map{"observedGeneration": 4, "ready": true} }},
		{"builder", childBuilder, func() any { return Build().SetInt("observedGeneration", 4).SetBool("ready", true) }},
	} {
		g := &guest{host: &scriptHost{}, reconciler: &Reconciler{Reconcile: func(_ *Context, obj Object) (Action, error) {
			return Apply(way.make(obj)).Prune().Status(way.status()), nil
		}}}
		b.Run(way.name, func(b *testing.B) {
			b.ReportAllocs()
			for range b.N {
				g.call("reconcile", msg)
			}
		})
	}
}

// BenchmarkApply writes and sends a small object and copies the answer.
func BenchmarkApply(b *testing.B) {
	host := &scriptHost{body: benchPod(b)}
	obj := Object{Value: Value{benchPod(b)}}
	g := &guest{host: host}
	g.begin(input{})
	b.ReportAllocs()
	for range b.N {
		_, err := g.ctx.Client().Apply(childMap(obj), ApplyOptions{Force: true})
		if err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkConditions checks whether a condition has changed, like a run that
// finds the desired state.
func BenchmarkConditions(b *testing.B) {
	var conditions Conditions
	ready := Condition{Type: "Ready", Status: ConditionTrue, Reason: "Applied", Message: "the ConfigMap is up to date", ObservedGeneration: 4}
	conditions.Set(ready, noon)
	obj := testObject(b, Map{"apiVersion": "v1", "kind": "Pod", "metadata": Map{"name": "web"}, "status": Map{"conditions": conditions}})
	b.ReportAllocs()
	for range b.N {
		c := obj.Conditions()
		if c.Set(ready, noon) {
			b.Fatal("it changed")
		}
	}
}
