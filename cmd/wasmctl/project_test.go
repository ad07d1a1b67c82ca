package main

import (
	"errors"
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

	"github.com/wasmctl/wasmctl/cmd/wasmctl/internal/cases"
	"github.com/wasmctl/wasmctl/cmd/wasmctl/internal/project"
	"github.com/wasmctl/wasmctl/devcluster/devclustertest"
	"github.com/wasmctl/wasmctl/internal/enginetest"
	"github.com/wasmctl/wasmctl/runtime/applier"
)

// TestProject_OfEachLanguageRuns makes a project of each language as a user
// does, builds it, runs its unit tests and its cases, and lets it reconcile its
// sample on a real API server. All three do the same: their cases are.
func TestProject_OfEachLanguageRuns(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("SKIPPED: -short: runs compilers")
	}
	for _, lang := range []struct {
		toolchain project.Toolchain
		kind      string
		unitTests []string
	}{
		{project.Go, "GoGreeting", []string{"go", "test", "."}},
		{project.TinyGo, "TinyGreeting", []string{"go", "test", "."}},
		{project.Rust, "RustGreeting", nil}, // test-rust runs those of an example of the same shape
	} {
		t.Run(string(lang.toolchain), func(t *testing.T) {
			t.Parallel()
			dir := filepath.Join(t.TempDir(), "greeter")
			n := project.New{Dir: dir, Lang: lang.toolchain, Kind: lang.kind + ".project.wasmctl.dev/v1", SDK: "../.."}
			if _, err := n.Create(); err != nil {
				t.Fatal(err)
			}
			res, err := buildProject(t, dir, project.Options{Stderr: t.Output()})
			if errors.Is(err, project.ErrNoToolchain) {
				t.Skipf("SKIPPED: a new project in %s is not tested: %v", lang.toolchain, err)
			}
			if err != nil {
				t.Fatal(err)
			}
			t.Logf("%s: %d bytes, in %v by %s", lang.toolchain, res.Size, res.Took, res.Version)
			runUnitTests(t, dir, lang.unitTests)
			projectCasesHold(t, dir)
			reconcilesItsSample(t, dir, "crd.yaml", lang.kind)
		})
	}
}

// TestProject_OfKubernetesTypesRuns makes an operator on controller-runtime, as a user
// does. What is generated in it is what its generator makes. It builds natively and as
// a module, which does what the other projects do.
func TestProject_OfKubernetesTypesRuns(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("SKIPPED: -short: runs compilers")
	}
	for _, version := range []string{"v1", "v1beta1"} { // the generator names imports by it
		dir := filepath.Join(t.TempDir(), "greeter")
		n := project.New{Dir: dir, Lang: project.Go, Typed: true, Kind: "TypedGreeting.project.wasmctl.dev/" + version}
		files, err := n.Create()
		if err != nil {
			t.Fatal(err)
		}
		made := map[string]string{}
		for _, name := range files {
			if name != "go.mod" { // see below
				made[name] = readText(t, filepath.Join(dir, name))
			}
		}
		runIn(t, dir, "go", "mod", "tidy") // as wasmctl new does
		runIn(t, dir, "make", "generate")
		for name, text := range made {
			if got := readText(t, filepath.Join(dir, name)); got != text {
				t.Errorf("%s: make generate changes it: %s", name, cmp.Diff(text, got))
			}
		}
		if version != "v1" {
			continue
		}
		runIn(t, dir, "go", "build", "-ldflags=-s -w", "-o", filepath.Join(t.TempDir(), "native"), "./cmd")
		runUnitTests(t, dir, []string{"go", "test", "./..."})
		res, err := buildProject(t, dir, project.Options{SDK: "../..", Stderr: t.Output()})
		if err != nil {
			t.Fatal(err)
		}
		t.Logf("%d bytes, in %v", res.Size, res.Took)
		projectCasesHold(t, dir)
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

func projectCasesHold(t *testing.T, dir string) {
	t.Helper()
	f, err := cases.Read(filepath.Join(dir, "cases", "basic.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	wasm, err := os.ReadFile(filepath.Join(dir, "greeter.wasm"))
	if err != nil {
		t.Fatal(err)
	}
	suite := newSuite(wasm, "greeter")
	for _, c := range f.Cases {
		casesHold(t, suite, c)
	}
}

// reconcilesItsSample runs the module until the sample's ConfigMap is there, and then
// until a run is skipped because it would read what the last one has read.
func reconcilesItsSample(t *testing.T, dir, crd, kind string) {
	t.Helper()
	c := devclustertest.Shared(t)
	ns := devclustertest.Namespace(t, c)
	devclustertest.ApplyFile(t, c, filepath.Join(dir, crd))
	socket := newSocket(t)
	startWasmctl(t, filepath.Join(dir, "greeter.wasm"), "--name", "greeter-"+ns, "-n", ns, "--kubeconfig", c.Kubeconfig(), "--socket", socket, "--memo", "memory")
	devclustertest.ApplyIn(t, c, ns, []byte("apiVersion: project.wasmctl.dev/v1\nkind: "+kind+"\nmetadata: {name: hello}\nspec: {text: 'hello, world'}\n"))
	client, err := dynamic.NewForConfig(c.RESTConfig())
	if err != nil {
		t.Fatal(err)
	}
	text := ""
	for end := time.Now().Add(waitLimit); text != "hello, world" && time.Now().Before(end); {
		cm, err := client.Resource(configMaps).Namespace(ns).Get(t.Context(), "hello", metav1.GetOptions{})
		switch {
		case apierrors.IsNotFound(err):
			pause(t.Context(), 50*time.Millisecond)
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
		steer(t, "trigger", socket, ns+"/hello")
		awaitQuiet(t, socket)
		return strings.Contains(steer(t, "explain", socket, ns+"/hello"), applier.ErrUnchanged.Error())
	})
}
