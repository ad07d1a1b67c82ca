// SPDX-License-Identifier: Apache-2.0

package run_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/wasmctl/wasmctl/devcluster"
	"github.com/wasmctl/wasmctl/devcluster/devclustertest"
	"github.com/wasmctl/wasmctl/internal/enginetest"
	"github.com/wasmctl/wasmctl/runtime/diff"
	"github.com/wasmctl/wasmctl/runtime/history"
	"github.com/wasmctl/wasmctl/test/e2e/internal/e2e"
)

// TestRun_SurvivesARestore: etcd is restored from a backup while wasmctl runs. The children that the backup
// does not have are made again, although the versions of the API server have run backwards, and later changes
// are noticed.
func TestRun_SurvivesARestore(t *testing.T) {
	t.Parallel()
	dir, backup := t.TempDir(), filepath.Join(t.TempDir(), "backup")
	cluster, err := devcluster.Start(t.Context(), devcluster.Config{Binary: devclustertest.Binary(t), DataDir: dir, UnsafeNoFsync: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cluster.Stop() })
	f := e2e.NewFleet(t, cluster)
	f.Put(t.Context(), "a", e2e.App{Image: "i:1", Port: true})
	f.Put(t.Context(), "b", e2e.App{Image: "i:1"})
	offline(t, cluster, func() error { return os.CopyFS(backup, os.DirFS(dir)) })

	c := f.Start("--socket", "none")
	f.Confirm()
	client, err := kubernetes.NewForConfig(cluster.RESTConfig())
	if err != nil {
		t.Fatal(err)
	}
	for i := range 200 { // the versions run far ahead of the backup
		object := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("filler-", i)}}
		if _, err := client.CoreV1().ConfigMaps(f.Ns).Create(t.Context(), object, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	offline(t, cluster, func() error {
		if err := os.RemoveAll(dir); err != nil {
			return err
		}
		return os.CopyFS(dir, os.DirFS(backup))
	})
	f.Confirm()
	c.WantLine("versions of the API server have run backwards")
	f.Put(t.Context(), "b", e2e.App{Image: "i:2", Port: true})
	f.Confirm()
}

// offline stops a control plane, changes its data and starts it again.
func offline(t *testing.T, cluster *devcluster.Cluster, change func() error) {
	t.Helper()
	if err := cluster.Stop(); err != nil {
		t.Fatal(err)
	}
	if err := change(); err != nil {
		t.Fatal(err)
	}
	if err := cluster.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// TestExplain_DriftIsNotUnchanged: another client changes a child, and the module puts it back. Explain does
// not call that write unchanged, neither in the process that made the last write nor in the next one.
func TestExplain_DriftIsNotUnchanged(t *testing.T) {
	t.Parallel()
	f := e2e.NewFleet(t, devclustertest.Shared(t))
	f.Put(t.Context(), "a", e2e.App{Image: "i:1"})
	for _, restarted := range []bool{false, true} {
		socket := e2e.NewSocket(t)
		c := f.Start("--socket", socket)
		c.WantLine(`"msg":"reconciled"`)
		f.Confirm()
		enginetest.Until(t, "it has run", func() bool {
			return restarted && len(explained(f, socket, "a").Runs) > 0 || len(writesOf(f, socket, "a")) > 0
		})
		for _, o := range writesOf(f, socket, "a") {
			if restarted && o.Effect != history.Unchanged {
				t.Errorf("after a restart, the first write is %s, want none, or unchanged", o.Effect)
			}
		}
		e2e.Patch(f, e2e.Deployments, "a", `{"spec": {"template": {"spec": {"containers": [{"name": "app", "image": "hacked"}]}}}}`)
		f.Confirm()
		enginetest.Until(t, "the correction is known", func() bool {
			return slices.ContainsFunc(writesOf(f, socket, "a"), func(o history.Operation) bool {
				shown := slices.ContainsFunc(o.Changes, func(c diff.Change) bool { return strings.Contains(c.Before, "hacked") })
				return shown || o.Effect == history.Written // the cache has only the metadata
			})
		})
		c.Signal(syscall.SIGTERM)
		c.WantExit(e2e.ExitOK)
	}
}

// writesOf returns the known writes of a WebApp's Deployment.
func writesOf(f *e2e.Fleet, socket, name string) (writes []history.Operation) {
	for _, run := range explained(f, socket, name).Runs {
		for _, o := range run.Operations {
			if o.Resource == "deployments.apps" && o.Name == "api_apply" {
				writes = append(writes, o)
			}
		}
	}
	return writes
}
