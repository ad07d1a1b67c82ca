// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/wasmctl/wasmctl/abi"
)

// Without markers, the hint has the command for the existing roles. The roles of a chart come from
// helm's output, and those of tests and samples are ignored.
func TestHint_NamesTheRolesThatAreThere(t *testing.T) {
	p := &Project{Root: filepath.Join(t.TempDir(), "shop"), Package: "."}
	if got := p.hint(nil, nil); !strings.Contains(got, "name a file with its roles by --roles") {
		t.Errorf("without roles: %s", got)
	}
	role := "apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata: {name: {{ .Release.Name }}}\n"
	write(t, filepath.Join(p.Root, "charts", "shop", "Chart.yaml"), "name: shop\n")
	write(t, filepath.Join(p.Root, "charts", "shop", "templates", "a", "role.yaml"), role)
	write(t, filepath.Join(p.Root, "charts", "shop", "templates", "role2.yaml"), role)
	write(t, filepath.Join(p.Root, "deploy", "rbac.yml"), "kind: Namespace\n---\n"+role)
	write(t, filepath.Join(p.Root, "deploy", "binding.yaml"), "kind: RoleBinding\n")
	write(t, filepath.Join(p.Root, "test", "role.yaml"), role)
	want := "\n  helm template shop charts/shop > roles.yaml && wasmctl build --roles roles.yaml\n  wasmctl build --roles deploy/rbac.yml"
	if got := p.hint(nil, nil); !strings.HasSuffix(got, want) {
		t.Errorf("with roles: %s", got)
	}
	asked := []abi.Capability{{Resource: "pods", Verbs: []string{"get"}}}
	if got := p.hint(asked, nil); got != "" {
		t.Errorf("with rights: %s", got)
	}
	if got := p.hint(asked, []string{"*/widgets"}); !strings.Contains(got, "*/widgets") || !strings.Contains(got, "kind: ClusterRole") {
		t.Errorf("with a rule for all groups: %s", got)
	}
}
