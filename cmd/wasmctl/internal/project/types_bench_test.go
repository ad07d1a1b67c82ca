// SPDX-License-Identifier: Apache-2.0

//go:build unix

package project

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/host"
	"github.com/wasmctl/wasmctl/host/operation"
)

// typesModule decodes the object of its run into a type of k8s.io/api or, if it has no spec, the
// list of the cache.
const typesModule = `package main

import (
	batchv1 "k8s.io/api/batch/v1"

	wasmctl "github.com/wasmctl/wasmctl/guest-sdk/go"
)

func reconcile(ctx *wasmctl.Context, obj wasmctl.Object) (wasmctl.Action, error) {
	if obj.Exists("spec") {
		_, err := wasmctl.Decode[batchv1.Job](obj.Value)
		return wasmctl.AwaitChange(), err
	}
	for job, err := range ctx.Cache().All(wasmctl.ObjectRef{APIVersion: "batch/v1", Kind: "Job"}, wasmctl.CacheListOptions{}) {
		if err != nil {
			return wasmctl.AwaitChange(), err
		}
		if _, err := wasmctl.Decode[batchv1.Job](job.Value); err != nil {
			return wasmctl.AwaitChange(), err
		}
	}
	return wasmctl.AwaitChange(), nil
}

func init() {
	wasmctl.Register(wasmctl.Reconciler{
		Manifest:  wasmctl.Manifest{Name: "jobs", For: &wasmctl.Watch{Group: "batch", Version: "v1", Kind: "Job"}},
		Reconcile: reconcile,
	})
}

func main() {}
`

// BenchmarkTypes is what docs/kubernetes-types.md has: a Go module that decodes Jobs
// of 4 KiB with the types of k8s.io/api, its size and its load.
func BenchmarkTypes(b *testing.B) {
	wasm := buildTypes(b)
	job := encodedJob(b)
	b.Run("load", func(b *testing.B) { benchmarkLoad(b, wasm, "") })
	b.Run("load compiled", func(b *testing.B) { benchmarkLoad(b, wasm, b.TempDir()) })
	b.Run("object", func(b *testing.B) { benchmarkDecode(b, wasm, job, len(job)) })
	b.Run("list of 30", func(b *testing.B) {
		none, err := abi.AppendValue(nil, map[string]any{"metadata": map[string]any{"name": "hello"}})
		if err != nil {
			b.Fatal(err)
		}
		benchmarkDecode(b, wasm, none, len(job))
	})
}

func buildTypes(b *testing.B) []byte {
	b.Helper()
	dir := filepath.Join(b.TempDir(), "jobs")
	if _, err := (New{Dir: dir, Lang: Go, SDK: "../../../.."}).Create(); err != nil {
		b.Fatal(err)
	}
	for _, file := range []string{"reconcile.go", "reconcile_test.go"} {
		if err := os.Remove(filepath.Join(dir, file)); err != nil {
			b.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "main.go"), []byte(typesModule), 0o600); err != nil {
		b.Fatal(err)
	}
	version, err := exec.CommandContext(b.Context(), "go", "list", "-m", "-f", "{{.Version}}", "k8s.io/api").Output()
	if err != nil {
		b.Fatal(err)
	}
	for _, args := range [][]string{{"get", "k8s.io/api@" + strings.TrimSpace(string(version))}, {"mod", "tidy"}} {
		cmd := exec.CommandContext(b.Context(), "go", args...)
		if cmd.Dir = dir; cmd.Run() != nil {
			b.Skipf("SKIPPED: go %s failed: are the modules there?", strings.Join(args, " "))
		}
	}
	res, err := Build(b.Context(), dir, Options{})
	if err != nil {
		b.Fatal(err)
	}
	wasm, err := os.ReadFile(res.File)
	if err != nil {
		b.Fatal(err)
	}
	return wasm
}

// jobs answers cache_list with 30 of a Job.
type jobs struct{ list []byte }

// Call implements operation.API.
func (a jobs) Call(context.Context, abi.Op, []byte) abi.Response { return abi.Response{Body: a.list} }

