// SPDX-License-Identifier: Apache-2.0

package build_test

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"

	"github.com/wasmctl/wasmctl/api/v1alpha1"
	"github.com/wasmctl/wasmctl/devcluster/devclustertest"
	"github.com/wasmctl/wasmctl/host/oci/ocitest"
	"github.com/wasmctl/wasmctl/internal/enginetest"
	"github.com/wasmctl/wasmctl/runtime/admin"
	"github.com/wasmctl/wasmctl/test/e2e/internal/e2e"
)

// replica is a process of this version of wasmctl or of the released one.
type replica struct {
	*e2e.Process
	binary, socket string
}

// current is the wasmctl that the tests run otherwise.
const current = "wasmctl"

// replicaOf starts a replica for the WebApps of a fleet. The module is a file or a reference of the module webapp.
func replicaOf(f *e2e.Fleet, binary, module string, args ...string) *replica {
	f.T.Helper()
	r := &replica{binary: binary, socket: e2e.NewSocket(f.T)}
	r.Process = e2e.Start(f.T, exec.Command(binary, append([]string{
		"run", module, "--grant-manifest", "--log-format", "json", "--kubeconfig", f.Cluster.Kubeconfig(), "-n", f.Ns, "--socket", r.socket,
	}, args...)...))
	return r
}

// status returns the status of the process, which its socket may not answer yet.
func (r *replica) status() (st admin.Status) {
	st, _ = admin.NewClient(r.socket).Status(r.T.Context())
	return st
}

// leads reports whether the replica runs objects.
func (r *replica) leads() bool {
	st := r.status()
	return st.Leader != nil && *st.Leader || st.Shards != nil && st.Shards.Here > 0
}

// joined reports whether the replica could take over: as a standby, or with a part of the objects.
func (r *replica) joined() bool {
	if r.status().Leader != nil {
		return strings.Contains(r.Text(), `"msg":"watches have synced"`)
	}
	return r.leads()
}

// stop ends the replica in order.
func (r *replica) stop() {
	r.T.Helper()
	r.Signal(syscall.SIGTERM)
	r.WantExit(e2e.ExitOK)
}

// TestSkew_ARollingUpdateAndItsRollback: during an update, a replica of the released version and one of this version run the same
// objects, and then during a rollback. Every change is reconciled, and no object by two replicas at once. Each replica finds the compiled
// code and the records that the other version has left.
func TestSkew_ARollingUpdateAndItsRollback(t *testing.T) {
	t.Parallel()
	for name, mode := range map[string][]string{
		"shards": {"--shards", "4", "--shard-by", "uid"},
		"leader": {"--leader-elect"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := e2e.NewFleet(t, devclustertest.Shared(t))
			args := slices.Concat(mode, e2e.ShortLeases, []string{"--leader-elect-resource-namespace", f.Ns, "--leader-elect-resource-name", "crowd", "--cache-dir", t.TempDir()})
			const apps = 20
			module, binaries := e2e.Example(t, "webapp"), []string{released(t), current, released(t)}
			old := replicaOf(f, binaries[0], module, args...)
			old.Until("the first one runs objects", old.leads)
			runs := [][]e2e.Reconcile{}
			for round, binary := range binaries[1:] {
				f.Churn(t.Context(), apps, 1)()
				next := replicaOf(f, binary, module, args...)
				next.Until("the next one has joined", next.joined)
				f.Churn(t.Context(), apps, 2)()
				f.Confirm()
				old.stop()
				next.Until("the next one runs objects", next.leads)
				f.Churn(t.Context(), apps, 1)()
				f.Confirm()
				if n := len(next.Reconciles()); n == 0 {
					t.Errorf("%d: the next one has reconciled nothing", round)
				}
				runs = append(runs, old.Reconciles())
				old = next
			}
			old.stop()
			e2e.WantNoneTwice(t, append(runs, old.Reconciles())...)
		})
	}
}

// TestSkew_StateOfARestart: a process takes over the directories of another version, in both directions: the modules of a registry,
// which is not asked again, the compiled code, the remembered runs, and the record of modules.
func TestSkew_StateOfARestart(t *testing.T) {
	t.Parallel()
	f := e2e.NewFleet(t, devclustertest.Shared(t))
	dir, reg := t.TempDir(), ocitest.NewPlain(t)
	module, err := run(".", nil, current, "push", "oci://"+reg.Host+"/team/web:1", e2e.Example(t, "webapp"), "--insecure-registry", reg.Host)
	if err != nil {
		t.Fatal(err)
	}
	const apps = 4
	requests := 0
	for i, binary := range []string{released(t), current, released(t)} {
		r := replicaOf(f, binary, module, "--insecure-registry", reg.Host,
			"--state-dir", filepath.Join(dir, "state"), "--cache-dir", filepath.Join(dir, "cache"), "--memo", filepath.Join(dir, "memo"))
		r.WantLine(`"msg":"reconciling"`)
		f.Put(t.Context(), "one", e2e.App{Image: fmt.Sprint("i:", i)})
		f.Churn(t.Context(), apps, 1)()
		f.Confirm()
		r.stop()
		for _, line := range r.LinesWith(`"level":"WARN"`) {
			if !strings.Contains(line, "insecure") {
				t.Errorf("%s warns: %s", r.binary, line)
			}
		}
		if n := len(reg.Requests()); i > 0 && n != requests {
			t.Errorf("%s has asked the registry: %q", r.binary, reg.Requests()[requests:])
		}
		requests = len(reg.Requests())
	}
}

