package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/wasmctl/wasmctl"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"

	"github.com/wasmctl/wasmctl/cmd/wasmctl/internal/flags"
	"github.com/wasmctl/wasmctl/devcluster"
	"github.com/wasmctl/wasmctl/devcluster/devclustertest"
	"github.com/wasmctl/wasmctl/host"
	"github.com/wasmctl/wasmctl/internal/enginetest"
	"github.com/wasmctl/wasmctl/runtime/admin"
)

// exampleCRD is the kind of the example configmapgenerator.
const exampleCRD = "../../examples/configmapgenerator/crd.yaml"

// walled is a namespace in which the example runs under rights.
type walled struct {
	t       *testing.T
	cluster *devcluster.Cluster
	ns      string
	client  dynamic.Interface
}

func newWalled(t *testing.T) *walled {
	t.Helper()
	cluster := devclustertest.Shared(t)
	devclustertest.ApplyFile(t, cluster, exampleCRD)
	client, err := dynamic.NewForConfig(cluster.RESTConfig())
	if err != nil {
		t.Fatal(err)
	}
	return &walled{t, cluster, devclustertest.Namespace(t, cluster), client}
}

// generate makes a generator.
func (w *walled) generate(name string) {
	w.t.Helper()
	_, err := w.client.Resource(generators).Namespace(w.ns).Create(w.t.Context(), &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": generators.GroupVersion().String(), "kind": "ConfigMapGenerator",
		"metadata": map[string]any{"name": name}, "spec": map[string]any{"content": "x"},
	}}, metav1.CreateOptions{})
	if err != nil {
		w.t.Fatal(err)
	}
}

func (w *walled) run(args ...string) *child {
	w.t.Helper()
	return startWasmctl(w.t, append([]string{exampleWasm(w.t, "configmapgenerator"), "-n", w.ns, "--socket", "none", "--kubeconfig", w.cluster.Kubeconfig()}, args...)...)
}

// configMaps names the ConfigMaps there are, but for the one that each
// namespace has.
func (w *walled) configMaps() string {
	w.t.Helper()
	maps, err := w.client.Resource(configMaps).Namespace(w.ns).List(w.t.Context(), metav1.ListOptions{})
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

// runDry runs the example with --dry-run; out is what it has printed.
func (w *walled) runDry() (c *child, out func() string) {
	w.t.Helper()
	cmd := exec.Command("wasmctl", "run", exampleWasm(w.t, "configmapgenerator"), "-n", w.ns, "--socket", "none", "--kubeconfig", w.cluster.Kubeconfig(),
		"--grant-manifest", "--dry-run", "--log-format", "json", "--cache-dir", compiledModules)
	var b lockedBuffer
	cmd.Env, cmd.Stdout = os.Environ(), &b
	return startChild(w.t, cmd), b.String
}

// lockedBuffer is a buffer that one goroutine writes and another reads.
type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer // guarded by mu
}

// Write implements io.Writer.
func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

// String returns what was written until now.
func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// grantFile writes a grant; NS in it is the namespace.
func (w *walled) grantFile(capabilities string) string {
	w.t.Helper()
	path := filepath.Join(w.t.TempDir(), "grant.yaml")
	text := "apiVersion: wasmctl.dev/v1\nkind: Grant\ncapabilities:\n" + strings.ReplaceAll(capabilities, "NS", w.ns)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		w.t.Fatal(err)
	}
	return path
}

// TestRun_GrantsNothingThatNobodyGranted: a module that asks for rights does
// not start without, and it is said which those are and how to give them.
func TestRun_GrantsNothingThatNobodyGranted(t *testing.T) {
	w := newWalled(t)
	c := w.run("--grant-manifest=false")
	c.wantExit(exitDenied)
	for _, want := range []string{"not granted", "--grant-manifest", "list, watch configmaps", "get, list, watch configmapgenerators"} {
		if !strings.Contains(strings.ReplaceAll(c.text(), `\"`, `"`), want) {
			t.Errorf("no %q in\n%s", want, c.text())
		}
	}
	plain := startWasmctl(t, guests+"empty.wasm", "--for", "cm", "-n", w.ns, "--grant-manifest=false", "--socket", "none", "--kubeconfig", w.cluster.Kubeconfig())
	plain.wantLine("reconciles") // it asks for nothing but its kind, which the user named
	plain.signal(syscall.SIGTERM)
	plain.wantExit(exitOK)
}

