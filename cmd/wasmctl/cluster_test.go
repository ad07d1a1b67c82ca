package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/wasmctl/wasmctl/devcluster"
	"github.com/wasmctl/wasmctl/devcluster/devclustertest"
	"github.com/wasmctl/wasmctl/internal/enginetest"
)

const guests = "../../testdata/wasm/"

func TestRun_UnknownKindNamesNearMatches(t *testing.T) {
	kubeconfig := devclustertest.Shared(t).Kubeconfig()
	c := startWasmctl(t, guests+"empty.wasm", "--for", "deploymnets", "--kubeconfig", kubeconfig)
	c.wantExit(exitKind)
	if !strings.Contains(c.text(), "did you mean deployments.apps") {
		t.Errorf("no near match: %s", c.text())
	}
	c = startWasmctl(t, guests+"empty.wasm", "--for", "cm", "--owns", "daemonsets.nope", "--kubeconfig", kubeconfig)
	c.wantExit(exitKind)
	c = startWasmctl(t, guests+"empty.wasm", "--for", "namespaces", "-n", "default", "--kubeconfig", kubeconfig)
	c.wantExit(exitUsage)
}

func TestRun_SelectorThatTheServerRefusesIsAnError(t *testing.T) {
	kubeconfig := devclustertest.Shared(t).Kubeconfig()
	c := startWasmctl(t, guests+"empty.wasm", "--for", "cm", "--field-selector", "data.nope=1", "--kubeconfig", kubeconfig)
	c.wantExit(exitUsage)
	if !strings.Contains(c.text(), "selector of configmaps") || !strings.Contains(c.text(), "data.nope") {
		t.Errorf("does not name the selector: %s", c.text())
	}
}

func TestRun_MissingRightsAreNamed(t *testing.T) {
	cluster := devclustertest.Shared(t)
	ns := devclustertest.Namespace(t, cluster)
	limited := devclustertest.Limited(t, cluster, ns, rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"get", "list"}})
	kubeconfig := writeKubeconfig(t, limited)
	c := startWasmctl(t, guests+"empty.wasm", "--for", "cm", "-n", ns, "--kubeconfig", kubeconfig)
	c.wantExit(exitDenied)
	for _, want := range []string{"wasmctl rbac", "in a Role in namespace " + ns, `resources: ["configmaps"]`, `verbs: ["watch"]`} {
		if !strings.Contains(c.text(), want) {
			t.Errorf("missing %q:\n%s", want, c.text())
		}
	}
}

// TestRun_WrongCredentialsAreSaid: waiting would not help, so it ends, and says
// where to look.
func TestRun_WrongCredentialsAreSaid(t *testing.T) {
	rc := rest.CopyConfig(devclustertest.Shared(t).RESTConfig())
	rc.CertData, rc.KeyData, rc.BearerToken = nil, nil, "nobody's"
	c := startWasmctl(t, guests+"empty.wasm", "--for", "cm", "--kubeconfig", writeKubeconfig(t, rc))
	c.wantExit(exitDenied)
	if !strings.Contains(c.text(), "kubectl auth whoami") {
		t.Errorf("no next step: %s", c.text())
	}
}

func TestRun_WaitsForACRDThatArrivesLater(t *testing.T) {
	t.Parallel()
	cluster := devclustertest.Shared(t)
	group := devclustertest.Namespace(t, cluster) + ".wasmctl.dev" // a new one for each run of the test
	socket := filepath.Join(t.TempDir(), "s")
	c := startWasmctl(t, guests+"empty.wasm", "--for", "widgets."+group, "--kubeconfig", cluster.Kubeconfig(), "--socket", socket)
	c.wantLine("waiting for CRD widgets." + group + "; kubectl apply -f crd.yaml")
	// status shows that too: the socket opens before anything is waited for.
	var status []byte
	enginetest.Until(t, "status names the kind that is waited for", func() bool {
		status, _ = exec.Command("wasmctl", "status", "--socket", socket).CombinedOutput() // fails until there is a socket
		return bytes.Contains(status, []byte("waiting")) && bytes.Contains(status, []byte("widgets."+group))
	})
	devclustertest.Apply(t, cluster, []byte(`
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.`+group+`}
spec:
  group: `+group+`
  scope: Cluster
  names: {plural: widgets, singular: widget, kind: Widget}
  versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}]
---
apiVersion: `+group+`/v1
kind: Widget
metadata: {name: first}
`))
	c.wantLine(`"msg":"reconciled"`, `"object":"first"`)
	c.signal(syscall.SIGTERM)
	c.wantExit(exitOK)
}

