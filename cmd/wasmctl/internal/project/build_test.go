// SPDX-License-Identifier: Apache-2.0

package project

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/wasmctl/wasmctl/cmd/wasmctl/internal/project/operator"
	"github.com/wasmctl/wasmctl/host/share"
)

const goModule = `module example.com/small

go 1.23

require github.com/wasmctl/wasmctl/guest-sdk/go v0.1.0

replace github.com/wasmctl/wasmctl/guest-sdk/go => SDK
`

const goMain = `package main

import wasmctl "github.com/wasmctl/wasmctl/guest-sdk/go"

func init() {
	wasmctl.Register(wasmctl.Reconciler{
		Manifest:  wasmctl.Manifest{Name: "small"},
		Reconcile: func(*wasmctl.Context, wasmctl.Object) (wasmctl.Action, error) { return wasmctl.AwaitChange(), nil },
	})
}

func main() {}
`

// write writes files into a new folder of that name.
func write(t *testing.T, name string, files map[string]string) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), name)
	for file, text := range files {
		path := filepath.Join(dir, file)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// small is a project of the least there can be.
func small(t *testing.T, name string) string {
	t.Helper()
	sdk, err := filepath.Abs("../../../../guest-sdk/go")
	if err != nil {
		t.Fatal(err)
	}
	return write(t, name, map[string]string{"go.mod": strings.ReplaceAll(goModule, "SDK", sdk), "main.go": goMain})
}

func TestBuild_SameBytesWhereverTheSourceIs(t *testing.T) {
	if testing.Short() {
		t.Skip("SKIPPED: -short: runs the compiler")
	}
	var digests []string
	for _, name := range []string{"one", "another"} {
		dir := small(t, name)
		res, err := Build(t.Context(), dir, Options{Stderr: t.Output()})
		if err != nil {
			t.Fatal(err)
		}
		wasm, err := os.ReadFile(filepath.Join(dir, name+".wasm"))
		if err != nil || int64(len(wasm)) != res.Size || res.Manifests[0].Name != "small" || !res.Changed {
			t.Errorf("%v, %d bytes, %+v", err, len(wasm), res)
		}
		if bytes.Contains(wasm, []byte(dir)) {
			t.Error("the module names the folder that it was built in")
		}
		digests = append(digests, res.Digest)
		if res, err = Build(t.Context(), dir, Options{}); err != nil || res.Changed {
			t.Errorf("built again without a change: %v, %+v", err, res)
		}
	}
	if digests[0] != digests[1] {
		t.Errorf("two folders, two modules: %v", digests)
	}
}

func TestBuild_ShowsTheCompilersWordsAndKeepsTheOldModule(t *testing.T) {
	if testing.Short() {
		t.Skip("SKIPPED: -short: runs the compiler")
	}
	dir := write(t, "broken", map[string]string{
		"go.mod": "module example.com/broken\n\ngo 1.23\n", "main.go": "package main\n\nfunc main() { nonsense() }\n", "broken.wasm": "old",
	})
	var said bytes.Buffer
	_, err := Build(t.Context(), dir, Options{Stderr: &said})
	if err == nil || !strings.Contains(said.String(), "main.go:3:15: undefined: nonsense") {
		t.Errorf("%v, and the compiler: %q", err, said.String())
	}
	if old, err := os.ReadFile(filepath.Join(dir, "broken.wasm")); err != nil || string(old) != "old" {
		t.Errorf("%q, %v", old, err)
	}
}

// TestBuild_AModuleAsksForTheStackThatItsStartNeeds: a module whose variables nest calls too deeply
// for the default is built, and its manifest requests the stack.
func TestBuild_AModuleAsksForTheStackThatItsStartNeeds(t *testing.T) {
	if testing.Short() {
		t.Skip("SKIPPED: -short: builds modules")
	}
	for calls, want := range map[string]int64{"10": 0, "50_000": share.MaxStack} {
		dir := small(t, "deep")
		deep := "package main\n\nvar depth = deep(" + calls + ")\n\nfunc deep(n int) int {\n\tif n == 0 {\n\t\treturn 0\n\t}\n\treturn 1 + deep(n-1)\n}\n"
		if err := os.WriteFile(filepath.Join(dir, "deep.go"), []byte(deep), 0o644); err != nil {
			t.Fatal(err)
		}
		res, err := Build(t.Context(), dir, Options{})
		if err != nil {
			t.Fatal(err)
		}
		var asked int64
		if l := res.Manifests[0].Limits; l != nil {
			asked = l.Stack
		}
		if asked != want {
			t.Errorf("%s calls: asks for a stack of %d, want %d", calls, asked, want)
		}
	}
}

// TestBuild_AMainThatEndsEarlySaysWhatItLacks: in its own words, and how to give it that.
func TestBuild_AMainThatEndsEarlySaysWhatItLacks(t *testing.T) {
	if testing.Short() {
		t.Skip("SKIPPED: -short: builds an operator")
	}
	dir := write(t, "op", map[string]string{
		"go.mod": "module example.com/op\n\ngo 1.24.0\n\nrequire sigs.k8s.io/controller-runtime v0.22.0\n",
		"main.go": "package main\n\nimport (\n\t\"os\"\n\n\t_ \"sigs.k8s.io/controller-runtime\"\n)\n\nfunc main() {\n" +
			"\tif os.Getenv(\"POD_NAMESPACE\") == \"\" {\n\t\tprintln(\"no namespace\")\n\t\tos.Exit(1)\n\t}\n}\n",
	})
	for says, env := range map[string]map[string]string{"no namespace": nil, "main: returned": {"POD_NAMESPACE": "a"}} {
		_, err := Build(t.Context(), dir, Options{SDK: "../../../..", Main: operator.Main{Env: env}})
		if err == nil || !strings.Contains(err.Error(), says) || !strings.Contains(err.Error(), "--env") {
			t.Errorf("%v, want %q and how to go on", err, says)
		}
	}
}

func TestBuild_SaysWhatIsMissing(t *testing.T) {
	goFiles := map[string]string{"go.mod": "module x\n", "main.go": "package main\n"}
	twoPrograms := map[string]string{"go.mod": "module x\n", "cmd/a/main.go": "package main\n", "cmd/b/root.go": "package main\n", "cmd/c/d.go": "package c\n"}
	rustFiles := map[string]string{"Cargo.toml": "[package]\n"}
	with := func(files map[string]string, name, text string) map[string]string {
		all := map[string]string{name: text}
		maps.Copy(all, files)
		return all
	}
	for name, tc := range map[string]struct {
		files   map[string]string
		asked   Toolchain
		is      error
		message string
	}{
		"go":             {files: goFiles, is: ErrNoToolchain, message: "go.dev"},
		"tinygo":         {files: goFiles, asked: TinyGo, is: ErrNoToolchain, message: "tinygo.org"},
		"tinygo by file": {files: with(goFiles, FileName, "toolchain: tinygo\n"), is: ErrNoToolchain, message: "tinygo.org"},
		"empty folder":   {files: map[string]string{"README.md": ""}, is: ErrNoProject, message: "wasmctl new"},
		"two programs":   {files: twoPrograms, is: ErrNoProject, message: "cmd/a, "},
		"and a library":  {files: with(twoPrograms, "version.go", "package x\n"), is: ErrNoProject, message: "cmd/b"},
		"rust as go":     {files: rustFiles, asked: Go, is: ErrNoProject, message: "for rust"},
		"go as rust":     {files: goFiles, asked: Rust, is: ErrNoProject, message: "for go"},
		"unknown key":    {files: with(goFiles, FileName, "toolchian: tinygo\n"), message: "toolchian"},
		"another case":   {files: with(goFiles, FileName, "toolchain: go\nToolchain: tinygo\n"), message: "by case only"},
		"a key twice":    {files: with(goFiles, FileName, "toolchain: go\ntoolchain: tinygo\n"), message: "already set"},
		"unknown value":  {files: with(goFiles, FileName, "toolchain: gcc\n"), message: "go, tinygo, rust"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("PATH", t.TempDir())
			_, err := Build(t.Context(), write(t, "p", tc.files), Options{Toolchain: tc.asked})
			if err == nil || tc.is != nil && !errors.Is(err, tc.is) || !strings.Contains(err.Error(), tc.message) {
				t.Errorf("%v, want %v with %q", err, tc.is, tc.message)
			}
		})
	}
}