// TestSkew_CommandsReachTheOtherVersion: the commands of one version work with a process of the other one. What the older process does not
// have is an error that names its version.
func TestSkew_CommandsReachTheOtherVersion(t *testing.T) {
	t.Parallel()
	f := e2e.NewFleet(t, devclustertest.Shared(t))
	f.Put(t.Context(), "one", e2e.App{Image: "i:1"})
	for _, pair := range [][2]string{{current, released(t)}, {released(t), current}} {
		r := replicaOf(f, pair[1], e2e.Example(t, "webapp"), "--cache-dir", e2e.CodeDir)
		r.Until("the object has run", func() bool { return len(r.Reconciles()) > 0 })
		command := func(args ...string) (string, error) {
			return run(".", nil, append([]string{pair[0], args[0], "--socket", r.socket}, args[1:]...)...)
		}
		object := f.Ns + "/one"
		for _, args := range [][]string{
			{"status"},
			{"status", "-o", "json"},
			{"explain", "webapp", object},
			{"top"},
			{"logs", "webapp"},
			{"log-level", "webapp", "debug"},
			{"trigger", "webapp", object},
			{"pause", "webapp"},
			{"resume", "webapp"},
			{"swap", "webapp", e2e.Example(t, "webapp")},
		} {
			out, err := command(args...)
			if err != nil || out == "" {
				t.Errorf("%s of %s: %v: %q", args[0], pair[0], err, out)
			}
		}
		if pair[0] == current {
			if _, err := command("release", "webapp", object); err == nil || !strings.Contains(err.Error(), "the process is wasmctl released, which does not know release") {
				t.Errorf("release: %v", err)
			}
		}
		r.stop()
	}
}

// TestSkew_ReconcilersOfBothVersions: the CRDs are updated first, and then the processes, and the processes go back to the released
// version and forth again. Each version runs the Reconciler, also with fields that it does not know. The objects are released if the
// Reconciler is deleted in the end.
func TestSkew_ReconcilersOfBothVersions(t *testing.T) {
	t.Parallel()
	cluster := devclustertest.Own(t) // the CRDs are those of all tests
	crds, err := run(".", nil, released(t), "crds")
	if err != nil {
		t.Fatal(err)
	}
	devclustertest.Apply(t, cluster, []byte(crds))
	ns, kubeconfig := e2e.NewConfigMapsOn(t, cluster)
	devclustertest.ApplyIn(t, cluster, ns, []byte(strings.ReplaceAll(moduleRights, "NS", ns)))
	client := kubernetes.NewForConfigOrDie(cluster.RESTConfig()).CoreV1().ConfigMaps(ns)
	const cleanup = "cleanup.example.dev/module"
	module := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "module"}, BinaryData: map[string][]byte{"module.wasm": enginetest.Finalizing(t, cleanup, false)}}
	if _, err := client.Create(t.Context(), module, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	serve := func(binary string) *e2e.Process {
		return e2e.Start(t, exec.Command(binary, append([]string{
			"serve", "--log-format", "json", "--cache-dir", e2e.CodeDir, "--kubeconfig", kubeconfig, "--socket", "none", "-n", ns,
			"--leader-elect", "--leader-elect-resource-namespace", ns,
		}, e2e.ShortLeases...)...))
	}
	reconcilers := dynamic.NewForConfigOrDie(cluster.RESTConfig()).Resource(v1alpha1.GVR("Reconciler")).Namespace(ns)
	apply := func(spec map[string]any) {
		t.Helper()
		spec["module"] = map[string]any{"configMapKeyRef": map[string]any{"name": "module", "key": "module.wasm"}}
		spec["grant"], spec["rollout"] = map[string]any{"manifest": true}, map[string]any{"probation": "1s"}
		o := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "wasmctl.dev/v1alpha1", "kind": "Reconciler", "metadata": map[string]any{"name": "web"}, "spec": spec}}
		if _, err := reconcilers.Apply(t.Context(), "web", o, metav1.ApplyOptions{FieldManager: "user", Force: true}); err != nil {
			t.Fatal(err)
		}
	}
	c := serve(released(t))
	apply(map[string]any{})
	live(c, cluster, ns, "web")
	devclustertest.Apply(t, cluster, []byte(v1alpha1.CRDs))
	apply(map[string]any{"deletionPolicy": "Release", "adoptManagers": []any{"former"}})
	live(c, cluster, ns, "web")
	for i, binary := range []string{current, released(t), current} {
		next := serve(binary)
		next.WantLine("another replica leads")
		c.Signal(syscall.SIGTERM)
		c.WantExit(e2e.ExitOK)
		c = next
		apply(map[string]any{"adoptManagers": []any{"former", fmt.Sprint("other-", i)}})
		live(c, cluster, ns, "web")
		c.Until("the status has the finalizer of the module", func() bool {
			o, err := reconcilers.Get(t.Context(), "web", metav1.GetOptions{})
			if err != nil {
				return false
			}
			finalizers, _, _ := unstructured.NestedSlice(o.Object, "status", "finalizers")
			return len(finalizers) == 1 && len(o.GetFinalizers()) == 1
		})
	}
	if err := reconcilers.Delete(t.Context(), "web", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	c.Until("the Reconciler is gone", func() bool {
		_, err := reconcilers.Get(t.Context(), "web", metav1.GetOptions{})
		return apierrors.IsNotFound(err)
	})
	list, err := client.List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for i := range list.Items {
		if o := &list.Items[i]; len(o.Finalizers) > 0 {
			t.Errorf("%s has the finalizers %q", o.Name, o.Finalizers)
		}
	}
	c.Signal(syscall.SIGTERM)
	c.WantExit(e2e.ExitOK)
}