func TestRun_WaitsForAnAPIServerThatIsDown(t *testing.T) {
	const addr = "127.0.0.1:1" // nobody is given this port who asks for any
	kubeconfig := writeKubeconfig(t, &rest.Config{Host: "https://" + addr})
	c := startWasmctl(t, guests+"empty.wasm", "--for", "cm", "--kubeconfig", kubeconfig)
	c.wantLine("waiting for the API server", addr, "refused")
	c.signal(syscall.SIGTERM)
	c.wantExit(exitOK)
}

// createMode creates a generator whose content ends with a byte that tells the
// guest modes.wasm what to do.
func createMode(t *testing.T, client dynamic.Interface, ns, name, content string) {
	t.Helper()
	_, err := client.Resource(generators).Namespace(ns).Create(t.Context(), &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": generators.GroupVersion().String(), "kind": "ConfigMapGenerator",
		"metadata": map[string]any{"name": name}, "spec": map[string]any{"content": content},
	}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
}

// TestRun_FailuresStayWithTheirObject: rule 17, through the whole host: each
// kind of failure is an error of its object, named in the log, and an object
// beside them goes on being reconciled.
func TestRun_FailuresStayWithTheirObject(t *testing.T) {
	t.Parallel()
	cluster := devclustertest.Shared(t)
	devclustertest.ApplyFile(t, cluster, "../../examples/configmapgenerator/crd.yaml")
	ns := devclustertest.Namespace(t, cluster)
	client, err := dynamic.NewForConfig(cluster.RESTConfig())
	if err != nil {
		t.Fatal(err)
	}
	run := func(module string) *child {
		return startWasmctl(t, module, "--for", "configmapgenerators.examples.wasmctl.dev", "-n", ns,
			"--timeout", "5s", "--memory", "1Mi", "--kubeconfig", cluster.Kubeconfig())
	}
	failures := []struct {
		name, content string
		want          []string
	}{
		{"trap", "\x01", []string{"trap", "unreachable"}},
		{"spin", "\x02", []string{"timeout"}},
		{"recurse", "\x03", []string{"trap", "stack"}},
		{"memory", "\x04", []string{"memory"}},
		{"outside", "\x05", []string{"output", "memory"}},
		{"garbage", "\x06", []string{"output", "msgpack"}},
		{"deep", "\x07", []string{"output", "deep"}},
		{"permanent", "\x08", []string{"NoLuck: no luck"}},
		{"large", "\x0a", []string{"memory"}},
	}
	for _, f := range failures {
		createMode(t, client, ns, f.name, f.content)
	}
	createMode(t, client, ns, "good", "\x0b") // requeues again and again
	c := run(guests + "modes.wasm")
	for _, f := range failures {
		line := c.wantLine(`"msg":"reconcile failed"`, `"object":"`+ns+"/"+f.name+`"`)
		if l := parseLine(t, line); !containsAll(l.Error, f.want) {
			t.Errorf("%s: error %q does not contain %q", f.name, l.Error, f.want)
		}
	}
	c.wantLine(`"object":"`+ns+`/trap"`, `"attempt":2`)
	c.wantLine(`"msg":"reconciled"`, `"object":"`+ns+`/good"`, `"reason":"Requeue"`)
	c.signal(syscall.SIGTERM)
	c.wantExit(exitOK)

	createMode(t, client, ns, "big", strings.Repeat("x", 2*4096))
	c = run(guests + "buffers.wasm")
	line := c.wantLine(`"msg":"reconcile failed"`, `"object":"`+ns+`/big"`)
	if l := parseLine(t, line); !containsAll(l.Error, []string{"output", "buffer"}) {
		t.Errorf("buffer that refuses: %q", l.Error)
	}
	c.wantLine(`"msg":"reconciled"`, `"object":"`+ns+`/good"`)
}

