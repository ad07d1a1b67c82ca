// SPDX-License-Identifier: Apache-2.0

package run_test

import (
	"encoding/base64"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/devcluster"
	"github.com/wasmctl/wasmctl/devcluster/devclustertest"
	"github.com/wasmctl/wasmctl/internal/enginetest"
	"github.com/wasmctl/wasmctl/test/e2e/internal/e2e"
)

// planted is the value of a Secret that must not appear anywhere. It is a valid name, so
// that it can be leaked as one.
const planted = "planted-7f3a-value"

// leaks is a module that reads a Secret and copies its value to every possible place.
type leaks struct {
	t       *testing.T
	cluster *devcluster.Cluster
	ns      string
	file    string // of the module
}

// newLeaks makes the Secret, an object to reconcile, and a module that reads the Secret
// and ends with an operation.
func newLeaks(t *testing.T, last enginetest.Operation) *leaks {
	t.Helper()
	cluster := devclustertest.Shared(t)
	l := &leaks{t: t, cluster: cluster, ns: devclustertest.Namespace(t, cluster), file: filepath.Join(t.TempDir(), "leaks.wasm")}
	client, err := kubernetes.NewForConfig(cluster.RESTConfig())
	if err != nil {
		t.Fatal(err)
	}
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "s"}, StringData: map[string]string{"key": planted}}
	if _, err := client.CoreV1().Secrets(l.ns).Create(t.Context(), secret, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := client.CoreV1().ServiceAccounts(l.ns).Create(t.Context(), &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "a"}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	m := enginetest.MayWrite("configmaps", "secrets")
	m.Capabilities = append(m.Capabilities, abi.Capability{Group: "events.k8s.io", Resource: "events", Verbs: []string{"create", "patch"}})
	copied := enginetest.Operation{Op: abi.OpAPIApply, Request: map[string]any{"force": true, "object": l.copyNamed("copy", nil)}}
	event := enginetest.Operation{Op: abi.OpEventRecord, Request: map[string]any{"reason": "Leaked", "note": "the key is " + planted}}
	read := enginetest.Operation{Op: abi.OpAPIGet, Request: map[string]any{"apiVersion": "v1", "kind": "Secret", "namespace": l.ns, "name": "s"}}
	last.Request["namespace"] = l.ns
	if object, ok := last.Request["object"].(map[string]any); ok {
		delete(last.Request, "namespace")
		object["metadata"].(map[string]any)["namespace"] = l.ns
	}
	e2e.Replace(t, l.file, enginetest.Scripted(t, m, read, event, copied, last))
	return l
}

// copyNamed returns a ConfigMap with the value in its data, also as a key.
func (l *leaks) copyNamed(name string, labels map[string]any) map[string]any {
	return map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": name, "namespace": l.ns, "labels": labels},
		"data": map[string]any{"text": strings.Repeat("x", 20) + planted + " and more", planted: "a key"},
	}
}

// run starts the module; printed returns the output of the process.
func (l *leaks) run(args ...string) (c *e2e.Process, printed func() string) {
	l.t.Helper()
	args = append([]string{
		"run", l.file, "--for", "sa", "--name", "leaks", "-n", l.ns, "--kubeconfig", l.cluster.Kubeconfig(), "--log-format", "json", "--cache-dir", "none",
	}, args...)
	cmd := exec.Command("wasmctl", args...)
	var out e2e.Buffer
	cmd.Env, cmd.Stdout = os.Environ(), &out
	c = e2e.Start(l.t, cmd)
	return c, func() string { return out.String() + c.Text() }
}

// wantNone checks that a text does not contain the value in any form.
func (l *leaks) wantNone(where, text string) {
	l.t.Helper()
	for _, form := range []string{planted, base64.StdEncoding.EncodeToString([]byte(planted))} {
		if i := strings.Index(text, form); i >= 0 {
			l.t.Errorf("%s has the value of a Secret: ...%s...", where, text[max(0, i-200):min(len(text), i+60)])
		}
	}
}

// lasts are operations that fail, each with the value in its request.
func lasts() map[string]enginetest.Operation {
	return map[string]enginetest.Operation{
		"denied":    {Op: abi.OpAPIGet, Request: map[string]any{"apiVersion": "v1", "kind": "Pod", "name": planted}},
		"not found": {Op: abi.OpAPIGet, Request: map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "name": planted}},
		"invalid": {Op: abi.OpAPICreate, Request: map[string]any{"object": map[string]any{
			"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "x", "labels": map[string]any{"l": "not a label " + planted}},
		}}},
	}
}

// TestSecrets_AreNotShown: the value of a Secret that a module copies into other
// objects, names, events and failing requests appears in no log, error, status or
// explanation.
func TestSecrets_AreNotShown(t *testing.T) {
	t.Parallel()
	for name, last := range lasts() {
		t.Run(name, func(t *testing.T) {
			l, socket := newLeaks(t, last), e2e.NewSocket(t)
			c, printed := l.run("--grant-manifest", "--socket", socket)
			c.WantLine("reconcile", l.ns+"/a", `"reconcile_id"`)
			explained := ""
			enginetest.Until(t, "the copy is explained", func() bool {
				explained = e2e.Steer(t, "explain", socket, "sa/a", "-n", l.ns)
				return strings.Contains(explained, "apply configmaps "+l.ns+"/copy") && strings.Contains(explained, "[redacted")
			})
			l.wantNone("explain", explained)
			l.wantNone("explain -o json", e2e.Steer(t, "explain", socket, "sa/a", "-n", l.ns, "-o", "json"))
			l.wantNone("status", e2e.Steer(t, "status", socket))
			l.wantNone("status -o json", e2e.Steer(t, "status", socket, "-o", "json"))
			l.wantNone("logs", e2e.Steer(t, "logs", socket, "leaks"))
			c.Signal(syscall.SIGTERM)
			c.WantExit(e2e.ExitOK)
			l.wantNone("what the process printed", printed())
		})
	}
}

// TestSecrets_AreNotInDiffsAndAudits: the value of a Secret appears neither in the output of --dry-run
// nor in that of --audit.
func TestSecrets_AreNotInDiffsAndAudits(t *testing.T) {
	t.Parallel()
	for _, mode := range []string{"client", "server"} {
		t.Run(mode, func(t *testing.T) {
			l, file := newLeaks(t, lasts()["invalid"]), filepath.Join(t.TempDir(), "learned.yaml")
			c, printed := l.run("--socket", "none", "--dry-run="+mode, "--audit", file)
			enginetest.Until(t, "the diff and the event are printed, and the audit has the write", func() bool {
				b, err := os.ReadFile(file)
				return err == nil && strings.Contains(string(b), "data.text") && e2e.ContainsAll(printed(), []string{"apply configmaps", "event     about"})
			})
			c.Signal(syscall.SIGTERM)
			c.WantExit(e2e.ExitOK)
			if !strings.Contains(printed(), "[redacted #") {
				t.Errorf("nothing is marked:\n%s", printed())
			}
			l.wantNone("what the process printed", printed())
			b, err := os.ReadFile(file)
			if err != nil || !strings.Contains(string(b), "omitted") {
				t.Errorf("the audit does not say that a field is left out (%v):\n%s", err, b)
			}
			l.wantNone("the audit", string(b))
		})
	}
}