func benchmarkDecode(b *testing.B, wasm, object []byte, size int) {
	job, err := abi.DecodeValue(encodedJob(b))
	if err != nil {
		b.Fatal(err)
	}
	items := make([]any, 30)
	for i := range items {
		items[i] = job
	}
	list, err := abi.AppendValue(nil, map[string]any{"apiVersion": "batch/v1", "kind": "JobList", "metadata": map[string]any{}, "items": items})
	if err != nil {
		b.Fatal(err)
	}
	m, err := host.Load(b.Context(), wasm, host.Config{API: func(*abi.Manifest) (operation.API, error) { return jobs{list}, nil }})
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = m.Close(b.Context()) }()
	guest, release, err := m.Acquire(b.Context())
	if err != nil {
		b.Fatal(err)
	}
	defer release()
	req := abi.Request{ID: "1", Attempt: 1, Key: abi.Key{Namespace: "default", Name: "hello"}, Object: object}
	begin, fuel := cpuTime(b), guest.Fuel()
	for b.Loop() {
		if res, err := guest.Reconcile(b.Context(), &req); err != nil || res.Error != nil {
			b.Fatal(err, res)
		}
	}
	b.ReportMetric(float64((cpuTime(b)-begin).Nanoseconds())/1e3/float64(b.N), "cpu-µs/op")
	b.ReportMetric(float64(guest.Fuel()-fuel)/float64(b.N), "fuel/op")
	b.ReportMetric(float64(size), "object-bytes")
}

// encodedJob is a finished Job of three containers, about 4 KiB.
func encodedJob(b *testing.B) []byte {
	b.Helper()
	now, one, yes := metav1.Now(), int32(1), true
	job := batchv1.Job{
		TypeMeta: metav1.TypeMeta{APIVersion: "batch/v1", Kind: "Job"},
		ObjectMeta: metav1.ObjectMeta{
			Name: "hello-29123456", Namespace: "default", UID: "5c2f1f3e-8f0c-4b0e-9a43-0f1f6f2d7c11", ResourceVersion: "123456", CreationTimestamp: now,
			Labels:          map[string]string{"app": "hello", batchv1.JobNameLabel: "hello-29123456", batchv1.ControllerUidLabel: "5c2f1f3e-8f0c-4b0e-9a43-0f1f6f2d7c11"},
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "batch.example.dev/v1", Kind: "CronJob", Name: "hello", UID: "5c2f", Controller: &yes, BlockOwnerDeletion: &yes}},
		},
		Spec: batchv1.JobSpec{Parallelism: &one, Completions: &one, BackoffLimit: &one, Template: corev1.PodTemplateSpec{
			ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": "hello"}},
			Spec:       corev1.PodSpec{RestartPolicy: corev1.RestartPolicyOnFailure, DNSPolicy: corev1.DNSClusterFirst, SchedulerName: "default-scheduler"},
		}},
		Status: batchv1.JobStatus{StartTime: &now, CompletionTime: &now, Succeeded: 1, Conditions: []batchv1.JobCondition{
			{Type: batchv1.JobSuccessCriteriaMet, Status: corev1.ConditionTrue, LastProbeTime: now, LastTransitionTime: now, Reason: "CompletionsReached"},
			{Type: batchv1.JobComplete, Status: corev1.ConditionTrue, LastProbeTime: now, LastTransitionTime: now, Reason: "CompletionsReached"},
		}},
	}
	some := corev1.ResourceList{"cpu": resource.MustParse("500m"), "memory": resource.MustParse("512Mi")}
	for i := range 3 {
		c := corev1.Container{
			Name: fmt.Sprint("c", i), Image: "registry.example.com/team/app:v1.2.3", Command: []string{"/bin/sh", "-c", "date; echo Hello from the cluster"},
			Resources:     corev1.ResourceRequirements{Limits: some, Requests: some},
			LivenessProbe: &corev1.Probe{ProbeHandler: corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Path: "/healthz", Port: intstr.FromString("http"), Scheme: "HTTP"}}},
		}
		for k := range 9 {
			c.Env = append(c.Env, corev1.EnvVar{Name: fmt.Sprint("VARIABLE_", k), Value: fmt.Sprint("some value of a variable ", i*k)})
		}
		job.Spec.Template.Spec.Containers = append(job.Spec.Template.Spec.Containers, c)
	}
	m, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&job)
	if err != nil {
		b.Fatal(err)
	}
	packed, err := abi.AppendValue(nil, m)
	if err != nil {
		b.Fatal(err)
	}
	return packed
}