// A project file can name files of its project only, also below another folder of it, but none of the machine
// that builds it.
func TestReadFile_NamesFilesOfTheProjectOnly(t *testing.T) {
	top := write(t, "p", map[string]string{"go.mod": "module x\n", "config/roles.yaml": "", "cmd/main.go": "package main\n"})
	secret := filepath.Join(t.TempDir(), "id_rsa")
	if err := os.WriteFile(secret, []byte("secret"), 0o600); err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(top, "cmd")
	for link, to := range map[string]string{"out": secret, "in": "../config/roles.yaml", "away": filepath.Dir(secret)} {
		if err := os.Symlink(to, filepath.Join(dir, link)); err != nil {
			t.Fatal(err)
		}
	}
	outside, err := filepath.Rel(dir, secret)
	if err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]bool{
		"files: {/a: main.go}":                 true,
		"files: {/a: in}":                      true,
		"files: {/a: absent}":                  true, // the build says so
		"roles: [../config/roles.yaml]":        true,
		"output: ../bin/x.wasm":                true,
		"files: {/a: out}":                     false,
		"files: {/a: " + outside + "}":         false,
		"roles: [away/roles.yaml]":             false,
		"objects: [../../roles.yaml]":          false,
		"output: " + filepath.Dir(outside):     false,
		"{output: away/x.wasm, toolchain: go}": false,
	} {
		if err := os.WriteFile(filepath.Join(dir, FileName), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := readFile(dir); (err == nil) != want {
			t.Errorf("%s: %v", text, err)
		}
	}
}

