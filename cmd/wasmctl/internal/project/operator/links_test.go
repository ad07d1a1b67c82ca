// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"os/exec"
	"path/filepath"
	"testing"
)

// TestLinkRoot_WhatThePackageThereEmbedsIsBuilt: files and folders, by name and by pattern.
func TestLinkRoot_WhatThePackageThereEmbedsIsBuilt(t *testing.T) {
	root, dst := t.TempDir(), t.TempDir()
	for name, text := range map[string]string{
		"main.go": "package main\n\nimport \"embed\"\n\n//go:embed a.txt \"all:sub/dir\"\n//go:embed b*\nvar FS embed.FS\n\nfunc main() {}\n",
		"a.txt":   "a", "b.txt": "b", "sub/dir/.c.txt": "c", "other/d.txt": "d",
	} {
		write(t, filepath.Join(root, name), text)
	}
	if err := linkRoot(root, dst); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(dst, "go.mod"), "module example.com/op\n\ngo 1.24.0\n")
	cmd := exec.CommandContext(t.Context(), "go", "vet", ".")
	cmd.Dir = dst
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}
