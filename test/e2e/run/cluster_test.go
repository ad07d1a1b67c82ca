// SPDX-License-Identifier: Apache-2.0

package run_test

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

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/wasmctl/wasmctl/devcluster"
	"github.com/wasmctl/wasmctl/devcluster/devclustertest"
	"github.com/wasmctl/wasmctl/internal/enginetest"
	"github.com/wasmctl/wasmctl/test/e2e/internal/e2e"
)

func TestRun_UnknownKindNamesNearMatches(t *testing.T) {
	kubeconfig := devclustertest.Shared(t).Kubeconfig()
	c := e2e.Run(t, e2e.Guests+"empty.wasm", "--for", "deploymnets", "--kubeconfig", kubeconfig)
	c.WantExit(e2e.ExitKind)
	if !strings.Contains(c.Text(), "did you mean deployments.apps") {
		t.Errorf("no near match: %s", c.Text())
	}
	c = e2e.Run(t, e2e.Guests+"empty.wasm", "--for", "cm", "--owns", "daemonsets.nope", "--kubeconfig", kubeconfig)
	c.WantExit(e2e.ExitKind)
	c = e2e.Run(t, e2e.Guests+"empty.wasm", "--for", "namespaces", "-n", "default", "--kubeconfig", kubeconfig)
	c.WantExit(e2e.ExitUsage)
}

func TestRun_SelectorThatTheServerRefusesIsAnError(t *testing.T) {
	kubeconfig := devclustertest.Shared(t).Kubeconfig()
	c := e2e.Run(t, e2e.Guests+"empty.wasm", "--for", "cm", "--field-selector", "data.nope=1", "--kubeconfig", kubeconfig)
	c.WantExit(e2e.ExitUsage)
	if !strings.Contains(c.Text(), "selector of configmaps") || !strings.Contains(c.Text(), "data.nope") {
		t.Errorf("does not name the selector: %s", c.Text())
	}
}

func TestRun_MissingRightsAreNamed(t *testing.T) {
	cluster := devclustertest.Shared(t)
	ns := devclustertest.Namespace(t, cluster)
	limited := devclustertest.Limited(t, cluster, ns, rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"get", "list"}})
	kubeconfig := e2e.WriteKubeconfig(t, limited)
	c := e2e.Run(t, e2e.Guests+"empty.wasm", "--for", "cm", "-n", ns, "--kubeconfig", kubeconfig)
	c.WantExit(e2e.ExitDenied)
	for _, want := range []string{"wasmctl rbac", "in a Role in namespace " + ns, `resources: ["configmaps"]`, `verbs: ["watch"]`} {
		if !strings.Contains(c.Text(), want) {
			t.Errorf("missing %q:\n%s", want, c.Text())
		}
	}
}

// TestRun_WrongCredentialsAreSaid: waiting would not help, so the process ends, and
// names the next step.
func TestRun_WrongCredentialsAreSaid(t *testing.T) {
	rc := rest.CopyConfig(devclustertest.Shared(t).RESTConfig())
	rc.CertData, rc.KeyData, rc.BearerToken = nil, nil, "nobody's"
	c := e2e.Run(t, e2e.Guests+"empty.wasm", "--for", "cm", "--kubeconfig", e2e.WriteKubeconfig(t, rc))
	c.WantExit(e2e.ExitDenied)
	if !strings.Contains(c.Text(), "kubectl auth whoami") {
		t.Errorf("no next step: %s", c.Text())
	}
}

func TestRun_WaitsForACRDThatArrivesLater(t *testing.T) {
	t.Parallel()
	cluster := devclustertest.Shared(t)
	group := devclustertest.Namespace(t, cluster) + ".wasmctl.dev" // a new one for each run of the test
	socket := filepath.Join(t.TempDir(), "s")
	c := e2e.Run(t, e2e.Guests+"empty.wasm", "--for", "widgets."+group, "--kubeconfig", cluster.Kubeconfig(), "--socket", socket)
	c.WantLine("waiting for CRD widgets." + group + "; kubectl apply -f crd.yaml")
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
	c.WantLine(`"msg":"reconciled"`, `"object":"first"`)
	c.Signal(syscall.SIGTERM)
	c.WantExit(e2e.ExitOK)
}

func TestRun_WaitsForAnAPIServerThatIsDown(t *testing.T) {
	const addr = "127.0.0.1:1" // the system does not assign this port to other tests
	kubeconfig := e2e.WriteKubeconfig(t, &rest.Config{Host: "https://" + addr})
	c := e2e.Run(t, e2e.Guests+"empty.wasm", "--for", "cm", "--kubeconfig", kubeconfig)
	c.WantLine("waiting for the API server", addr, "refused")
	c.Signal(syscall.SIGTERM)
	c.WantExit(e2e.ExitOK)
}

