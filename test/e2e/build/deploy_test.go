// SPDX-License-Identifier: Apache-2.0

package build_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/dynamic"

	"github.com/wasmctl/wasmctl/api/v1alpha1"
	"github.com/wasmctl/wasmctl/devcluster"
	"github.com/wasmctl/wasmctl/devcluster/devclustertest"
	"github.com/wasmctl/wasmctl/host/oci/ocitest"
	"github.com/wasmctl/wasmctl/test/e2e/internal/e2e"
)

// moduleRights are the rights of the module in the namespace NS.
const moduleRights = `{apiVersion: rbac.authorization.k8s.io/v1, kind: Role, metadata: {name: module}, rules: [
  {apiGroups: [""], resources: [configmaps, configmaps/status], verbs: ["*"]}]}
---
{apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding, metadata: {name: module}, roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: module},
  subjects: [{kind: ServiceAccount, name: default, namespace: NS}]}
`

// TestProject_DeploysByMake: make deploy of a new project pushes the module to a
// registry, and wasmctl serve runs it. After a change, it runs the other one.
func TestProject_DeploysByMake(t *testing.T) {
	t.Parallel()
	for _, tool := range []string{"kubectl", "make"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skipf("SKIPPED: %s is not on PATH: make deploy of a new project is not tested", tool)
		}
	}
	cluster, reg := devclustertest.Shared(t), ocitest.NewPlain(t)
	ns, kubeconfig := e2e.NewConfigMaps(t)
	devclustertest.Apply(t, cluster, []byte(v1alpha1.CRDs))
	devclustertest.ApplyIn(t, cluster, ns, []byte(strings.ReplaceAll(moduleRights, "NS", ns)))
	dir := filepath.Join(t.TempDir(), "greeter")
	e2e.Output(t, "new", dir, "--lang", "go", "--kind", "Deployed.project.wasmctl.dev/v1", "--sdk", "../../..")
	spec := filepath.Join(dir, "reconciler.yaml")
	e2e.Replace(t, spec, []byte(string(e2e.ReadFile(t, spec))+"  rollout: {probation: 1s}\n"))
	c := e2e.Start(t, exec.Command("wasmctl", "serve", "--log-format", "json", "--cache-dir", e2e.CodeDir, "--kubeconfig", kubeconfig, "--socket", "none",
		"-n", ns, "--insecure-registry", reg.Host))
	run := func(command ...string) {
		t.Helper()
		cmd := exec.Command(command[0], command[1:]...)
		cmd.Dir, cmd.Env = dir, append(os.Environ(), "KUBECONFIG="+kubeconfig)
		cmd.Stdout, cmd.Stderr = t.Output(), t.Output()
		if err := cmd.Run(); err != nil {
			t.Fatalf("%q: %v", command, err)
		}
	}
	deploy := []string{"make", "deploy", "IMAGE=" + reg.Host + "/team/greeter:1", "NAMESPACE=" + ns, "PUSH_FLAGS=--insecure-registry " + reg.Host}
	run(deploy...)
	sample := filepath.Join(dir, "sample.yaml")
	e2e.Replace(t, sample, []byte(strings.ReplaceAll(string(e2e.ReadFile(t, sample)), "namespace: default", "namespace: "+ns)))
	run("kubectl", "apply", "-f", "sample.yaml") // probation needs runs
	first := live(c, cluster, ns, "greeter")
	code := filepath.Join(dir, "reconcile.go")
	e2e.Replace(t, code, []byte(strings.ReplaceAll(string(e2e.ReadFile(t, code)), "the ConfigMap has the text", "the ConfigMap has this text")))
	run(deploy...)
	second := live(c, cluster, ns, "greeter")
	if first.Version != "1" || second.Version != "1" || first.Digest == second.Digest {
		t.Errorf("%+v, then %+v", first, second)
	}
	run("kubectl", "-n", ns, "delete", "reconciler", "greeter")
	c.Signal(syscall.SIGTERM)
	c.WantExit(e2e.ExitOK)
}

// live waits until a Reconciler is ready with its newest spec, and returns its module.
func live(c *e2e.Process, cluster *devcluster.Cluster, ns, name string) *v1alpha1.Revision {
	c.T.Helper()
	reconcilers := dynamic.NewForConfigOrDie(cluster.RESTConfig()).Resource(v1alpha1.GVR("Reconciler")).Namespace(ns)
	var r v1alpha1.Reconciler
	c.Until(name+" is ready", func() bool {
		o, err := reconcilers.Get(c.T.Context(), name, metav1.GetOptions{})
		if err == nil {
			r = v1alpha1.Reconciler{}
			err = runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, &r)
		}
		if err != nil {
			c.T.Fatal(err)
		}
		ready := meta.FindStatusCondition(r.Status.Conditions, v1alpha1.Ready)
		return ready != nil && ready.Status == metav1.ConditionTrue && ready.Reason == "Succeeded" && ready.ObservedGeneration == r.Generation
	})
	return r.Status.Live
}
