// SPDX-License-Identifier: Apache-2.0

package devcluster_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/wasmctl/wasmctl/devcluster"
	"github.com/wasmctl/wasmctl/devcluster/devclustertest"
)

// asParent makes the test binary a process that starts a control plane on the data dir in the variable, reports that,
// and waits to be killed.
const asParent = "DEVCLUSTER_TEST_AS_PARENT"

func TestMain(m *testing.M) {
	if dir := os.Getenv(asParent); dir != "" {
		if _, err := devcluster.Start(context.Background(), devcluster.Config{DataDir: dir, UnsafeNoFsync: true}); err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		fmt.Println("ready")
		select {}
	}
	os.Exit(m.Run())
}

// limited returns a context with enough time for a control plane to start.
func limited(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 90*time.Second)
	t.Cleanup(cancel)
	return ctx
}

func config(t *testing.T, dataDir string) devcluster.Config {
	t.Helper()
	return devcluster.Config{Binary: devclustertest.Binary(t), DataDir: dataDir, UnsafeNoFsync: true}
}

func start(t *testing.T, cfg devcluster.Config) *devcluster.Cluster {
	t.Helper()
	c, err := devcluster.Start(limited(t), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { stop(t, c) })
	return c
}

func stop(t *testing.T, c *devcluster.Cluster) {
	t.Helper()
	if err := c.Stop(); err != nil {
		t.Error(err)
	}
}

func configMaps(t *testing.T, rc *rest.Config) kubernetes.Interface {
	t.Helper()
	client, err := kubernetes.NewForConfig(rc)
	if err != nil {
		t.Fatal(err)
	}
	return client
}

func get(t *testing.T, c *devcluster.Cluster, name string) error {
	t.Helper()
	_, err := configMaps(t, c.RESTConfig()).CoreV1().ConfigMaps("default").Get(t.Context(), name, metav1.GetOptions{})
	return err
}

func create(t *testing.T, c *devcluster.Cluster, name string) {
	t.Helper()
	cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}}
	if _, err := configMaps(t, c.RESTConfig()).CoreV1().ConfigMaps("default").Create(t.Context(), cm, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}

func isClosed(done <-chan struct{}) bool {
	select {
	case <-done:
		return true
	default:
		return false
	}
}

func TestCluster_RestartIsTheSameToItsClients(t *testing.T) {
	c := start(t, config(t, t.TempDir()))
	create(t, c, "kept")
	url, rc := c.URL(), c.RESTConfig()
	for _, end := range []struct {
		name string
		do   func() error
	}{
		{"kill", c.Kill},
		{"stop", c.Stop},
		{"none", func() error { return nil }}, // Restart stops a running control plane
	} {
		done := c.Done()
		if err := end.do(); err != nil {
			t.Fatalf("%s: %v", end.name, err)
		}
		if err := get(t, c, "kept"); err == nil && end.name != "none" {
			t.Errorf("after %s: the control plane answers", end.name)
		}
		if err := c.Restart(limited(t)); err != nil {
			t.Fatalf("restart after %s: %v", end.name, err)
		}
		if !isClosed(done) || isClosed(c.Done()) {
			t.Errorf("after %s and restart: Done of the old run closed %t, of the new one %t", end.name, isClosed(done), isClosed(c.Done()))
		}
		if c.URL() != url || c.RESTConfig().Host != rc.Host {
			t.Errorf("after %s: URL %s, want %s", end.name, c.URL(), url)
		}
		if err := get(t, c, "kept"); err != nil {
			t.Errorf("after %s: %v", end.name, err)
		}
		if err := c.Err(); err != nil {
			t.Errorf("after %s: Err %v, want nil: it did not end by itself", end.name, err)
		}
	}
}

func TestStart_InUseIsRefusedAndReused(t *testing.T) {
	dir := t.TempDir()
	first := start(t, config(t, dir))
	create(t, first, "kept")
	_, err := devcluster.Start(limited(t), config(t, dir))
	if !errors.Is(err, devcluster.ErrInUse) || !strings.Contains(err.Error(), dir) || !strings.Contains(err.Error(), "pid ") {
		t.Errorf("start on a data dir in use: %v, want ErrInUse with the dir and the pid", err)
	}

	second, err := devcluster.StartOrReuse(limited(t), config(t, dir))
	if err != nil {
		t.Fatal(err)
	}
	if !second.Reused() || first.Reused() || second.URL() != first.URL() || second.Kubeconfig() != first.Kubeconfig() {
		t.Errorf("reused %t at %s, want the first one, at %s", second.Reused(), second.URL(), first.URL())
	}
	if second.Kill() == nil || second.Restart(limited(t)) == nil {
		t.Error("another process's control plane could be killed or restarted")
	}
	stop(t, second)
	if err := get(t, first, "kept"); err != nil {
		t.Errorf("after Stop of the reused one: %v", err)
	}
	t.Run("EndByItselfIsSeen", func(t *testing.T) { killHolder(t, first, dir) })
}

