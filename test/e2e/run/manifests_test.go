// SPDX-License-Identifier: Apache-2.0

package run_test

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/yaml"

	"github.com/wasmctl/wasmctl/devcluster/devclustertest"
	"github.com/wasmctl/wasmctl/internal/enginetest"
	"github.com/wasmctl/wasmctl/test/e2e/internal/e2e"
)

// TestManifests_RunUnderTheRightsThatTheyGive: the API server accepts the output
// unchanged, its pod passes the strictest Pod Security Standard, and a process with only
// the rights of its service account does the work.
func TestManifests_RunUnderTheRightsThatTheyGive(t *testing.T) {
	t.Parallel()
	cluster := devclustertest.Own(t)
	for _, name := range []string{"configmapgenerator", "webapp"} {
		devclustertest.ApplyFile(t, cluster, "../../../examples/"+name+"/crd.yaml")
	}
	dir := t.TempDir()
	file := filepath.Join(dir, "controllers.yaml")
	e2e.Replace(t, file, []byte("apiVersion: wasmctl.dev/v1\nkind: Controllers\nprocess: {workers: 4}\ndefaults: {grant: {manifest: true}}\ncontrollers:\n"+
		"- {name: cmg, module: "+e2e.Example(t, "configmapgenerator")+"}\n- {name: web, module: "+e2e.Example(t, "webapp")+", namespaces: [default]}\n"))
	printed := e2e.Manifests(t, "-f", file, "--kubeconfig", cluster.Kubeconfig(), "--replicas", "2", "--image", "registry.example/wasmctl:1")
	objects := devclustertest.Apply(t, cluster, printed)
	kinds := map[string]int{}
	for _, o := range objects {
		kinds[o.GetKind()]++
	}
	for _, kind := range []string{"Namespace", "ServiceAccount", "ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding", "ConfigMap", "Deployment", "Service", "PodDisruptionBudget"} {
		if kinds[kind] == 0 {
			t.Errorf("no %s: %v", kind, kinds)
		}
	}
	client, err := kubernetes.NewForConfig(cluster.RESTConfig())
	if err != nil {
		t.Fatal(err)
	}
	const ns = "wasmctl-system"
	deployment, err := client.AppsV1().Deployments(ns).Get(t.Context(), "wasmctl", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{GenerateName: "try-", Labels: deployment.Spec.Template.Labels}, Spec: deployment.Spec.Template.Spec}
	if _, err := client.CoreV1().Pods(ns).Create(t.Context(), pod, metav1.CreateOptions{DryRun: []string{"All"}}); err != nil {
		t.Errorf("the pod is not admitted: %v", err)
	}

	token, err := client.CoreV1().ServiceAccounts(ns).CreateToken(t.Context(), "wasmctl", &authenticationv1.TokenRequest{}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	rc := rest.AnonymousClientConfig(cluster.RESTConfig())
	rc.BearerToken = token.Status.Token
	cm, err := client.CoreV1().ConfigMaps(ns).Get(t.Context(), "wasmctl-controllers", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	// The modules are those of the volume, compressed.
	for _, source := range deployment.Spec.Template.Spec.Volumes[len(deployment.Spec.Template.Spec.Volumes)-1].Projected.Sources {
		cm, err := client.CoreV1().ConfigMaps(ns).Get(t.Context(), source.ConfigMap.Name, metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		for name, content := range cm.BinaryData {
			e2e.Replace(t, filepath.Join(dir, name), content)
			if !bytes.HasPrefix(content, []byte("\x1f\x8b")) {
				t.Errorf("%s is not compressed", name)
			}
		}
	}
	e2e.Replace(t, file, []byte(strings.ReplaceAll(cm.Data["controllers.yaml"], "/modules/", dir+"/")))
	c := e2e.Run(t, "-f", file, "--socket", "none", "--kubeconfig", e2e.WriteKubeconfig(t, rc), "--leader-elect", "--leader-elect-resource-name", "wasmctl",
		"--leader-elect-resource-namespace", ns)
	c.WantLine(`"msg":"reconciling"`, `"controller":"cmg"`)
	for _, name := range []string{"configmapgenerator", "webapp"} {
		devclustertest.ApplyFile(t, cluster, "../../../examples/"+name+"/sample.yaml")
	}
	c.WantLine(`"msg":"reconciled"`, `"controller":"cmg"`, `"action":"requeue after 5m0s"`)
	c.WantLine(`"msg":"reconciled"`, `"controller":"web"`, `"action":"await change"`)
	enginetest.Until(t, "the Deployment of the app", func() bool {
		_, err := client.AppsV1().Deployments("default").Get(t.Context(), "hello", metav1.GetOptions{})
		return err == nil
	})
	c.Signal(syscall.SIGTERM)
	c.WantExit(e2e.ExitOK)
	for _, bad := range []string{"forbidden", "allows less than the module is granted"} {
		if text := c.Text(); strings.Contains(text, bad) {
			t.Errorf("output contains %q", bad)
		}
	}
}

// TestManifests_IsAKustomizeBase: a file for each object, all of them named.
func TestManifests_IsAKustomizeBase(t *testing.T) {
	t.Parallel()
	cluster := devclustertest.Shared(t)
	dir := t.TempDir()
	e2e.Replace(t, filepath.Join(dir, "m.wasm"), enginetest.Worse(enginetest.Good, 1))
	e2e.Replace(t, filepath.Join(dir, "settings.yaml"), []byte("greeting: hello\n"))
	file := filepath.Join(dir, "controllers.yaml")
	e2e.Replace(t, file, []byte("apiVersion: wasmctl.dev/v1\nkind: Controllers\ncontrollers:\n- {name: one, module: m.wasm, for: cm, grant: {manifest: true}, configFile: settings.yaml}\n"))
	base := filepath.Join(dir, "base")
	if out := e2e.Manifests(t, "-f", file, "--kubeconfig", cluster.Kubeconfig(), "--output-dir", base, "--pod-monitor"); len(out) > 0 {
		t.Errorf("prints %s", out)
	}
	var k struct{ Resources []string }
	b, err := os.ReadFile(filepath.Join(base, "kustomization.yaml"))
	if err != nil || yaml.Unmarshal(b, &k) != nil {
		t.Fatal(err, string(b))
	}
	var all strings.Builder
	for _, name := range k.Resources {
		b, err := os.ReadFile(filepath.Join(base, name))
		if err != nil {
			t.Fatal(err)
		}
		all.Write(b)
	}
	for _, want := range []string{"kind: PodMonitor", "one.wasm: ", "one-config-file.yaml: |", "greeting: hello", "configFile: /etc/wasmctl/one-config-file.yaml", "module: /modules/one.wasm"} {
		if !strings.Contains(all.String(), want) {
			t.Errorf("no %q in\n%s", want, all.String())
		}
	}
}
