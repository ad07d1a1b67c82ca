// SPDX-License-Identifier: Apache-2.0

package serve_test

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/wasmctl/wasmctl/api/v1alpha1"
	"github.com/wasmctl/wasmctl/devcluster"
	"github.com/wasmctl/wasmctl/devcluster/devclustertest"
	"github.com/wasmctl/wasmctl/internal/enginetest"
	"github.com/wasmctl/wasmctl/test/e2e/internal/e2e"
)

// installation is a cluster with the objects of wasmctl manifests --serve, and a tenant
// with the module configmapgenerator in the ConfigMap "module".
type installation struct {
	*tenant

	cluster *devcluster.Cluster
	module  string // a file
}

func install(t *testing.T) *installation {
	t.Helper()
	cluster := devclustertest.Own(t)
	devclustertest.ApplyFile(t, cluster, "../../../examples/configmapgenerator/crd.yaml")
	devclustertest.Apply(t, cluster, e2e.Manifests(t, "--serve", "--image", "registry.example/wasmctl:1", "--replicas", "2"))
	i := &installation{cluster: cluster, module: e2e.Example(t, "configmapgenerator"), tenant: &tenant{
		T: t, ns: devclustertest.Namespace(t, cluster), client: kubernetes.NewForConfigOrDie(cluster.RESTConfig()), dynamic: dynamic.NewForConfigOrDie(cluster.RESTConfig()),
	}}
	i.tenant.module("module", packed(t, e2e.ReadFile(t, i.module)))
	devclustertest.Apply(t, cluster, i.print("rbac", i.module, "-n", i.ns, "--serviceaccount", i.ns+":web", "--kubeconfig", cluster.Kubeconfig()))
	devclustertest.ApplyIn(t, cluster, i.ns, []byte(`{apiVersion: rbac.authorization.k8s.io/v1, kind: Role, metadata: {name: read-module}, rules: [{apiGroups: [""], resources: [configmaps], resourceNames: [module], verbs: [get]}]}
---
{apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding, metadata: {name: read-module}, roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: read-module}, subjects: [{kind: ServiceAccount, name: web, namespace: `+i.ns+`}]}
`))
	return i
}