func TestBuild_RustWithoutTheTargetSaysHowToGetIt(t *testing.T) {
	dir := write(t, "p", map[string]string{"Cargo.toml": "[package]\n", FileName: "target: wasm32-nonsense\n"})
	_, err := Build(t.Context(), dir, Options{})
	if !errors.Is(err, ErrNoToolchain) {
		t.Fatal(err)
	}
	for _, want := range []string{"wasm32-nonsense", "rustup target add", "libstd-rust-dev-wasm32"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("does not say %q: %v", want, err)
		}
	}
}

// TestRust_ProjectsOfOneTargetFolderShareTheirDependencies: cargo compiles a dependency again if the
// flags of all crates differ.
func TestRust_ProjectsOfOneTargetFolderShareTheirDependencies(t *testing.T) {
	dep := write(t, "dep", map[string]string{"Cargo.toml": "[package]\nname = \"dep\"\n", "src/lib.rs": "pub fn one() -> i32 { 1 }\n"})
	t.Setenv("CARGO_TARGET_DIR", t.TempDir())
	for i, name := range []string{"first", "second"} {
		dir := write(t, name, map[string]string{
			"Cargo.toml": fmt.Sprintf("[package]\nname = %q\n[lib]\ncrate-type = [\"cdylib\"]\n[dependencies]\ndep = { path = %q }\n", name, dep),
			"src/lib.rs": "#[no_mangle]\npub extern \"C\" fn one() -> i32 { dep::one() }\n",
		})
		p := &rustProject{dir: dir, target: DefaultTarget}
		if version, err := p.version(t.Context()); err != nil || filepath.IsAbs(p.cargo) {
			t.Skipf("SKIPPED: no Rust on PATH has the target %s: %s %v", DefaultTarget, version, err)
		}
		var stderr strings.Builder
		if err := p.compile(t.Context(), filepath.Join(dir, "out.wasm"), &stderr); err != nil {
			t.Fatalf("%v\n%s", err, &stderr)
		}
		if got, want := strings.Contains(stderr.String(), "Compiling dep"), i == 0; got != want {
			t.Errorf("%s: the dependency is compiled: %t, want %t\n%s", name, got, want, &stderr)
		}
	}
}

