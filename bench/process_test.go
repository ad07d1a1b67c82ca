package bench

import (
	"bytes"
	"context"
	"os/exec"
	"syscall"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"

	"github.com/wasmctl/wasmctl/devcluster"
	"github.com/wasmctl/wasmctl/devcluster/devclustertest"
)

// roundLimit bounds one round: its watch ends then, and the round has failed.
const roundLimit = 5 * time.Minute

// running is a controller at work in a namespace of its own.
type running struct {
	cmd   *exec.Cmd
	log   bytes.Buffer // what it wrote; read it after stop
	api   dynamic.ResourceInterface
	watch watch.Interface // of the generators
}

// start starts a controller and waits until it has reconciled a first object,
// which shows that it is up and is not counted.
func start(b *testing.B, cluster *devcluster.Cluster, command func(namespace string) *exec.Cmd) *running {
	b.Helper()
	client, err := dynamic.NewForConfig(cluster.RESTConfig())
	if err != nil {
		b.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(b.Context(), roundLimit)
	b.Cleanup(cancel)
	ns := devclustertest.Namespace(b, cluster)
	r := &running{cmd: command(ns), api: client.Resource(generators).Namespace(ns)}
	if r.watch, err = r.api.Watch(ctx, metav1.ListOptions{}); err != nil {
		b.Fatal(err)
	}
	r.cmd.Stdout, r.cmd.Stderr = &r.log, &r.log
	if err := r.cmd.Start(); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = r.cmd.Process.Kill() }) // where the benchmark has failed
	create(b, r.api, "first", 1)
	measure(b, r.watch, "first", 1)
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
