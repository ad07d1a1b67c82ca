// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"io"
	"path/filepath"
	"strings"
	"testing"
)

// vendored writes a project with a vendor folder, which has a library that is nowhere else.
func vendored(t *testing.T, requires, modules string) *Project {
	t.Helper()
	if testing.Short() {
		t.Skip("SKIPPED: -short: compiles a program")
	}
	root, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		"go.mod":                          "module example.com/op\n\ngo 1.24.0\n\nrequire sigs.k8s.io/controller-runtime v0.22.0\nrequire example.com/lib v1.2.3\nrequire example.com/lib/sub v1.0.0\nreplace example.com/lib/sub => ../nowhere\n" + requires,
		"cmd/main.go":                     fineMain,
		"internal/controller/c.go":        fineController,
		"internal/controller/lib.go":      "package controller\n\nimport (\n\t\"example.com/lib\"\n\t\"example.com/lib/sub\"\n)\n\nconst private = lib.Private + sub.Private\n",
		"vendor/example.com/lib/a.go":     "package lib\n\nconst Private = 1\n",
		"vendor/example.com/lib/sub/a.go": "package sub\n\nconst Private = 1\n",
		"vendor/modules.txt":              "# example.com/lib v1.2.3\n## explicit; go 1.21\nexample.com/lib\n# example.com/lib/sub v1.0.0 => ../nowhere\n## explicit\nexample.com/lib/sub\n# sigs.k8s.io/controller-runtime v0.22.0\n## explicit; go 1.24.0\n" + modules + "# example.com/lib/sub => ../nowhere\n",
	} {
		write(t, filepath.Join(root, name), text)
	}
	p, err := Find(root)
	if err != nil || p == nil {
		t.Fatal(p, err)
	}
	return p
}

var thisCheckout = SDK{Checkout: "../../../../.."}

// TestCheck_TakesTheVendorFolder: modules that only the vendor folder has are compiled, unless -mod excludes it. The
// folder must be that of go.mod.
func TestCheck_TakesTheVendorFolder(t *testing.T) {
	p := vendored(t, "", "")
	if r, err := p.Check(t.Context(), thisCheckout, t.Output()); err != nil || r.Fails() > 0 {
		t.Fatalf("%v, %+v", err, r)
	}
	t.Setenv("GOPROXY", "off")
	p.Modules = "mod" // as with GOFLAGS=-mod=mod
	if _, err := p.Check(t.Context(), thisCheckout, t.Output()); err == nil || !strings.Contains(err.Error(), "example.com/lib") {
		t.Errorf("without the folder: %v", err)
	}
	p.Modules = vendor
	write(t, filepath.Join(p.Root, "vendor/modules.txt"), "# example.com/lib v1.0.0\n## explicit\n")
	if _, err := p.Check(t.Context(), thisCheckout, t.Output()); err == nil || !strings.Contains(err.Error(), "vendor: ") {
		t.Errorf("a folder that is not that of go.mod: %v", err)
	}
}

// TestCheck_NamesAModuleThatItCannotGet: a vendored library that is too old for modules, without a registry.
func TestCheck_NamesAModuleThatItCannotGet(t *testing.T) {
	p := vendored(t, "require k8s.io/api v0.33.2\n", "# k8s.io/api v0.33.2\n## explicit; go 1.24.0\n")
	t.Setenv("GOMODCACHE", t.TempDir())
	t.Setenv("GOPROXY", "off")
	for _, stderr := range []io.Writer{io.Discard, t.Output()} {
		_, err := p.Check(t.Context(), thisCheckout, stderr)
		if err == nil {
			t.Fatal("no error")
		}
		for _, want := range []string{"module[", "could not be downloaded", "module lookup disabled", "go mod vendor"} {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("does not have %s: %v", want, err)
			}
		}
	}
}

// TestAbsent_IsNotACompileError: texts of the go command.
func TestAbsent_IsNotACompileError(t *testing.T) {
	for text, want := range map[string]bool{
		"module lookup disabled by GOPROXY=off":                                                                                              true,
		"k8s.io/api@v0.36.3: Get \"http://127.0.0.1:1/k8s.io/api\": dial tcp 127.0.0.1:1: refused":                                           true,
		"go: downloading x v1.0.0\ngo: k8s.io/api@v0.34.0: module lookup disabled by GOPROXY=off":                                            true,
		"go: example.com/private@v1.0.0: invalid version: git ls-remote -q origin in /x: exit status 128":                                    true,
		"example.com/op imports\n\texample.com/x: cannot find module providing package example.com/x: module lookup disabled by GOPROXY=off": true,
		"verifying example.com/x@v1.0.0: checksum mismatch":                                                                                  true,
		"module example.com/x@latest found (v1.0.0), but does not contain package example.com/x/y":                                           false,
		"no required module provides package example.com/x; to add it:":                                                                      false,
		"# example.com/x\nexample.com/x@v1.0.0/a.go:3:5: undefined: y":                                                                       false,
		"build constraints exclude all Go files in /x":                                                                                       false,
	} {
		if got := absent.MatchString(text); got != want {
			t.Errorf("%s: got %v", text, got)
		}
	}
}