func TestArtifact_IsTheProjectsOwn(t *testing.T) {
	const messages = `{"reason":"compiler-artifact","manifest_path":"/dep/Cargo.toml","filenames":["/t/dep.wasm"]}
{"reason":"compiler-artifact","manifest_path":"/p/Cargo.toml","filenames":["/t/p.d","/t/p.wasm"]}
{"reason":"build-finished","success":true}
`
	if got, err := artifact(strings.NewReader(messages), "/p"); err != nil || got != "/t/p.wasm" {
		t.Errorf("%q, %v", got, err)
	}
	if _, err := artifact(strings.NewReader(messages), "/q"); err == nil || !strings.Contains(err.Error(), "cdylib") {
		t.Errorf("no module, and the error is %v", err)
	}
}

// TestBuild_AControllerThatNoModuleCanBeIsLeftOut: the build reports it, and each other controller
// has a manifest, with the name that the flags of the build give it.
func TestBuild_AControllerThatNoModuleCanBeIsLeftOut(t *testing.T) {
	if testing.Short() {
		t.Skip("SKIPPED: -short: builds an operator")
	}
	dir := write(t, "op", map[string]string{
		"go.mod":  "module example.com/op\n\ngo 1.24.0\n\nrequire (\n\tk8s.io/api v0.34.0\n\tsigs.k8s.io/controller-runtime v0.22.0\n)\n",
		"main.go": severalMain,
		"pro.go":  "//go:build pro\n\npackage main\n\nfunc init() { first = \"op\" }\n",
	})
	t.Setenv("GOFLAGS", os.Getenv("GOFLAGS")+" -tags=pro")
	res, err := Build(t.Context(), dir, Options{SDK: "../../../..", Go: GoFlags{LDFlags: "-X main.second=two"}})
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, m := range res.Manifests {
		names = append(names, m.Name)
	}
	if !slices.Equal(names, []string{"op", "two"}) || len(res.LeftOut) != 1 || !strings.Contains(res.LeftOut[0].Error(), "controller[bad]: it has no kind of its own") {
		t.Errorf("%q, left out: %v", names, res.LeftOut)
	}
}

// severalMain has three controllers. One has the name of the project.
const severalMain = `package main

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	_ "k8s.io/client-go/kubernetes/scheme"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// +kubebuilder:rbac:groups="",resources=configmaps;secrets,verbs=get;list;watch

var first, second = "free", "dev"

func main() {
	mgr, err := ctrl.NewManager(ctrl.GetConfigOrDie(), ctrl.Options{})
	if err != nil {
		panic(err)
	}
	r := reconcile.Func(func(context.Context, reconcile.Request) (reconcile.Result, error) { return reconcile.Result{}, nil })
	some := handler.EnqueueRequestsFromMapFunc(func(context.Context, client.Object) []reconcile.Request { return nil })
	for _, err := range []error{
		ctrl.NewControllerManagedBy(mgr).Named(first).For(&corev1.ConfigMap{}).Complete(r),
		ctrl.NewControllerManagedBy(mgr).Named("bad").Watches(&corev1.Secret{}, some).Watches(&corev1.Pod{}, some).Complete(r),
		ctrl.NewControllerManagedBy(mgr).Named(second).For(&corev1.Secret{}).Complete(r),
		mgr.Start(ctrl.SetupSignalHandler()),
	} {
		if err != nil {
			panic(err)
		}
	}
}
`
