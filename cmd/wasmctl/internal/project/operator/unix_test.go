// SPDX-License-Identifier: Apache-2.0

package operator

import "testing"

// TestCheck_FilesForUnixAreThoseOfAModule: files for unix are part of a module, unless the package
// has files for other systems. Files for one system are not.
func TestCheck_FilesForUnixAreThoseOfAModule(t *testing.T) {
	r := checked(t, map[string]string{
		"main.go": fineMain, "internal/controller/a.go": fineController,
		"internal/controller/b.go": "package controller\n\nimport (\n\t\"example.com/op/both\"\n\t\"example.com/op/unix\"\n)\n\nvar _ = unix.Join + both.Kind\n",
		"unix/doc.go":              "package unix\n",
		"unix/paths.go":            "// About paths.\n\n//go:build unix && !cgo\n\npackage unix\n\nconst Join = \"/\"\n",
		"unix/linux.go":            "//go:build linux\n\npackage unix\n\nconst Join = 2\n",
		"unix/unix_test.go":        "//go:build unix\n\npackage unix\n\nconst Join = 3\n",
		"both/unix.go":             "//go:build unix\n\npackage both\n\nconst Kind = 1\n",
		"both/other.go":            "//go:build !unix\n\npackage both\n\nconst Kind = \"other\"\n",
	})
	if r.Fails() > 0 {
		t.Errorf("%+v", r.Findings)
	}
}