const exampleGrant = `
- {group: examples.wasmctl.dev, resource: configmapgenerators, verbs: [get, list, watch], namespaces: [NS]}
- {group: examples.wasmctl.dev, resource: configmapgenerators, subresources: [status], verbs: ["*"], namespaces: [NS]}
`

// TestRun_GrantBoundsTheManifest: watches only where they are granted, each
// write within its fields, and what is not granted is denied and said once.
func TestRun_GrantBoundsTheManifest(t *testing.T) {
	w := newWalled(t)
	file := w.grantFile(exampleGrant + `- {resource: configmaps, verbs: [get, list, watch, create, patch], namespaces: [NS, other], fields: [metadata.labels]}` + "\n")
	socket := newSocket(t)
	c := w.run("--grant", file, "--socket", socket)
	c.wantLine("watches owned", "configmaps")
	w.generate("a")
	line := c.wantLine("denied a request of the module")
	if !strings.Contains(line, "data") || !strings.Contains(line, "the grant of the operator (--grant)") {
		t.Errorf("denied: %s", line)
	}
	rule := `{"group":"","resource":"configmaps","verbs":["patch"],"namespaces":["` + w.ns + `"],"fields":["data.content`
	status, explained := steer(t, "status", socket), steer(t, "explain", socket, "configmapgenerator/a", "-n", w.ns)
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
	if js := steer(t, "status", socket, "-o", "json"); !strings.Contains(js, `"state": "fails: `+w.ns+`/a`) || !strings.Contains(js, `"missingRights": [`) {
		t.Errorf("the JSON lacks what the table shows:\n%s", js)
	}
	c.signal(syscall.SIGTERM)
	c.wantExit(exitOK)
	if got := w.configMaps(); got != "" {
		t.Errorf("%s was written", got)
	}
	none := w.run("--grant", w.grantFile(exampleGrant))
	none.wantExit(exitDenied)
	if !strings.Contains(none.text(), "list, watch configmaps") {
		t.Errorf("a watch that is not granted: %s", none.text())
	}
	bad := w.run("--grant", w.grantFile("- {resource: configmaps, verbs: [gte]}"))
	bad.wantExit(exitUsage)
	if !strings.Contains(bad.text(), "did you mean get?") {
		t.Errorf("a misspelled verb: %s", bad.text())
	}
}

