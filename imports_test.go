// SPDX-License-Identifier: Apache-2.0

// Package wasmctl_test checks the rules for the Go module as a whole.
package wasmctl_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/wasmctl/wasmctl"

// outside are the packages that use the library and that it must not use.
var outside = slices.Concat(programs, []string{"github.com/spf13/cobra", "k8s.io/apiextensions-apiserver", "k8s.io/apiserver"})

// programs are the packages that not even internal/memapi must use. It needs the API
// server's libraries, which contain cobra.
var programs = []string{module + "/cmd/", module + "/devcluster", "k8s.io/kubernetes", "go.etcd.io/"}

// engine are the packages that make decisions on top of host and runtime.
var engine = []string{module + "/internal/engine", module + "/internal/life", module + "/internal/plan", module + "/internal/rollout", module + "/internal/telemetry", module + "/internal/adminserver"}

// forbidden lists which packages (by prefix; module is the root package alone) must not
// import which others, not even indirectly. ARCHITECTURE.md gives the reasons.
var forbidden = []struct {
	from string
	to   []string
}{
	{"./abi", []string{module + "/", "k8s.io/", "github.com/tetratelabs/"}},
	{".", outside},
	{"./internal/...", slices.Concat(programs, []string{module})},
	{"./internal/suggest", []string{module + "/", "k8s.io/", "github.com/"}},
	{"./internal/atomicfile", []string{module + "/", "k8s.io/", "github.com/"}},
	{"./internal/packed", []string{module + "/", "k8s.io/", "github.com/"}},
	{"./internal/text", []string{module + "/", "k8s.io/", "github.com/"}},
	{"./internal/humanize", []string{module + "/", "k8s.io/", "github.com/"}},
	{"./internal/failure", []string{module + "/", "k8s.io/", "github.com/"}},
	{"./internal/transcode", []string{module + "/host", module + "/runtime", "k8s.io/", "github.com/tetratelabs/"}},
	{"./internal/logging", []string{module + "/runtime", "k8s.io/", "github.com/tetratelabs/"}},
	{"./internal/plan", []string{module + "/runtime/applier", module + "/runtime/controller", module + "/internal/rollout", module + "/internal/telemetry", "github.com/tetratelabs/"}},
	{"./internal/life", []string{module + "/host", module + "/runtime", module + "/internal/engine", "k8s.io/", "github.com/tetratelabs/"}},
	{"./internal/telemetry", []string{module + "/runtime/controller", module + "/internal/plan", module + "/internal/rollout", "github.com/tetratelabs/"}},
	{"./internal/replay/...", []string{module + "/runtime/controller", module + "/internal/plan", module + "/internal/rollout", module + "/internal/telemetry"}},
	{"./internal/rollout/...", []string{module + "/internal/engine", module + "/internal/telemetry"}},
	{"./internal/rollout/canary", []string{module + "/host", module + "/runtime", "k8s.io/client-go", "github.com/tetratelabs/"}},
	{"./internal/rollout/probation", []string{module + "/host", module + "/runtime", "k8s.io/", "github.com/tetratelabs/"}},
	{"./internal/engine", []string{module + "/internal/adminserver"}},
	{"./host", []string{module + "/runtime", module + "/internal/suggest", "k8s.io/"}},
	{"./host/share", []string{module + "/host/load", module + "/host/operation", module + "/host/internal/instance", module + "/host/isolate", "k8s.io/", "github.com/tetratelabs/"}},
	{"./host/load", []string{module + "/host/operation", module + "/host/internal/instance", module + "/host/isolate", "k8s.io/"}},
	{"./host/operation", []string{module + "/host/load", module + "/host/internal/instance", module + "/host/isolate", "k8s.io/", "github.com/tetratelabs/"}},
	{"./host/internal/instance", []string{module + "/host/isolate", "k8s.io/"}},
	{"./host/internal/layout", []string{module + "/host/load", module + "/host/operation", module + "/host/share", "k8s.io/"}},
	{"./host/kubeapi/...", []string{module + "/runtime", "github.com/tetratelabs/"}},
	{"./host/oci", []string{module + "/runtime", "k8s.io/", "github.com/tetratelabs/", "github.com/google/go-containerregistry"}},
	{"./...", []string{"github.com/sigstore/", "k8s.io/kubernetes"}},
	{"./host/...", append(outside, append(engine, module)...)},
	{"./runtime/...", append(outside, append(engine, module, module+"/host", "github.com/tetratelabs/")...)},
	{"./runtime/scheduler", []string{module + "/abi", "k8s.io/", "github.com/"}},
	{"./devcluster/...", []string{"k8s.io/kubernetes", "go.etcd.io/"}},
	{"./cmd/...", []string{"k8s.io/kubernetes", "go.etcd.io/"}},
}

