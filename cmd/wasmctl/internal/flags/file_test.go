// SPDX-License-Identifier: Apache-2.0

package flags

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/wasmctl/wasmctl/cmd/wasmctl/internal/runfile"
)

// TestControllersFile_TheSchemaIsThatOfTheFields: the schema in the repository is up to date.
func TestControllersFile_TheSchemaIsThatOfTheFields(t *testing.T) {
	const path = "../../../../docs/controllers.schema.json"
	want := runfile.Schema(Format())
	if os.Getenv("WASMCTL_UPDATE") != "" {
		if err := os.WriteFile(path, want, 0o644); err != nil { //nolint:gosec // for everybody
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("%s is not up to date: WASMCTL_UPDATE=1 go test -run TheSchemaIs ./cmd/wasmctl/internal/flags (-want +got):\n%s", path, diff)
	}
}

// TestControllersFile_ThePageHasEachField: the table in docs/controllers.md is up to date.
func TestControllersFile_ThePageHasEachField(t *testing.T) {
	const path, begin, end = "../../../../docs/controllers.md", "<!-- fields -->\n", "<!-- end of fields -->\n"
	var table strings.Builder
	table.WriteString(begin + "\n| Field | Flag | Reconciler |\n|---|---|---|\n")
	for i := range Fields {
		f := &Fields[i]
		flag, crd := "", ""
		if f.Flag != "" {
			flag = "`--" + f.Flag + "`"
		}
		if !slices.Contains(local, f.Path) {
			if crd = "yes"; f.Path == "namespaces" {
				crd = "ClusterReconciler"
			}
		}
		fmt.Fprintf(&table, "| `%s` | %s | %s |\n", f.Path, flag, crd)
	}
	table.WriteString("\n" + end)
	page, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, _ := strings.Cut(string(page), begin)
	_, after, _ := strings.Cut(rest, end)
	want := before + table.String() + after
	if os.Getenv("WASMCTL_UPDATE") != "" {
		if err := os.WriteFile(path, []byte(want), 0o644); err != nil { //nolint:gosec // for everybody
			t.Fatal(err)
		}
		return
	}
	if diff := cmp.Diff(want, string(page)); diff != "" {
		t.Errorf("WASMCTL_UPDATE=1 go test -run ThePageHas ./cmd/wasmctl/internal/flags (-want +got):\n%s", diff)
	}
}

// TestControllersFile_KeysAreBesideTheFile: the path of a public key is relative to the controllers
// file, like other paths.
func TestControllersFile_KeysAreBesideTheFile(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "controllers.yaml")
	text := "apiVersion: wasmctl.dev/v1\nkind: Controllers\nprocess:\n  verifyKey: [a.pub, /etc/b.pub]\ncontrollers:\n- name: a\n  module: oci://h/r:1\n"
	f, err := ParseFile(path, []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(VerifyKeys{filepath.Join(dir, "a.pub"), "/etc/b.pub"}, f.Registry().VerifyKeys); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
