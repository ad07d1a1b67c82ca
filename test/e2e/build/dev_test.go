// SPDX-License-Identifier: Apache-2.0

package build_test

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/wasmctl/wasmctl/devcluster/devclustertest"
	"github.com/wasmctl/wasmctl/internal/enginetest"
	"github.com/wasmctl/wasmctl/test/e2e/internal/e2e"
)

const devModule = `module example.com/painter

go 1.23

require github.com/wasmctl/wasmctl/guest-sdk/go v0.1.0

replace github.com/wasmctl/wasmctl/guest-sdk/go => SDK
`

const devSource = `package main

import wasmctl "github.com/wasmctl/wasmctl/guest-sdk/go"

func init() {
	wasmctl.Register(wasmctl.Reconciler{
		Manifest: wasmctl.Manifest{Capabilities: []wasmctl.Capability{{Resource: "configmaps", Verbs: []string{"create", "patch"}}}},
		Reconcile: func(ctx *wasmctl.Context, o wasmctl.Object) (wasmctl.Action, error) {
			made := wasmctl.BuildObject(wasmctl.ObjectRef{APIVersion: "v1", Kind: "ConfigMap", Namespace: o.Namespace(), Name: "made"}).
				End().Map("data").Set("color", "blue")
			_, err := ctx.Client().Apply(made, wasmctl.ApplyOptions{Force: true})
			return wasmctl.AwaitChange(), err
		},
	})
}

func main() {}
`

// devProject writes a project that paints a ConfigMap.
func devProject(t *testing.T) string {
	t.Helper()
	if _, err := exec.LookPath("go"); err != nil {
		t.Skip("SKIPPED: go is not on PATH: wasmctl dev is not tested")
	}
	sdk, err := filepath.Abs("../../../guest-sdk/go")
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(t.TempDir(), "painter")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	e2e.Replace(t, filepath.Join(dir, "go.mod"), []byte(strings.ReplaceAll(devModule, "SDK", sdk)))
	e2e.Replace(t, filepath.Join(dir, "main.go"), []byte(devSource))
	return dir
}

// TestDev_BuildsOnSave: a project is built and runs. After a save that does not compile,
// the errors are shown, and the running module stays. The next save is swapped in, and
// its changes are printed. Ctrl-C ends everything.
func TestDev_BuildsOnSave(t *testing.T) {
	if testing.Short() {
		t.Skip("SKIPPED: -short: builds a module twice, and compiles it")
	}
	t.Parallel()
	dir := devProject(t)
	cluster := devclustertest.Shared(t)
	client, err := kubernetes.NewForConfig(cluster.RESTConfig())
	if err != nil {
		t.Fatal(err)
	}
	ns := devclustertest.Namespace(t, cluster)
	if _, err := client.CoreV1().Secrets(ns).Create(t.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "o"}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	printed, err := os.Create(filepath.Join(t.TempDir(), "printed"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = printed.Close() }()
	cmd := exec.Command("wasmctl", "dev", dir, "--for", "secrets", "-n", ns, "--kubeconfig", cluster.Kubeconfig(), "--socket", "none",
		"--log-format", "json", "--cache-dir", e2e.CodeDir)
	cmd.Stdout = printed
	c := e2e.Start(t, cmd)
	prints := func(text string) {
		t.Helper()
		enginetest.Until(t, "prints "+text, func() bool {
			b, err := os.ReadFile(printed.Name())
			return err == nil && bytes.Contains(b, []byte(text))
		})
	}
	built := filepath.Join(dir, "painter.wasm") // the output of wasmctl build
	c.WantLine(`"msg":"built"`, `"module":"`+built+`"`, `"toolchain":"go"`)
	c.WantLine(`"msg":"reconciled"`, `"object":"`+ns+`/o"`, `"controller":"painter"`, `"revision":1`)
	prints("created   apply configmaps " + ns + "/made, for " + ns + "/o\n        + data: {\"color\":\"blue\"}\n")

	source := filepath.Join(dir, "main.go")
	e2e.Replace(t, source, []byte(strings.ReplaceAll(devSource, `Set("color", "blue")`, `Set("color", blue)`)))
	c.WantLine(`"msg":"build failed; keeping the running module`)
	c.WantLine(`"msg":"compiler"`, "undefined: blue")
	for line := range strings.Lines(c.Text()) {
		if !strings.HasPrefix(line, "{") {
			t.Errorf("text between the lines of JSON: %s", line)
		}
	}
	// A new module may request more rights and watches than the previous one.
	e2e.Replace(t, source, []byte(strings.NewReplacer(`"blue"`, `"pink"`, `Manifest: wasmctl.Manifest{`,
		`Manifest: wasmctl.Manifest{Owns: []wasmctl.Watch{{Version: "v1", Kind: "ServiceAccount"}}, `, `"create", "patch"`, `"create", "patch", "get"`).Replace(devSource)))
	c.WantLine(`"msg":"module swapped"`, `"probation":false`, `"revision":2`)
	c.WantLine(`"msg":"reconciled"`, `"object":"`+ns+`/o"`, `"revision":2`)
	prints("changed   apply configmaps " + ns + "/made, for " + ns + "/o\n        ~ data.color: \"blue\" -> \"pink\"\n")
	if wasm, err := os.ReadFile(built); err != nil || !bytes.Contains(wasm, []byte("pink")) {
		t.Errorf("%s is not what runs: %v", built, err)
	}
	c.Signal(syscall.SIGINT)
	c.WantExit(e2e.ExitOK)
}

// TestDev_SaysWhatCannotBeBuilt: in a directory without a project, the command fails at once.
func TestDev_SaysWhatCannotBeBuilt(t *testing.T) {
	out, err := exec.Command("wasmctl", "dev", t.TempDir(), "--for", "cm").CombinedOutput()
	exit, ok := err.(*exec.ExitError) //nolint:errorlint // of exec
	if !ok || exit.ExitCode() != e2e.ExitUsage || !strings.Contains(string(out), "wasmctl new") {
		t.Errorf("%v: %s", err, out)
	}
}
