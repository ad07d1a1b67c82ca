// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"cmp"
	"os"
	"path/filepath"
	"testing"
)

const operatorMod = "module example.com/op\n\nrequire (\n\tsigs.k8s.io/controller-runtime v0.22.1\n)\n"

// TestFind_TheMainPackageIsWhereScaffoldsPutIt: in the root, in cmd, or alone
// below cmd; with several the user names one. Other modules are not operators, and files
// that are run by themselves no programs.
func TestFind_TheMainPackageIsWhereScaffoldsPutIt(t *testing.T) {
	for name, tc := range map[string]struct {
		mod   string
		files []string
		in    string
		pkg   string // empty: no operator
	}{
		"root":      {operatorMod, []string{"main.go"}, ".", "."},
		"cmd":       {operatorMod, []string{"cmd/main.go", "api/a.go"}, ".", "cmd"},
		"below cmd": {operatorMod, []string{"cmd/manager/main.go"}, ".", "cmd/manager"},
		"several":   {operatorMod, []string{"cmd/a/main.go", "cmd/b/main.go"}, ".", ""},
		"named":     {operatorMod, []string{"cmd/a/main.go", "cmd/b/main.go"}, "cmd/b", "cmd/b"},
		"no main":   {operatorMod, []string{"api/a.go"}, "api", ""},
		"other":     {"module example.com/op\n", []string{"main.go"}, ".", ""},
		"indirect":  {"module example.com/op\n\nrequire sigs.k8s.io/controller-runtime/tools v0.1.0\n", []string{"main.go"}, ".", ""},
		"generator": {operatorMod, []string{"gen.go", "cmd/a/main.go"}, ".", "cmd/a"},
	} {
		t.Run(name, func(t *testing.T) {
			root := t.TempDir()
			write(t, filepath.Join(root, "go.mod"), tc.mod)
			for _, f := range tc.files {
				text := map[string]string{"main.go": "package main\n", "gen.go": "//go:build ignore\n\npackage main\n"}[filepath.Base(f)]
				write(t, filepath.Join(root, f), cmp.Or(text, "package api\n"))
			}
			p, err := Find(filepath.Join(root, tc.in))
			if err != nil {
				t.Fatal(err)
			}
			if tc.pkg == "" && p != nil || tc.pkg != "" && (p == nil || p.Package != filepath.FromSlash(tc.pkg) || p.Root != root) {
				t.Errorf("%+v, want %q", p, tc.pkg)
			}
		})
	}
}

func write(t *testing.T, file, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}