// TestRun_FailuresStayWithTheirObject: rule 17, through the whole host: each kind of
// failure is an error of its object, named in the log, and another object is still
// reconciled.
func TestRun_FailuresStayWithTheirObject(t *testing.T) {
	t.Parallel()
	cluster := devclustertest.Shared(t)
	devclustertest.ApplyFile(t, cluster, "../../../examples/configmapgenerator/crd.yaml")
	ns := devclustertest.Namespace(t, cluster)
	client, err := dynamic.NewForConfig(cluster.RESTConfig())
	if err != nil {
		t.Fatal(err)
	}
	run := func(module string) *e2e.Process {
		return e2e.Run(t, module, "--for", "configmapgenerators.examples.wasmctl.dev", "-n", ns,
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
		e2e.CreateGenerator(t, client, ns, f.name, f.content)
	}
	e2e.CreateGenerator(t, client, ns, "good", "\x0b") // requeues again and again
	c := run(e2e.Guests + "modes.wasm")
	for _, f := range failures {
		line := c.WantLine(`"msg":"reconcile failed"`, `"object":"`+ns+"/"+f.name+`"`)
		if l := e2e.ParseLine(t, line); !e2e.ContainsAll(l.Error, f.want) {
			t.Errorf("%s: error %q does not contain %q", f.name, l.Error, f.want)
		}
	}
	c.WantLine(`"object":"`+ns+`/trap"`, `"attempt":2`)
	c.WantLine(`"msg":"reconciled"`, `"object":"`+ns+`/good"`, `"reason":"Requeue"`)
	c.Signal(syscall.SIGTERM)
	c.WantExit(e2e.ExitOK)

	e2e.CreateGenerator(t, client, ns, "big", strings.Repeat("x", 2*4096))
	c = run(e2e.Guests + "buffers.wasm")
	line := c.WantLine(`"msg":"reconcile failed"`, `"object":"`+ns+`/big"`)
	if l := e2e.ParseLine(t, line); !e2e.ContainsAll(l.Error, []string{"output", "buffer"}) {
		t.Errorf("buffer that refuses: %q", l.Error)
	}
	c.WantLine(`"msg":"reconciled"`, `"object":"`+ns+`/good"`)
}

// TestRun_SecondSignalForces: rule 9: a run that does not end delays the first stop, and
// the second signal interrupts it.
func TestRun_SecondSignalForces(t *testing.T) {
	cluster := devclustertest.Shared(t)
	devclustertest.ApplyFile(t, cluster, "../../../examples/configmapgenerator/crd.yaml")
	ns := devclustertest.Namespace(t, cluster)
	client, err := dynamic.NewForConfig(cluster.RESTConfig())
	if err != nil {
		t.Fatal(err)
	}
	c := e2e.Run(t, e2e.Guests+"modes.wasm", "--for", "configmapgenerators.examples.wasmctl.dev", "-n", ns, "--timeout", "1h", "--concurrency", "2", "--kubeconfig", cluster.Kubeconfig())
	c.WantLine("reconciling")
	e2e.CreateGenerator(t, client, ns, "spin", "\x02")
	e2e.CreateGenerator(t, client, ns, "good", "\x00") // it was reconciled, so the other object has been started
	c.WantLine(`"msg":"reconciled"`, `"object":"`+ns+`/good"`)
	c.Signal(syscall.SIGINT)
	c.WantLine("stopping; waiting for running reconciles")
	c.Signal(syscall.SIGINT)
	c.WantLine("stopping by force")
	c.Signal(syscall.SIGINT) // harmless
	c.WantExit(e2e.ExitForced)
}

// devStarter starts wasmctl run --dev, always on the same data.
func devStarter(t *testing.T) (start func() *e2e.Process, data string) {
	t.Helper()
	data = t.TempDir()
	env := []string{devcluster.EnvBinary + "=" + devclustertest.Binary(t)}
	return func() *e2e.Process {
		t.Helper()
		return e2e.RunEnv(t, env, e2e.Guests+"empty.wasm", "--for", "cm", "--dev", "--dev-data-dir", data)
	}, data
}

// TestRun_DevIsReused: a second --dev on the same data uses the running control plane, which ends with
// the process that started it.
func TestRun_DevIsReused(t *testing.T) {
	t.Parallel()
	start, data := devStarter(t)
	first := start()
	first.WantLine(fmt.Sprintf("export KUBECONFIG=%s", data))
	first.WantLine(`"msg":"reconciled"`)
	second := start()
	second.WantLine("using the running local control plane")
	second.WantLine(`"msg":"reconciled"`)
	second.Signal(syscall.SIGTERM)
	second.WantExit(e2e.ExitOK)
	first.Signal(syscall.SIGTERM)
	first.WantExit(e2e.ExitOK)
	third := start()
	third.WantLine("local control plane started")
	third.WantLine(`"msg":"reconciled"`)
	third.Signal(syscall.SIGTERM)
	third.WantExit(e2e.ExitOK)
}

// TestRun_EndsWithTheControlPlaneThatItStarted: no other process would restart it.
func TestRun_EndsWithTheControlPlaneThatItStarted(t *testing.T) {
	t.Parallel()
	start, data := devStarter(t)
	c := start()
	c.WantLine(`"msg":"reconciled"`)
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
	c.WantExit(e2e.ExitCluster)
	if !strings.Contains(c.Text(), "has exited") {
		t.Errorf("does not say why: %s", c.Tail())
	}
}
