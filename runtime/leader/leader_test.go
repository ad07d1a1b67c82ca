// SPDX-License-Identifier: Apache-2.0

package leader_test

import (
	"bufio"
	"context"
	"errors"
	"io"
	"log/slog"
	"strings"
	"testing"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/wasmctl/wasmctl/devcluster/devclustertest"
	"github.com/wasmctl/wasmctl/runtime/leader"
)

func TestMain(m *testing.M) { devclustertest.Main(m) }

// replica is a running Elector.
type replica struct {
	*leader.Elector
	stop  context.CancelFunc
	ended chan error
}

// start starts a replica with a lease that is long enough for a slow machine, and is requested often.
func start(t *testing.T, rc *rest.Config, ns, id string, lease time.Duration) *replica {
	t.Helper()
	return startLogged(t, rc, ns, id, lease, nil)
}

func startLogged(t *testing.T, rc *rest.Config, ns, id string, lease time.Duration, log *slog.Logger) *replica {
	t.Helper()
	e, err := leader.New(leader.Config{
		RESTConfig: rc, Namespace: ns, Name: "test", Identity: id, Logger: log,
		LeaseDuration: lease, RenewDeadline: lease * 2 / 3, RetryPeriod: 100 * time.Millisecond,
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	r := &replica{Elector: e, stop: cancel, ended: make(chan error, 1)}
	go func() { r.ended <- e.Run(ctx) }()
	return r
}

func (r *replica) wait(t *testing.T, what string, c <-chan struct{}) {
	t.Helper()
	select {
	case <-c:
	case err := <-r.ended:
		t.Fatalf("%s: ended with %v", what, err)
	case <-time.After(time.Minute):
		t.Fatalf("%s: not within a minute", what)
	}
}

func TestElector_OneLeadsAndHandsOver(t *testing.T) {
	cluster := devclustertest.Shared(t)
	ns := devclustertest.Namespace(t, cluster)
	rc := cluster.RESTConfig()
	first := start(t, rc, ns, "first", time.Minute)
	first.wait(t, "first", first.Gate().Open())
	second := start(t, rc, ns, "second", time.Minute)
	for second.Leader() != "first" { // it has seen the lease
		<-time.After(10 * time.Millisecond)
	}
	if first.Gate().Err() != nil || isOpen(second) {
		t.Fatal("two leaders, or none")
	}
	first.stop()
	if err := <-first.ended; err != nil || first.Gate().Err() == nil {
		t.Errorf("first ended with %v, and may write: %t", err, first.Gate().Err() == nil)
	}
	second.wait(t, "second, long before a minute is over", second.Gate().Open())
	second.stop()
	if err := <-second.ended; err != nil {
		t.Error(err)
	}
}

func isOpen(r *replica) bool {
	select {
	case <-r.Gate().Open():
		return true
	default:
		return false
	}
}

// TestElector_WritesStopBeforeTheLeaseEnds: a leader that can no longer reach the API server must have stopped writing
// when another one takes over.
func TestElector_WritesStopBeforeTheLeaseEnds(t *testing.T) {
	cluster := devclustertest.Shared(t)
	ns := devclustertest.Namespace(t, cluster)
	link := devclustertest.Proxy(t, cluster)
	first := start(t, link.RESTConfig(), ns, "first", 3*time.Second)
	first.wait(t, "first", first.Gate().Open())
	second := start(t, cluster.RESTConfig(), ns, "second", 3*time.Second)
	link.Stall()
	select {
	case <-second.Gate().Open():
	case <-time.After(time.Minute):
		t.Fatal("nobody took over")
	}
	if !errors.Is(first.Gate().Err(), leader.ErrLapsed) {
		t.Errorf("the second leads, and the first may still write: %v", first.Gate().Err())
	}
	link.Resume()
	if err := <-first.ended; !errors.Is(err, leader.ErrLost) {
		t.Errorf("first ended with %v, want ErrLost", err)
	}
	second.stop()
	if err := <-second.ended; err != nil {
		t.Error(err)
	}
}

// TestElector_StolenLeaseIsLost: a manual edit of the lease wins.
func TestElector_StolenLeaseIsLost(t *testing.T) {
	cluster := devclustertest.Shared(t)
	ns := devclustertest.Namespace(t, cluster)
	r := start(t, cluster.RESTConfig(), ns, "first", 6*time.Second)
	r.wait(t, "first", r.Gate().Open())
	client, err := kubernetes.NewForConfig(cluster.RESTConfig())
	if err != nil {
		t.Fatal(err)
	}
	leases := client.CoordinationV1().Leases(ns)
	for {
		lease, err := leases.Get(t.Context(), "test", metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		thief, now := "thief", metav1.NowMicro()
		lease.Spec.HolderIdentity, lease.Spec.RenewTime = &thief, &now
		if _, err = leases.Update(t.Context(), lease, metav1.UpdateOptions{}); err == nil {
			break // otherwise the leader has renewed it in between
		}
	}
	if err := <-r.ended; !errors.Is(err, leader.ErrLost) || !errors.Is(r.Gate().Err(), leader.ErrLost) {
		t.Errorf("ended with %v, gate %v, want ErrLost", err, r.Gate().Err())
	}
}

// A replica without permissions for the lease remains a standby forever, and logs the reason once.
func TestElector_MissingRightsAreSaid(t *testing.T) {
	cluster := devclustertest.Shared(t)
	ns := devclustertest.Namespace(t, cluster)
	log, lines := logLines()
	limited := devclustertest.Limited(t, cluster, ns, rbacv1.PolicyRule{APIGroups: []string{"coordination.k8s.io"}, Resources: []string{"leases"}, Verbs: []string{"get"}})
	first := startLogged(t, limited, ns, "first", time.Minute, log)
	said := waitLine(t, lines)
	for _, part := range []string{"level=WARN", "the lease cannot be created", "forbidden", ns + "/test", "give this user get, list, create and update"} {
		if !strings.Contains(said, part) {
			t.Errorf("%s: does not say %q", said, part)
		}
	}
	// Another one creates it, and releases it; then this one cannot write it.
	second := start(t, cluster.RESTConfig(), ns, "second", time.Minute)
	second.wait(t, "second", second.Gate().Open())
	second.stop()
	if err := <-second.ended; err != nil {
		t.Error(err)
	}
	for said = waitLine(t, lines); !strings.Contains(said, "the lease cannot be written"); said = waitLine(t, lines) {
		if strings.Contains(said, "the lease cannot be created") {
			t.Errorf("said twice: %s", said)
		}
	}
	if isOpen(first) {
		t.Error("first leads without rights")
	}
	first.stop()
	if err := <-first.ended; err != nil {
		t.Error(err)
	}
}

func waitLine(t *testing.T, lines <-chan string) string {
	t.Helper()
	select {
	case line := <-lines:
		return line
	case <-time.After(time.Minute):
		t.Fatal("nothing is said within a minute")
		return ""
	}
}

// A missing namespace is logged too: the lease is not found in it, but cannot be created either.
func TestElector_MissingNamespaceIsSaid(t *testing.T) {
	log, lines := logLines()
	e := startLogged(t, devclustertest.Shared(t).RESTConfig(), "nobody-has-this", "first", time.Minute, log)
	if said := waitLine(t, lines); !strings.Contains(said, "the lease cannot be created") || !strings.Contains(said, "not found") {
		t.Errorf("says %s", said)
	}
	e.stop()
	if err := <-e.ended; err != nil {
		t.Error(err)
	}
}

// logLines returns a logger and its output lines.
func logLines() (*slog.Logger, <-chan string) {
	r, w := io.Pipe()
	lines := make(chan string, 100)
	go func() {
		for s := bufio.NewScanner(r); s.Scan(); {
			lines <- s.Text()
		}
	}()
	return slog.New(slog.NewTextHandler(w, nil)), lines
}
