// SPDX-License-Identifier: Apache-2.0

package run_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"

	"github.com/wasmctl/wasmctl/devcluster"
	"github.com/wasmctl/wasmctl/devcluster/devclustertest"
	"github.com/wasmctl/wasmctl/host/load"
	"github.com/wasmctl/wasmctl/internal/enginetest"
	"github.com/wasmctl/wasmctl/runtime/admin"
	"github.com/wasmctl/wasmctl/test/e2e/internal/e2e"
)

// walled is a namespace in which the example runs with limited rights.
type walled struct {
	t       *testing.T
	cluster *devcluster.Cluster
	ns      string
	client  dynamic.Interface
}

func newWalled(t *testing.T) *walled {
	t.Helper()
	cluster := devclustertest.Shared(t)
	devclustertest.ApplyFile(t, cluster, e2e.GeneratorCRD)
	client, err := dynamic.NewForConfig(cluster.RESTConfig())
	if err != nil {
		t.Fatal(err)
	}
	return &walled{t, cluster, devclustertest.Namespace(t, cluster), client}
}

// generate makes a generator.
func (w *walled) generate(name string) {
	w.t.Helper()
	_, err := w.client.Resource(e2e.Generators).Namespace(w.ns).Create(w.t.Context(), &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": e2e.Generators.GroupVersion().String(), "kind": "ConfigMapGenerator",
		"metadata": map[string]any{"name": name}, "spec": map[string]any{"content": "x"},
	}}, metav1.CreateOptions{})
	if err != nil {
		w.t.Fatal(err)
	}
}

func (w *walled) run(args ...string) *e2e.Process {
	w.t.Helper()
	return e2e.Run(w.t, append([]string{e2e.Example(w.t, "configmapgenerator"), "-n", w.ns, "--socket", "none", "--kubeconfig", w.cluster.Kubeconfig()}, args...)...)
}

// configMaps returns the names of the ConfigMaps, without the one that each namespace
// has.
func (w *walled) configMaps() string {
	w.t.Helper()
	maps, err := w.client.Resource(e2e.ConfigMaps).Namespace(w.ns).List(w.t.Context(), metav1.ListOptions{})
	if err != nil {
		w.t.Fatal(err)
	}
	var names []string
	for i := range maps.Items {
		if name := maps.Items[i].GetName(); name != "kube-root-ca.crt" {
			names = append(names, name)
		}
	}
	return strings.Join(names, ",")
}

// runDry runs the example with --dry-run; out returns its output.
func (w *walled) runDry() (c *e2e.Process, out func() string) {
	w.t.Helper()
	cmd := exec.Command("wasmctl", "run", e2e.Example(w.t, "configmapgenerator"), "-n", w.ns, "--socket", "none", "--kubeconfig", w.cluster.Kubeconfig(),
		"--grant-manifest", "--dry-run", "--log-format", "json", "--cache-dir", e2e.CodeDir)
	var b e2e.Buffer
	cmd.Env, cmd.Stdout = os.Environ(), &b
	return e2e.Start(w.t, cmd), b.String
}

// grantFile writes a grant; NS in it stands for the namespace.
func (w *walled) grantFile(capabilities string) string {
	w.t.Helper()
	path := filepath.Join(w.t.TempDir(), "grant.yaml")
	text := "apiVersion: wasmctl.dev/v1\nkind: Grant\ncapabilities:\n" + strings.ReplaceAll(capabilities, "NS", w.ns)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		w.t.Fatal(err)
	}
	return path
}

// TestRun_GrantsNothingThatNobodyGranted: a module that requests rights does not start
// without a grant. The error lists the rights, and the ways to grant them.
func TestRun_GrantsNothingThatNobodyGranted(t *testing.T) {
	w := newWalled(t)
	c := w.run("--grant-manifest=false")
	c.WantExit(e2e.ExitDenied)
	for _, want := range []string{"not granted", "--grant-manifest", "list, watch configmaps", "get, list, watch configmapgenerators"} {
		if !strings.Contains(strings.ReplaceAll(c.Text(), `\"`, `"`), want) {
			t.Errorf("no %q in\n%s", want, c.Text())
		}
	}
	plain := e2e.Run(t, e2e.Guests+"empty.wasm", "--for", "cm", "-n", w.ns, "--grant-manifest=false", "--socket", "none", "--kubeconfig", w.cluster.Kubeconfig())
	plain.WantLine("reconciles") // it requests only its kind, which the user named
	plain.Signal(syscall.SIGTERM)
	plain.WantExit(e2e.ExitOK)
}