// packed compresses a module, which is too large for a ConfigMap.
func packed(t *testing.T, module []byte) []byte {
	t.Helper()
	var b bytes.Buffer
	w, err := gzip.NewWriterLevel(&b, gzip.BestCompression)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.Write(module); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// print returns the output of a command.
func (i *installation) print(args ...string) []byte {
	i.Helper()
	out, err := exec.Command("wasmctl", args...).Output()
	i.must(err)
	return out
}

// host returns a configuration with the rights of the installed service account.
func (i *installation) host() *rest.Config {
	i.Helper()
	token, err := i.client.CoreV1().ServiceAccounts("wasmctl-system").CreateToken(i.Context(), "wasmctl", &authenticationv1.TokenRequest{}, metav1.CreateOptions{})
	i.must(err)
	rc := rest.AnonymousClientConfig(i.cluster.RESTConfig())
	rc.BearerToken = token.Status.Token
	return rc
}

// serves runs wasmctl serve with the rights of the installed service account, until a
// new Reconciler is ready and has done its work.
func (i *installation) serves(name string) {
	i.Helper()
	i.kubeconfig = e2e.WriteKubeconfig(i.T, i.host())
	c := e2e.Start(i.T, exec.Command("wasmctl", "serve", "--log-format", "json", "--cache-dir", e2e.CodeDir, "--kubeconfig", i.kubeconfig, "--socket", "none",
		"--leader-elect", "--leader-elect-resource-name", "wasmctl", "--leader-elect-resource-namespace", "wasmctl-system"))
	i.create(name, map[string]any{
		"module": map[string]any{"configMapKeyRef": map[string]any{"name": "module", "key": "module.wasm"}}, "serviceAccountName": "web",
		"grant": map[string]any{"manifest": true}, "selector": map[string]any{"matchLabels": map[string]any{"for": name}},
	})
	devclustertest.ApplyIn(i.T, i.cluster, i.ns, fmt.Appendf(nil, `{apiVersion: examples.wasmctl.dev/v1, kind: ConfigMapGenerator, metadata: {name: %s, labels: {for: %[1]s}}, spec: {content: hello}}`, name))
	r := i.ready(name, "True", "Succeeded")
	if granted, _ := json.Marshal(r.Status.Conditions); strings.Contains(string(granted), "RightsMissing") { //nolint:errchkjson // for people
		i.Errorf("%s", granted)
	}
	enginetest.Until(i.T, "the ConfigMap is there", func() bool {
		_, err := i.client.CoreV1().ConfigMaps(i.ns).Get(i.Context(), name, metav1.GetOptions{})
		return err == nil
	})
	enginetest.Until(i.T, "an event on the Reconciler reports that it is ready", func() bool {
		return slices.Contains(i.events(i.ns, name), "Succeeded")
	})
	i.must(i.dynamic.Resource(v1alpha1.GVR("Reconciler")).Namespace(i.ns).Delete(i.Context(), name, metav1.DeleteOptions{}))
	enginetest.Until(i.T, "it is gone", func() bool {
		_, err := i.dynamic.Resource(v1alpha1.GVR("Reconciler")).Namespace(i.ns).Get(i.Context(), name, metav1.GetOptions{})
		return apierrors.IsNotFound(err)
	})
	c.Signal(syscall.SIGTERM)
	c.WantExit(e2e.ExitOK)
	for _, bad := range []string{"forbidden", "refused an event", "allows less than the module is granted"} {
		if text := c.Text(); strings.Contains(text, bad) {
			i.Errorf("output contains %q:\n%s", bad, text)
		}
	}
}

// TestManifestsServe_RunUnderTheRightsThatTheyGive: the API server accepts the
// installation unchanged, its pod passes the strictest Pod Security Standard, and a
// process with only the rights of its service account serves a Reconciler. It also does
// if it may impersonate accounts only by constrained impersonation.
func TestManifestsServe_RunUnderTheRightsThatTheyGive(t *testing.T) {
	t.Parallel()
	i := install(t)
	const ns = "wasmctl-system"
	deployment, err := i.client.AppsV1().Deployments(ns).Get(t.Context(), "wasmctl", metav1.GetOptions{})
	i.must(err)
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{GenerateName: "try-", Labels: deployment.Spec.Template.Labels}, Spec: deployment.Spec.Template.Spec}
	if _, err := i.client.CoreV1().Pods(ns).Create(t.Context(), pod, metav1.CreateOptions{DryRun: []string{"All"}}); err != nil {
		t.Errorf("the pod is not admitted: %v", err)
	}
	i.serves("classic")
	if !devclustertest.AtLeast(t, i.cluster, "1.36") {
		t.Log("SKIPPED: Kubernetes before 1.36 has no constrained impersonation")
		return
	}

	const role = "wasmctl-system:wasmctl"
	i.must(i.client.RbacV1().ClusterRoles().Delete(t.Context(), role, metav1.DeleteOptions{}))
	as := "system:serviceaccount:" + i.ns + ":web"
	impersonates := func() error {
		rc := i.host()
		rc.Impersonate.UserName = as
		_, err := kubernetes.NewForConfigOrDie(rc).CoreV1().ConfigMaps(i.ns).Get(t.Context(), "module", metav1.GetOptions{})
		return err
	}
	enginetest.Until(t, "impersonation is forbidden", func() bool { return apierrors.IsForbidden(impersonates()) })
	devclustertest.Apply(t, i.cluster, i.print("rbac", "--serve", "--constrained-impersonation"))
	devclustertest.Apply(t, i.cluster, i.print("rbac", "--serve", "--constrained-impersonation", "--as", as, i.module, "-n", i.ns, "--kubeconfig", i.cluster.Kubeconfig()))
	enginetest.Until(t, "the account is impersonated", func() bool { return impersonates() == nil })
	i.serves("constrained")
	rc := i.host()
	rc.Impersonate.UserName = as
	if _, err := kubernetes.NewForConfigOrDie(rc).CoreV1().ConfigMaps(i.ns).Update(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "module"}}, metav1.UpdateOptions{}); !apierrors.IsForbidden(err) {
		t.Errorf("an update, which the module does not need: %v", err)
	}
}