// goList runs go list, and returns the words that it prints.
func goList(t *testing.T, args ...string) []string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "go", append([]string{"list"}, args...)...).Output()
	if err != nil {
		t.Fatalf("go list %q: %v", args, err)
	}
	return strings.Fields(string(out))
}

// TestImports_ArrowsPointOneWay checks all direct and indirect imports of each side with
// the go command.
func TestImports_ArrowsPointOneWay(t *testing.T) {
	for _, rule := range forbidden {
		self := module + strings.TrimPrefix(strings.TrimSuffix(rule.from, "/..."), ".")
		for _, dep := range goList(t, "-deps", "-f", "{{.ImportPath}}", rule.from) {
			own := dep == self || self != module && strings.HasPrefix(dep, self+"/")
			for _, to := range rule.to {
				if reached := dep == to || to != module && strings.HasPrefix(dep, to); reached && !own {
					t.Errorf("%s reaches %s", rule.from, dep)
				}
			}
		}
	}
}

// TestImports_OnePackageKnowsWazero: only package vm has to change for another engine.
func TestImports_OnePackageKnowsWazero(t *testing.T) {
	var known []string
	for _, line := range goList(t, "-f", `{{$p := .ImportPath}}{{range .Imports}}{{$p}}|{{.}}{{"\n"}}{{end}}`, "./...") {
		if pkg, imported, _ := strings.Cut(line, "|"); strings.HasPrefix(imported, "github.com/tetratelabs/") {
			known = append(known, pkg)
		}
	}
	if got, want := slices.Compact(known), []string{module + "/host/internal/vm"}; !slices.Equal(got, want) {
		t.Errorf("wazero is imported by %q, want %q", got, want)
	}
}

// TestImports_TheCommandUsesTheLibrary: the command uses the runtime through the root
// package.
func TestImports_TheCommandUsesTheLibrary(t *testing.T) {
	for _, dep := range goList(t, "-f", `{{join .Imports "\n"}}`, "./cmd/wasmctl") {
		if slices.Contains([]string{module + "/runtime/applier", module + "/runtime/controller", module + "/runtime/runner"}, dep) {
			t.Errorf("./cmd/wasmctl imports %s: use the root package", dep)
		}
	}
}

// ofTheProcess may set and use the global state of a process: commands, and packages that
// start control planes for tests.
var ofTheProcess = []string{module + "/cmd/", module + "/devcluster/devclustertest", module + "/test/e2e/internal/e2e"}

// globals are uses of the global state of a process: packages that only a program needs
// and, after a dot, names in other packages; a name that ends in * stands for all names
// with that prefix.
var globals = []string{
	"github.com/spf13/cobra", "github.com/spf13/pflag", "os/signal", "os.Stdin", "os.Stdout", "os.Exit", "os.Args", "runtime.GOMAXPROCS",
	"k8s.io/klog/v2.Set*", "k8s.io/klog/v2.LogToStderr", "k8s.io/klog/v2.InitFlags", "go.opentelemetry.io/otel.Set*",
	"log/slog.SetDefault", "k8s.io/client-go/rest.SetDefaultWarningHandler",
}

