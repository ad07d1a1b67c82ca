// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/wasmctl/wasmctl/internal/memapi"
)

// exitOf runs a command line, and returns its exit code and its output.
func exitOf(t *testing.T, line string) (code int, out string) {
	t.Helper()
	var b bytes.Buffer
	code = execute(t.Context(), strings.Fields(line), streams{in: strings.NewReader(""), out: &b, err: &b})
	return code, b.String()
}

// kubeconfigTo writes a kubeconfig for the API server with this URL.
func kubeconfigTo(t *testing.T, url string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "kubeconfig")
	text := fmt.Sprintf("apiVersion: v1\nkind: Config\ncurrent-context: c\nclusters: [{name: c, cluster: {server: %q}}]\ncontexts: [{name: c, context: {cluster: c, user: u, namespace: t01}}]\nusers: [{name: u, user: {}}]\n", url)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// refusing is an API server that answers each request with this error.
func refusing(t *testing.T, err *apierrors.StatusError) string {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(int(err.ErrStatus.Code))
		_ = json.NewEncoder(w).Encode(memapi.StatusOf(err)) // the client may have gone
	}))
	t.Cleanup(server.Close)
	return kubeconfigTo(t, server.URL)
}

// closedPort is an address at which nothing listens.
const closedPort = "127.0.0.1:1"

// TestExitCodes_NameTheCauseInAllCommands: a script can tell a cluster that does not answer, a missing right, a missing thing and bad input
// apart, whatever the command is.
func TestExitCodes_NameTheCauseInAllCommands(t *testing.T) {
	nowhere := "http://" + closedPort
	clusters := map[string]string{
		"down":      kubeconfigTo(t, nowhere),
		"forbidden": refusing(t, apierrors.NewForbidden(schema.GroupResource{Resource: "things"}, "x", nil)),
		"unknown":   refusing(t, apierrors.NewUnauthorized("who is it?")),
		"empty":     kubeconfigOf(t, memapi.New(memapi.Config{})),
	}
	process := (&asked{names: []string{"web"}}).listen(t)
	dir := t.TempDir()
	replace := strings.NewReplacer("PROCESS", "--socket "+process, "NONE", "--socket "+filepath.Join(dir, "none"), "DIR", dir, "REGISTRY", "oci://"+closedPort+"/a/b:1")
	covered := map[string]bool{}
	check := func(want int, line string) {
		t.Helper()
		covered[strings.Fields(line)[0]] = true
		if code, out := exitOf(t, replace.Replace(line)); code != want {
			t.Errorf("%s: exit code %d, want %d: %s", line, code, want, out)
		}
	}
	ofCluster := []string{ // with the exit code on an empty cluster
		"check", "install --image x --wait=false", "uninstall --timeout 1s", "suspend reconciler/a", "resume reconciler/a", "reconcile reconciler/a",
		"history reconciler/a", "release --for deployments.apps --finalizer example.dev/x --all",
	}
	steering := []string{
		"status", "get", "history web", "explain web a", "logs web", "log-level web", "top", "trigger web --all", "pause web", "resume web",
		"release --all", "swap web DIR/x.wasm", "rollback web", "promote web", "abort web", "shadow web DIR/x.wasm", "config set web a=b",
	}
	if err := os.WriteFile(filepath.Join(dir, "x.wasm"), []byte("no module"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, line := range slices.Concat(ofCluster, inPods(steering)) {
		check(exitCluster, line+" --kubeconfig "+clusters["down"])
		check(exitDenied, line+" --kubeconfig "+clusters["forbidden"])
		check(exitDenied, line+" --kubeconfig "+clusters["unknown"])
		check(exitCluster, line+" --kubeconfig DIR/none")
		check(exitUsage, line+" --no-such-flag")
	}
	for _, line := range steering {
		check(exitCluster, line+" NONE")
		check(exitUsage, line+" PROCESS --no-such-flag")
	}
	for _, line := range []string{"pause web shop/denied", "resume web shop/denied", "release web shop/denied"} {
		check(exitDenied, line+" PROCESS")
	}
	for _, line := range inPods(steering) { // there are no pods
		check(exitCluster, line+" --kubeconfig "+clusters["empty"])
	}
	for _, line := range []string{"suspend reconciler/a", "resume reconciler/a", "reconcile reconciler/a", "history reconciler/a"} {
		check(exitKind, line+" --kubeconfig "+clusters["empty"])
	}
	for _, line := range []string{"promote web", "abort web", "rollback web"} { // the process has no canary
		check(exitError, line+" PROCESS")
	}
	for _, line := range []string{"history none", "explain none a", "logs none", "trigger none --all", "swap none DIR/x.wasm"} {
		check(exitUsage, line+" PROCESS")
	}
	for _, line := range []string{"pull REGISTRY", "save REGISTRY", "inspect REGISTRY", "run REGISTRY --dev"} {
		check(exitRegistry, line)
	}
	for _, line := range []string{"inspect DIR/none.wasm", "validate DIR/none.wasm", "annotate DIR/x.wasm", "rbac DIR/x.wasm", "grant DIR/x.wasm", "push REGISTRY DIR/x.wasm"} {
		check(exitModule, line)
	}
	for _, line := range []string{"new", "import", "verify REGISTRY", "build DIR", "test DIR/none", "dev DIR", "sign", "load DIR/none.tar REGISTRY", "serve x", "crds x", "config check DIR/none", "manifests", "version x"} {
		check(exitUsage, line)
	}
	walk(newCmdRoot(streams{}), func(cmd *cobra.Command) {
		if name := strings.Fields(cmd.CommandPath())[1]; !covered[name] && cmd.IsAvailableCommand() {
			t.Errorf("the test lacks %s", name)
		}
	})
}

// inPods returns the command lines for processes in pods.
func inPods(lines []string) (out []string) {
	for _, line := range lines {
		out = append(out, line+" --in wasmctl-system")
	}
	return out
}

// walk calls visit with the commands below root.
func walk(root *cobra.Command, visit func(*cobra.Command)) {
	for _, cmd := range root.Commands() {
		visit(cmd)
		walk(cmd, visit)
	}
}

// TestReach_EndsIfTheAPIServerIsSilent: one that accepts connections but never answers does not stop a command for ever.
func TestReach_EndsIfTheAPIServerIsSilent(t *testing.T) {
	if testing.Short() {
		t.Skip("SKIPPED: it takes 20 seconds")
	}
	t.Parallel()
	ended := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		select {
		case <-r.Context().Done():
		case <-ended:
		}
	}))
	defer server.Close()
	defer close(ended)
	began := time.Now()
	code, out := exitOf(t, "status --in wasmctl-system --kubeconfig "+kubeconfigTo(t, server.URL))
	if code != exitCluster || !strings.Contains(out, "The API server does not answer") || time.Since(began) < reachLimit {
		t.Errorf("exit code %d after %v: %s", code, time.Since(began), out)
	}
}