const exampleGrant = `
- {group: examples.wasmctl.dev, resource: configmapgenerators, verbs: [get, list, watch], namespaces: [NS]}
- {group: examples.wasmctl.dev, resource: configmapgenerators, subresources: [status], verbs: ["*"], namespaces: [NS]}
`

// TestRun_GrantBoundsTheManifest: watches are limited to the grant, each write to its
// fields, and a request beyond it is denied and reported once.
func TestRun_GrantBoundsTheManifest(t *testing.T) {
	w := newWalled(t)
	file := w.grantFile(exampleGrant + `- {resource: configmaps, verbs: [get, list, watch, create, patch], namespaces: [NS, other], fields: [metadata.labels]}` + "\n")
	socket := e2e.NewSocket(t)
	c := w.run("--grant", file, "--socket", socket)
	c.WantLine("watches owned", "configmaps")
	w.generate("a")
	line := c.WantLine("denied a request of the module")
	if !strings.Contains(line, "data") || !strings.Contains(line, "the grant of the operator (--grant; for a Reconciler, spec.grant)") {
		t.Errorf("denied: %s", line)
	}
	rule := `{"group":"","resource":"configmaps","verbs":["patch"],"namespaces":["` + w.ns + `"],"fields":["data.content`
	status, explained := e2e.Steer(t, "status", socket), e2e.Steer(t, "explain", socket, "configmapgenerator/a", "-n", w.ns)
	if strings.Count(status, "  "+rule) != 1 || !strings.Contains(status, w.ns+"/a") {
		t.Errorf("status does not say once that %s is missing:\n%s", rule, status)
	}
	if strings.Count(explained, "\n  - "+rule) != 1 || !strings.Contains(explained, "the last for "+w.ns+"/a") {
		t.Errorf("explain does not say once that %s is missing:\n%s", rule, explained)
	}
	if _, op, found := strings.Cut(explained, "denied    apply "); !found || strings.Contains(op[:strings.Index(op, "\n  error")], "to allow it") {
		t.Errorf("an operation repeats the rule:\n%s", explained)
	}
	st, err := admin.NewClient(socket).Status(t.Context())
	if err != nil || len(st.Controllers) != 1 || len(st.Controllers[0].MissingRights) != 2 {
		t.Fatalf("status: %+v, %v", st.Controllers, err)
	}
	used, unused := st.Controllers[0].MissingRights[0], st.Controllers[0].MissingRights[1]
	if !strings.Contains(string(used.Rule), `"fields":["data`) || used.Count == 0 || !strings.Contains(string(unused.Rule), `"verbs":["create","patch"]`) || unused.Count != 0 {
		t.Errorf("status: %+v", st.Controllers[0].MissingRights)
	}
	if js := e2e.Steer(t, "status", socket, "-o", "json"); !strings.Contains(js, `"state": "fails: `+w.ns+`/a`) || !strings.Contains(js, `"missingRights": [`) {
		t.Errorf("the JSON lacks what the table shows:\n%s", js)
	}
	c.Signal(syscall.SIGTERM)
	c.WantExit(e2e.ExitOK)
	if got := w.configMaps(); got != "" {
		t.Errorf("%s was written", got)
	}
	none := w.run("--grant", w.grantFile(exampleGrant))
	none.WantExit(e2e.ExitDenied)
	if !strings.Contains(none.Text(), "list, watch configmaps") {
		t.Errorf("a watch that is not granted: %s", none.Text())
	}
	bad := w.run("--grant", w.grantFile("- {resource: configmaps, verbs: [gte]}"))
	bad.WantExit(e2e.ExitUsage)
	if !strings.Contains(bad.Text(), "did you mean get?") {
		t.Errorf("a misspelled verb: %s", bad.Text())
	}
}

// TestRBAC_IsEnoughToRunTheExample: with only the roles that wasmctl rbac prints, the
// example does its work. Without them, it does not start.
func TestRBAC_IsEnoughToRunTheExample(t *testing.T) {
	w := newWalled(t)
	as := "system:serviceaccount:" + w.ns + ":example"
	before := w.run("--as", as)
	before.WantExit(e2e.ExitDenied)
	if !strings.Contains(before.Text(), "configmapgenerators") {
		t.Errorf("without roles: %s", before.Text())
	}
	roles := w.rbac(e2e.Example(t, "configmapgenerator"), "-n", w.ns)
	if strings.Contains(string(roles), "kind: ClusterRole") {
		t.Errorf("with --namespace there is a ClusterRole:\n%s", roles)
	}
	devclustertest.Apply(t, w.cluster, roles)
	enginetest.Until(t, "the API server knows the roles", func() bool { return w.may(as) })
	c := w.run("--as", as)
	w.generate("a")
	c.WantLine(`"msg":"reconciled"`, w.ns+"/a")
	enginetest.Until(t, "the ConfigMap is there", func() bool { return w.configMaps() == "a" })
	c.Signal(syscall.SIGTERM)
	c.WantExit(e2e.ExitOK)
	for _, bad := range []string{"forbidden", "denied", "give it these RBAC rules"} {
		if strings.Contains(strings.ToLower(c.Text()), strings.ToLower(bad)) {
			t.Errorf("something was %s:\n%s", bad, c.Text())
		}
	}
}

