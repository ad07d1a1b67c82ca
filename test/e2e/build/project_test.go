// SPDX-License-Identifier: Apache-2.0

package build_test

import (
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"

	"github.com/wasmctl/wasmctl/devcluster/devclustertest"
	"github.com/wasmctl/wasmctl/internal/enginetest"
	"github.com/wasmctl/wasmctl/runtime/applier"
	"github.com/wasmctl/wasmctl/test/e2e/internal/e2e"
)

// TestProject_OfEachLanguageRuns makes a project of each language like a user, builds
// it, runs its unit tests and its cases, and lets it reconcile its sample on a real API
// server. All three have the same cases.
func TestProject_OfEachLanguageRuns(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("SKIPPED: -short: runs compilers")
	}
	for _, lang := range []struct {
		name, kind string
		toolchain  []string // a command that succeeds if there is one
		unitTests  []string
	}{
		{"go", "GoGreeting", []string{"go", "version"}, []string{"go", "test", "."}},
		{"tinygo", "TinyGreeting", []string{"tinygo", "version"}, []string{"go", "test", "."}},
		{"rust", "RustGreeting", []string{"../../../guest-sdk/rust/toolchain.sh"}, nil}, // test-rust runs those of an example of the same shape
	} {
		t.Run(lang.name, func(t *testing.T) {
			t.Parallel()
			if out, err := exec.CommandContext(t.Context(), lang.toolchain[0], lang.toolchain[1:]...).CombinedOutput(); err != nil {
				t.Skipf("SKIPPED: a new project in %s is not tested: %v: %s", lang.name, err, out)
			}
			dir := filepath.Join(t.TempDir(), "greeter")
			e2e.Output(t, "new", dir, "--lang", lang.name, "--kind", lang.kind+".project.wasmctl.dev/v1", "--webhooks", "--sdk", "../../..")
			res := build(t, dir)
			t.Logf("%s: %d bytes, in %v by %s", lang.name, res.Size, res.Took, res.Version)
			runUnitTests(t, dir, lang.unitTests)
			for _, file := range []string{"basic.yaml", "webhooks.yaml"} {
				casesHold(t, filepath.Join(dir, "greeter.wasm"), filepath.Join(dir, "cases", file))
			}
			reconcilesItsSample(t, dir, "crd.yaml", lang.kind)
		})
	}
}

// TestProject_OfKubernetesTypesRuns makes an operator on controller-runtime like a user.
// Its generated files are the output of its generator. It builds natively and as a
// module, which behaves like the other projects.
func TestProject_OfKubernetesTypesRuns(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("SKIPPED: -short: runs compilers")
	}
	for _, version := range []string{"v1", "v1beta1"} { // the generator names imports by it
		dir := filepath.Join(t.TempDir(), "greeter")
		runIn(t, ".", "wasmctl", "new", dir, "--lang", "go", "--types", "kubernetes", "--kind", "TypedGreeting.project.wasmctl.dev/"+version)
		made := map[string]string{}
		err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
			if err == nil && d.Type().IsRegular() {
				made[path] = readText(t, path)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		runIn(t, dir, "make", "generate")
		for name, text := range made {
			if got := readText(t, name); got != text {
				t.Errorf("%s: make generate changes it: %s", name, cmp.Diff(text, got))
			}
		}
		if version != "v1" {
			continue
		}
		runIn(t, dir, "go", "build", "-ldflags=-s -w", "-o", filepath.Join(t.TempDir(), "native"), "./cmd")
		runUnitTests(t, dir, []string{"go", "test", "./..."})
		res := build(t, dir, "--sdk", "../../..")
		t.Logf("%d bytes, in %v", res.Size, res.Took)
		casesHold(t, filepath.Join(dir, "greeter.wasm"), filepath.Join(dir, "cases", "basic.yaml"))
		reconcilesItsSample(t, dir, "config/crd/bases/project.wasmctl.dev_typedgreetings.yaml", "TypedGreeting")
	}
}

func readText(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func runUnitTests(t *testing.T, dir string, command []string) {
	t.Helper()
	if command == nil {
		return
	}
	cmd := exec.CommandContext(t.Context(), command[0], command[1:]...)
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v: %v\n%s", command, err, out)
	}
}

// reconcilesItsSample runs the module until the ConfigMap of the sample exists, and then
// until a run is skipped because its input would be the same.
func reconcilesItsSample(t *testing.T, dir, crd, kind string) {
	t.Helper()
	c := devclustertest.Shared(t)
	ns := devclustertest.Namespace(t, c)
	devclustertest.ApplyFile(t, c, filepath.Join(dir, crd))
	socket := e2e.NewSocket(t)
	e2e.Run(t, filepath.Join(dir, "greeter.wasm"), "--name", "greeter-"+ns, "-n", ns, "--kubeconfig", c.Kubeconfig(), "--socket", socket, "--memo", "memory")
	devclustertest.ApplyIn(t, c, ns, []byte("apiVersion: project.wasmctl.dev/v1\nkind: "+kind+"\nmetadata: {name: hello}\nspec: {text: 'hello, world'}\n"))
	client, err := dynamic.NewForConfig(c.RESTConfig())
	if err != nil {
		t.Fatal(err)
	}
	text := ""
	for end := time.Now().Add(e2e.WaitLimit); text != "hello, world" && time.Now().Before(end); {
		cm, err := client.Resource(e2e.ConfigMaps).Namespace(ns).Get(t.Context(), "hello", metav1.GetOptions{})
		switch {
		case apierrors.IsNotFound(err):
			e2e.Pause(t.Context(), 50*time.Millisecond)
			continue
		case err != nil:
			t.Fatal(err)
		}
		text, _, _ = unstructured.NestedString(cm.Object, "data", "text")
	}
	if text != "hello, world" {
		t.Errorf("the ConfigMap has %q", text)
	}
	enginetest.Until(t, "a run is skipped", func() bool {
		e2e.Steer(t, "trigger", socket, ns+"/hello")
		e2e.AwaitQuiet(t, socket)
		return strings.Contains(e2e.Steer(t, "explain", socket, ns+"/hello"), applier.ErrUnchanged.Error())
	})
}