// TestRBAC_IsEnoughToRunTheExample: as the account whose roles wasmctl rbac
// prints, and that has no others, the example does its work; without the roles
// it does not start.
func TestRBAC_IsEnoughToRunTheExample(t *testing.T) {
	w := newWalled(t)
	as := "system:serviceaccount:" + w.ns + ":example"
	before := w.run("--as", as)
	before.wantExit(exitDenied)
	if !strings.Contains(before.text(), "configmapgenerators") {
		t.Errorf("without roles: %s", before.text())
	}
	var out, errs bytes.Buffer
	o := &rbacOptions{
		module: exampleWasm(t, "configmapgenerator"), output: "yaml", account: w.ns + ":example", streams: streams{out: &out, err: &errs},
		process: flags.Process{Kubeconfig: w.cluster.Kubeconfig()}, controller: flags.Controller{ControllerOptions: wasmctl.ControllerOptions{Namespaces: []string{w.ns}}},
	}
	if err := runRBAC(t.Context(), o); err != nil || errs.Len() > 0 {
		t.Fatalf("%v %s", err, errs.String())
	}
	if strings.Contains(out.String(), "kind: ClusterRole") {
		t.Errorf("with --namespace there is a ClusterRole:\n%s", out.String())
	}
	devclustertest.Apply(t, w.cluster, out.Bytes())
	enginetest.Until(t, "the API server knows the roles", func() bool { return w.may(as) })
	c := w.run("--as", as)
	w.generate("a")
	c.wantLine(`"msg":"reconciled"`, w.ns+"/a")
	enginetest.Until(t, "the ConfigMap is there", func() bool { return w.configMaps() == "a" })
	c.signal(syscall.SIGTERM)
	c.wantExit(exitOK)
	for _, bad := range []string{"forbidden", "denied", "give it these RBAC rules"} {
		if strings.Contains(strings.ToLower(c.text()), strings.ToLower(bad)) {
			t.Errorf("something was %s:\n%s", bad, c.text())
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

// TestRun_AuditWritesTheLeastGrant: what an audit of the example wrote is enough
// to run it, and has fields and no values.
func TestRun_AuditWritesTheLeastGrant(t *testing.T) {
	w := newWalled(t)
	file := filepath.Join(t.TempDir(), "learned.yaml")
	cmd := exec.Command("wasmctl", "run", exampleWasm(w.t, "configmapgenerator"), "-n", w.ns, "--socket", "none", "--kubeconfig", w.cluster.Kubeconfig(),
		"--audit", file, "--log-format", "json", "--cache-dir", compiledModules)
	cmd.Env = os.Environ()
	c := startChild(t, cmd)
	w.generate("a")
	c.wantLine(`"msg":"reconciled"`, w.ns+"/a")
	enginetest.Until(t, "the write is learned", func() bool {
		b, err := os.ReadFile(file)
		return err == nil && strings.Contains(string(b), "- data.") && strings.Contains(string(b), "# ")
	})
	c.signal(syscall.SIGTERM)
	c.wantExit(exitOK)
	again := w.run("--grant", file)
	w.generate("b")
	again.wantLine(`"msg":"reconciled"`, w.ns+"/b")
	enginetest.Until(t, "the second ConfigMap is there", func() bool { return w.configMaps() == "a,b" })
	again.signal(syscall.SIGTERM)
	again.wantExit(exitOK)
	if strings.Contains(again.text(), "denied") {
		t.Errorf("something was denied:\n%s", again.text())
	}
}

// TestConfigSet_NamesTheSettingThatWasMeant: a setting that the manifest does not
// have is an error of usage, with the nearest one that it has; one that it has is
// set.
func TestConfigSet_NamesTheSettingThatWasMeant(t *testing.T) {
	w := newWalled(t)
	wasm, err := os.ReadFile(exampleWasm(t, "configmapgenerator"))
	if err != nil {
		t.Fatal(err)
	}
	man := host.Inspect(t.Context(), wasm).Manifest
	man.Config = map[string]string{"prefix": "", "colour": "red"}
	if wasm, err = host.WithManifest(wasm, man); err != nil {
		t.Fatal(err)
	}
	file, socket := filepath.Join(t.TempDir(), "m.wasm"), newSocket(t)
	replace(t, file, wasm)
	c := startWasmctl(t, file, "-n", w.ns, "--socket", socket, "--kubeconfig", w.cluster.Kubeconfig())
	c.wantLine(`"msg":"reconciling"`)
	code, out := refusedSteer(t, "config", socket, "set", "configmapgenerator", "prefx=blue")
	if code != exitUsage || !strings.Contains(out, "prefx: unknown setting; did you mean prefix? want one of colour, prefix") {
		t.Errorf("misspelled: exit code %d: %s", code, out)
	}
	if code, out = refusedSteer(t, "config", socket, "set", "configmapgenerator", "nothing-near-"); code != exitUsage || !strings.Contains(out, "unknown setting; want one of colour, prefix") {
		t.Errorf("unset, and not there: exit code %d: %s", code, out)
	}
	if out := steer(t, "config", socket, "set", "configmapgenerator", "prefix=blue"); !strings.Contains(out, "settings applied (change 2)") {
		t.Errorf("one that it has: %s", out)
	}
	c.signal(syscall.SIGTERM)
	c.wantExit(exitOK)
}