// may reports whether a user may list the generators, and ConfigMaps as well.
func (w *walled) may(user string) bool {
	config := w.cluster.RESTConfig()
	config.Impersonate.UserName = user
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		w.t.Fatal(err)
	}
	_, err = client.CoreV1().ConfigMaps(w.ns).List(w.t.Context(), metav1.ListOptions{})
	if err != nil && !apierrors.IsForbidden(err) {
		w.t.Fatal(err)
	}
	return err == nil
}

// TestRun_AuditWritesTheLeastGrant: the grant that an audit of the example writes is
// enough to run it, and contains fields but no values.
func TestRun_AuditWritesTheLeastGrant(t *testing.T) {
	w := newWalled(t)
	file := filepath.Join(t.TempDir(), "learned.yaml")
	cmd := exec.Command("wasmctl", "run", e2e.Example(w.t, "configmapgenerator"), "-n", w.ns, "--socket", "none", "--kubeconfig", w.cluster.Kubeconfig(),
		"--audit", file, "--log-format", "json", "--cache-dir", e2e.CodeDir)
	cmd.Env = os.Environ()
	c := e2e.Start(t, cmd)
	w.generate("a")
	c.WantLine(`"msg":"reconciled"`, w.ns+"/a")
	enginetest.Until(t, "the write is learned", func() bool {
		b, err := os.ReadFile(file)
		return err == nil && strings.Contains(string(b), "- data.") && strings.Contains(string(b), "# ")
	})
	c.Signal(syscall.SIGTERM)
	c.WantExit(e2e.ExitOK)
	again := w.run("--grant", file)
	w.generate("b")
	again.WantLine(`"msg":"reconciled"`, w.ns+"/b")
	enginetest.Until(t, "the second ConfigMap is there", func() bool { return w.configMaps() == "a,b" })
	again.Signal(syscall.SIGTERM)
	again.WantExit(e2e.ExitOK)
	if strings.Contains(again.Text(), "denied") {
		t.Errorf("something was denied:\n%s", again.Text())
	}
}

// TestConfigSet_NamesTheSettingThatWasMeant: a setting that the manifest lacks is a
// usage error that names the most similar one. A setting that it has is set.
func TestConfigSet_NamesTheSettingThatWasMeant(t *testing.T) {
	w := newWalled(t)
	wasm, err := os.ReadFile(e2e.Example(t, "configmapgenerator"))
	if err != nil {
		t.Fatal(err)
	}
	man := load.Inspect(t.Context(), wasm).Manifest
	man.Config = map[string]string{"prefix": "", "colour": "red"}
	if wasm, err = load.WithManifest(wasm, man); err != nil {
		t.Fatal(err)
	}
	file, socket := filepath.Join(t.TempDir(), "m.wasm"), e2e.NewSocket(t)
	e2e.Replace(t, file, wasm)
	c := e2e.Run(t, file, "-n", w.ns, "--socket", socket, "--kubeconfig", w.cluster.Kubeconfig())
	c.WantLine(`"msg":"reconciling"`)
	code, out := e2e.Refused(t, "config", socket, "set", "configmapgenerator", "prefx=blue")
	if code != e2e.ExitUsage || !strings.Contains(out, "prefx: unknown setting; did you mean prefix? want one of colour, prefix") {
		t.Errorf("misspelled: exit code %d: %s", code, out)
	}
	if code, out = e2e.Refused(t, "config", socket, "set", "configmapgenerator", "nothing-near-"); code != e2e.ExitUsage || !strings.Contains(out, "unknown setting; want one of colour, prefix") {
		t.Errorf("unset, and not there: exit code %d: %s", code, out)
	}
	if out := e2e.Steer(t, "config", socket, "set", "configmapgenerator", "prefix=blue"); !strings.Contains(out, "settings applied (change 2)") {
		t.Errorf("one that it has: %s", out)
	}
	c.Signal(syscall.SIGTERM)
	c.WantExit(e2e.ExitOK)
}