// TestRun_SecondSignalForces: rule 9: a run that does not end holds up the
// first stop, and the second interrupts it.
func TestRun_SecondSignalForces(t *testing.T) {
	cluster := devclustertest.Shared(t)
	devclustertest.ApplyFile(t, cluster, "../../examples/configmapgenerator/crd.yaml")
	ns := devclustertest.Namespace(t, cluster)
	client, err := dynamic.NewForConfig(cluster.RESTConfig())
	if err != nil {
		t.Fatal(err)
	}
	c := startWasmctl(t, guests+"modes.wasm", "--for", "configmapgenerators.examples.wasmctl.dev", "-n", ns, "--timeout", "1h", "--concurrency", "2", "--kubeconfig", cluster.Kubeconfig())
	c.wantLine("reconciling")
	createMode(t, client, ns, "spin", "\x02")
	createMode(t, client, ns, "good", "\x00") // was reconciled: so the other one has been started
	c.wantLine(`"msg":"reconciled"`, `"object":"`+ns+`/good"`)
	c.signal(syscall.SIGINT)
	c.wantLine("stopping; waiting for running reconciles")
	c.signal(syscall.SIGINT)
	c.wantLine("stopping by force")
	c.signal(syscall.SIGINT) // harmless
	c.wantExit(exitForced)
}

// devStarter starts wasmctl run --dev, always on the same data.
func devStarter(t *testing.T) (start func() *child, data string) {
	t.Helper()
	data = t.TempDir()
	env := []string{devcluster.EnvBinary + "=" + devclustertest.Binary(t)}
	return func() *child {
		t.Helper()
		return startWasmctlEnv(t, env, guests+"empty.wasm", "--for", "cm", "--dev", "--dev-data-dir", data)
	}, data
}

// TestRun_DevIsReused: a second --dev on the same data uses the control plane
// that runs, which ends with the process that started it.
func TestRun_DevIsReused(t *testing.T) {
	t.Parallel()
	start, data := devStarter(t)
	first := start()
	first.wantLine(fmt.Sprintf("export KUBECONFIG=%s", data))
	first.wantLine(`"msg":"reconciled"`)
	second := start()
	second.wantLine("using the running local control plane")
	second.wantLine(`"msg":"reconciled"`)
	second.signal(syscall.SIGTERM)
	second.wantExit(exitOK)
	first.signal(syscall.SIGTERM)
	first.wantExit(exitOK)
	third := start()
	third.wantLine("local control plane started")
	third.wantLine(`"msg":"reconciled"`)
	third.signal(syscall.SIGTERM)
	third.wantExit(exitOK)
}

// TestRun_EndsWithTheControlPlaneThatItStarted: nobody would start it again.
func TestRun_EndsWithTheControlPlaneThatItStarted(t *testing.T) {
	t.Parallel()
	start, data := devStarter(t)
	c := start()
	c.wantLine(`"msg":"reconciled"`)
	lock, err := os.ReadFile(filepath.Join(data, "lock"))
	if err != nil {
		t.Fatal(err)
	}
	var holder struct{ PID int }
	if err := json.Unmarshal(lock, &holder); err != nil || holder.PID <= 1 {
		t.Fatalf("%s: %v", lock, err)
	}
	if err := syscall.Kill(holder.PID, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	c.wantExit(exitCluster)
	if !strings.Contains(c.text(), "has exited") {
		t.Errorf("does not say why: %s", c.tail())
	}
}