// TestGlobals_AreOfCommands: only a program may read stdin, handle signals, end the process
// or set global state, not the library.
func TestGlobals_AreOfCommands(t *testing.T) {
	n := 0
	for _, line := range goList(t, "-f", `{{$p := .}}{{range .GoFiles}}{{$p.ImportPath}}|{{$p.Dir}}/{{.}}{{"\n"}}{{end}}{{range .IgnoredGoFiles}}{{$p.ImportPath}}|{{$p.Dir}}/{{.}}{{"\n"}}{{end}}`, "./...") {
		pkg, path, _ := strings.Cut(line, "|")
		if slices.ContainsFunc(ofTheProcess, func(of string) bool { return strings.HasPrefix(pkg, of) }) || strings.HasSuffix(path, "_test.go") {
			continue
		}
		n++
		for _, used := range globalsIn(t, path) {
			t.Errorf("%s uses %s", path, used)
		}
	}
	if n < 200 {
		t.Errorf("%d files were read", n)
	}
}

// globalsIn returns the globals that a file uses. runtime.GOMAXPROCS(0) only reads.
func globalsIn(t *testing.T, path string) (used []string) {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	names := map[string]string{} // of the packages that the file imports
	for _, spec := range file.Imports {
		imported := strings.Trim(spec.Path.Value, `"`)
		name := imported[strings.LastIndex(imported, "/")+1:]
		if name == "v2" {
			name = "klog"
		}
		if spec.Name != nil {
			name = spec.Name.Name
		}
		if names[name] = imported; slices.Contains(globals, imported) {
			used = append(used, imported)
		}
	}
	asks := map[ast.Expr]bool{}
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.CallExpr:
			if len(n.Args) == 1 {
				number, ok := n.Args[0].(*ast.BasicLit)
				asks[n.Fun] = ok && number.Value == "0"
			}
		case *ast.SelectorExpr:
			x, ok := n.X.(*ast.Ident)
			if !ok {
				return true
			}
			name := names[x.Name] + "." + n.Sel.Name
			if isGlobal(name) && (name != "runtime.GOMAXPROCS" || !asks[n]) {
				used = append(used, name)
			}
		}
		return true
	})
	return used
}

func isGlobal(name string) bool {
	return slices.ContainsFunc(globals, func(g string) bool {
		begin, some := strings.CutSuffix(g, "*")
		return name == g || some && strings.HasPrefix(name, begin)
	})
}

// TestGlobals_AreFound checks globalsIn.
func TestGlobals_AreFound(t *testing.T) {
	got := slices.Concat(globalsIn(t, "cmd/wasmctl/process.go"), globalsIn(t, "cmd/wasmctl/reload.go"), globalsIn(t, "cmd/wasmctl/libraries.go"), globalsIn(t, "cmd/wasmctl/main.go"))
	for _, want := range []string{"os/signal", "runtime.GOMAXPROCS", "k8s.io/klog/v2.SetOutput", "k8s.io/klog/v2.LogToStderr", "os.Exit", "os.Stdin"} {
		if !slices.Contains(got, want) {
			t.Errorf("%s was not found: %v", want, got)
		}
	}
	if got := globalsIn(t, "runtime.go"); len(got) > 0 {
		t.Errorf("runtime.go: %v", got)
	}
}

// TestImports_RunnerKnowsOnlyTheScheduler checks the only exception from the rule that
// package runner uses only the standard library.
func TestImports_RunnerKnowsOnlyTheScheduler(t *testing.T) {
	for _, dep := range goList(t, "-deps", "-f", "{{if not .Standard}}{{.ImportPath}}{{end}}", "./runtime/runner") {
		if dep != module+"/runtime/runner" && dep != module+"/runtime/scheduler" {
			t.Errorf("runner reaches %s", dep)
		}
	}
}
