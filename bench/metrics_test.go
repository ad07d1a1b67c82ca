// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"
	crreconcile "sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/wasmctl/wasmctl/devcluster/devclustertest"
)

// controllerRuntimeMetrics is the reference for the metrics of wasmctl.
const controllerRuntimeMetrics = "../runtime/metrics/testdata/controller-runtime.txt"

// TestMetrics_TheListIsWhatControllerRuntimeHas runs a controller of controller-runtime that succeeds, requeues, fails
// and panics, and lists the contents of its registry: names, types, labels and buckets. WASMCTL_UPDATE=1 writes the
// list.
func TestMetrics_TheListIsWhatControllerRuntimeHas(t *testing.T) {
	cluster := devclustertest.Shared(t)
	ns := devclustertest.Namespace(t, cluster)
	ctrl.SetLogger(logr.Discard())
	mgr, err := ctrl.NewManager(cluster.RESTConfig(), ctrl.Options{
		Cache: cache.Options{DefaultNamespaces: map[string]cache.Config{ns: {}}}, Metrics: server.Options{BindAddress: "0"},
		LeaderElection: true, LeaderElectionID: "peer", LeaderElectionNamespace: ns, LeaderElectionReleaseOnCancel: true,
	})
	if err != nil {
		t.Fatal(err)
	}
	ran := make(chan string, 100)
	reconciler := crreconcile.Func(func(_ context.Context, req ctrl.Request) (ctrl.Result, error) {
		select {
		case ran <- req.Name:
		default:
		}
		switch req.Name {
		case "requeues":
			return ctrl.Result{RequeueAfter: time.Hour}, nil
		case "fails":
			return ctrl.Result{}, errors.New("no luck")
		case "terminal":
			return ctrl.Result{}, crreconcile.TerminalError(errors.New("no luck"))
		case "panics":
			panic("no luck")
		}
		return ctrl.Result{}, nil
	})
	if err := ctrl.NewControllerManagedBy(mgr).Named("peer").For(&corev1.ConfigMap{}).Complete(reconciler); err != nil {
		t.Fatal(err)
	}
	client, err := kubernetes.NewForConfig(cluster.RESTConfig())
	if err != nil {
		t.Fatal(err)
	}
	missing := map[string]bool{}
	for _, name := range []string{"succeeds", "requeues", "fails", "terminal", "panics"} {
		missing[name] = true
		if _, err := client.CoreV1().ConfigMaps(ns).Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- mgr.Start(ctx) }()
	for limit := time.After(time.Minute); len(missing) > 0; {
		select {
		case name := <-ran:
			delete(missing, name)
		case err := <-ended:
			t.Fatal(err)
		case <-limit:
			t.Fatalf("did not run: %v", missing)
		}
	}
	got := listMetrics(t)
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if os.Getenv("WASMCTL_UPDATE") != "" {
		if err := os.WriteFile(controllerRuntimeMetrics, []byte(got), 0o644); err != nil { //nolint:gosec // for everybody
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(controllerRuntimeMetrics)
	if err != nil {
		t.Fatal(err)
	}
	if string(want) != got {
		t.Errorf("%s is not what controller-runtime has; WASMCTL_UPDATE=1 writes it. It has\n%s", controllerRuntimeMetrics, got)
	}
}

// listMetrics lists the metrics of controller-runtime's registry, except those of the Go runtime, which depend on the
// Go version.
func listMetrics(t *testing.T) string {
	t.Helper()
	families, err := metrics.Registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	var lines []string
	for _, f := range families {
		if strings.HasPrefix(f.GetName(), "go_") {
			continue
		}
		labels := map[string]bool{}
		buckets := ""
		for _, m := range f.GetMetric() {
			for _, l := range m.GetLabel() {
				labels[l.GetName()] = true
			}
			buckets = ""
			for _, b := range m.GetHistogram().GetBucket() {
				buckets += fmt.Sprintf(" %g", b.GetUpperBound())
			}
		}
		names := make([]string, 0, len(labels))
		for name := range labels {
			names = append(names, name)
		}
		slices.Sort(names)
		lines = append(lines, strings.TrimSpace(fmt.Sprintf("%s %s {%s}%s", f.GetName(), strings.ToLower(f.GetType().String()), strings.Join(names, ","), buckets))+"\n")
	}
	slices.Sort(lines)
	return strings.Join(lines, "")
}
