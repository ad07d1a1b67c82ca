// Package wasmctl_test holds the rules that are about the module as a whole.
package wasmctl_test

import (
	"os/exec"
	"strings"
	"testing"
)

const module = "github.com/wasmctl/wasmctl"

// forbidden says which packages (by prefix) must not reach which, not even
// through others. ARCHITECTURE.md gives the reasons.
var forbidden = []struct {
	from string
	to   []string
}{
	{"./abi", []string{module + "/", "k8s.io/", "github.com/tetratelabs/"}},
	{"./abi/near", []string{module + "/", "k8s.io/", "github.com/"}},
	{"./host", []string{module + "/runtime", "k8s.io/"}},
	{"./host/kubeapi/...", []string{module + "/runtime", "github.com/tetratelabs/"}},
	{"./runtime/...", []string{module + "/host", "github.com/tetratelabs/"}},
	{"./runtime/scheduler", []string{module + "/abi", "k8s.io/", "github.com/"}},
	{"./devcluster/...", []string{"k8s.io/kubernetes", "go.etcd.io/"}},
	{"./cmd/...", []string{"k8s.io/kubernetes", "go.etcd.io/"}},
}

// TestImports_ArrowsPointOneWay asks the go command for all imports of each
// side, direct and indirect.
func TestImports_ArrowsPointOneWay(t *testing.T) {
	for _, rule := range forbidden {
		out, err := exec.CommandContext(t.Context(), "go", "list", "-deps", "-f", "{{.ImportPath}}", rule.from).Output()
		if err != nil {
			t.Fatalf("go list %s: %v", rule.from, err)
		}
		self := module + strings.TrimPrefix(strings.TrimSuffix(rule.from, "/..."), ".")
		for dep := range strings.FieldsSeq(string(out)) {
			for _, to := range rule.to {
				if strings.HasPrefix(dep, to) && dep != self && !strings.HasPrefix(dep, self+"/") {
					t.Errorf("%s reaches %s", rule.from, dep)
				}
			}
		}
	}
}

// TestImports_RunnerKnowsOnlyTheScheduler holds the one exception of the
// standard-library-only rule.
func TestImports_RunnerKnowsOnlyTheScheduler(t *testing.T) {
	out, err := exec.CommandContext(t.Context(), "go", "list", "-deps", "-f", "{{if not .Standard}}{{.ImportPath}}{{end}}", "./runtime/runner").Output()
	if err != nil {
		t.Fatal(err)
	}
	for dep := range strings.FieldsSeq(string(out)) {
		if dep != module+"/runtime/runner" && dep != module+"/runtime/scheduler" {
			t.Errorf("runner reaches %s", dep)
		}
	}
}
