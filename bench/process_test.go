// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"bytes"
	"context"
	"fmt"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"

	"github.com/wasmctl/wasmctl/devcluster"
	"github.com/wasmctl/wasmctl/devcluster/devclustertest"
)

// roundLimit limits one round: its watch then ends, and the round has failed.
const roundLimit = 5 * time.Minute

// running is a controller working in its own namespace.
type running struct {
	cmd   *exec.Cmd
	log   bytes.Buffer // its output; may be read after stop
	api   dynamic.ResourceInterface
	home  func(ctx context.Context) error // deletes the namespace, and returns an error once it is gone
	watch watch.Interface                 // resource of the objects
	work
}

// attach prepares a namespace for w, and watches it.
func attach(b *testing.B, cluster *devcluster.Cluster, w work) (r *running, namespace string) {
	b.Helper()
	client, err := dynamic.NewForConfig(cluster.RESTConfig())
	if err != nil {
		b.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(b.Context(), roundLimit)
	b.Cleanup(cancel)
	namespace = devclustertest.Namespace(b, cluster)
	namespaces := client.Resource(schema.GroupVersionResource{Version: "v1", Resource: "namespaces"})
	r = &running{api: client.Resource(w.resource).Namespace(namespace), work: w, home: func(ctx context.Context) error {
		return namespaces.Delete(ctx, namespace, metav1.DeleteOptions{})
	}}
	if r.watch, err = r.api.Watch(ctx, metav1.ListOptions{}); err != nil {
		b.Fatal(err)
	}
	return r, namespace
}

// start starts a controller and waits until it has reconciled a first object, which shows that it is ready and is not
// counted.
func start(b *testing.B, cluster *devcluster.Cluster, w work, command func(namespace string) *exec.Cmd) *running {
	b.Helper()
	r, ns := attach(b, cluster, w)
	r.cmd = command(ns)
	r.cmd.Stdout, r.cmd.Stderr = &r.log, &r.log
	if err := r.cmd.Start(); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = r.cmd.Process.Kill() }) // the benchmark has failed
	r.create(b, "first", 1)
	r.measure(b, "first", 1)
	return r
}

// stop stops the controller and waits for its end.
func (r *running) stop(b *testing.B) {
	b.Helper()
	r.watch.Stop()
	signal(b, r.cmd, syscall.SIGTERM)
	if err := r.cmd.Wait(); err != nil {
		b.Errorf("%s: %v\n%s", r.cmd.Path, err, r.log.String())
	}
}

// clean deletes the namespace with its contents, and waits until it is gone: otherwise, the next controller would
// reconcile the contents when it starts, and the API server would be busy.
func (r *running) clean(b *testing.B) {
	b.Helper()
	for err := error(nil); !apierrors.IsNotFound(err); <-time.After(100 * time.Millisecond) {
		if err = r.home(b.Context()); b.Context().Err() != nil {
			b.Fatal(err)
		}
	}
}

// measure waits until n objects with names of this prefix have a status and returns how many got one per second.
func (r *running) measure(b *testing.B, prefix string, n int) float64 {
	b.Helper()
	var first time.Time
	done := map[string]bool{}
	for ev := range r.watch.ResultChan() {
		o, ok := ev.Object.(*unstructured.Unstructured)
		if !ok || !strings.HasPrefix(o.GetName(), prefix) || !r.done(o) {
			continue
		}
		if first.IsZero() {
			first = time.Now()
		}
		if done[o.GetName()] = true; len(done) == n {
			return float64(n-1) / time.Since(first).Seconds()
		}
	}
	b.Fatalf("%d of %d objects were reconciled", len(done), n)
	return 0
}

// create creates n objects with names of this prefix.
func (r *running) create(b *testing.B, prefix string, n int) {
	b.Helper()
	inParallel(n, func(i int) {
		_, err := r.api.Create(b.Context(), &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": r.resource.GroupVersion().String(), "kind": r.kind,
			"metadata": map[string]any{"name": fmt.Sprintf("%s%d", prefix, i)}, "spec": r.spec(i),
		}}, metav1.CreateOptions{})
		if err != nil {
			b.Error(err)
		}
	})
}