// killHolder kills the process of a control plane, which then reports how it has ended.
func killHolder(t *testing.T, c *devcluster.Cluster, dir string) {
	t.Helper()
	var holder struct{ PID int }
	text, err := os.ReadFile(filepath.Join(dir, "lock"))
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(text, &holder); err != nil {
		t.Fatal(err)
	}
	proc, err := os.FindProcess(holder.PID)
	if err != nil {
		t.Fatal(err)
	}
	if err := proc.Kill(); err != nil {
		t.Fatal(err)
	}
	<-c.Done()
	if err := c.Err(); err == nil || !strings.Contains(err.Error(), "killed") {
		t.Errorf("Err %v, want how it ended", err)
	}
	if err := c.Stop(); err != nil {
		t.Errorf("stop of one that has ended: %v", err)
	}
}

// Two processes start at the same time: one starts the control plane, the other waits until it is ready and uses it.
func TestStartOrReuse_AtOnceStartsOne(t *testing.T) {
	cfg, ctx := config(t, t.TempDir()), limited(t)
	var clusters [2]*devcluster.Cluster
	var wg sync.WaitGroup
	for i := range clusters {
		wg.Go(func() {
			c, err := devcluster.StartOrReuse(ctx, cfg)
			if err != nil {
				t.Error(err)
				return
			}
			clusters[i] = c
		})
	}
	wg.Wait()
	if t.Failed() {
		return
	}
	for _, c := range clusters {
		defer stop(t, c)
	}
	if clusters[0].Reused() == clusters[1].Reused() || clusters[0].URL() != clusters[1].URL() {
		t.Errorf("reused: %t at %s and %t at %s, want one each at the same place",
			clusters[0].Reused(), clusters[0].URL(), clusters[1].Reused(), clusters[1].URL())
	}
}

func TestStart_CancelledLeavesNothing(t *testing.T) {
	dir := t.TempDir()
	ctx, cancel := context.WithCancelCause(t.Context())
	cause := errors.New("changed my mind")
	starting := make(chan error, 1)
	go func() {
		_, err := devcluster.Start(ctx, config(t, dir))
		starting <- err
	}()
	awaitFile(t, filepath.Join(dir, "pki", "done")) // during the start
	cancel(cause)
	if err := <-starting; !errors.Is(err, cause) {
		t.Errorf("cancelled start: %v, want the cause", err)
	}
	start(t, config(t, dir)) // refused if the child were still alive
}

// awaitFile returns when the file exists.
func awaitFile(t *testing.T, path string) {
	t.Helper()
	ctx := limited(t)
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for {
		if _, err := os.Stat(path); err == nil {
			return
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			t.Fatalf("%s does not appear", path)
		}
	}
}

func TestChild_StopsWhenItsParentIsKilled(t *testing.T) {
	tmp, err := os.MkdirTemp("", "dc-") //nolint:usetesting // t.TempDir's path has no room for a socket
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(tmp) })
	dir := filepath.Join(tmp, "data")
	parent := exec.CommandContext(t.Context(), os.Args[0])
	parent.Env = append(os.Environ(), asParent+"="+dir, devcluster.EnvBinary+"="+devclustertest.Binary(t), "TMPDIR="+tmp)
	out, err := parent.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := parent.Start(); err != nil {
		t.Fatal(err)
	}
	if line, err := io.ReadAll(io.LimitReader(out, 6)); string(line) != "ready\n" {
		t.Fatalf("parent says %q (%v)", line, err)
	}
	if err := parent.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = parent.Wait() // killed
	ctx := limited(t)
	c, err := devcluster.Start(ctx, config(t, dir))
	for errors.Is(err, devcluster.ErrInUse) && ctx.Err() == nil {
		c, err = devcluster.Start(ctx, config(t, dir)) // the child is stopping
	}
	if err != nil {
		t.Fatalf("the child outlives its parent: %v", err)
	}
	defer stop(t, c)
	if left, _ := filepath.Glob(filepath.Join(tmp, "devcluster-run-*")); len(left) != 0 {
		t.Errorf("left by the child: %v, so its stop was not in order", left)
	}
}
