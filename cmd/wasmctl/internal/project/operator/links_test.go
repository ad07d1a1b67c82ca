package operator

import (
	"fmt"
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

// TestCheck_LibrariesThatLackFilesForModulesCompile: the build adds these.
func TestCheck_LibrariesThatLackFilesForModulesCompile(t *testing.T) {
	if testing.Short() {
		t.Skip("SKIPPED: -short: downloads libraries")
	}
	mod, uses := operatorMod, ""
	for _, l := range []struct{ module, version, pkg string }{
		{"github.com/AthenZ/athenz", "v1.12.13", "/libs/go/sia/util"},
		{"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob", "v1.6.4", ""},
		{"github.com/aliyun/credentials-go", "v1.4.11", "/credentials/providers"},
		{"github.com/coreos/go-systemd/v22", "v22.7.0", "/journal"},
		{"github.com/hashicorp/go-sockaddr", "v1.0.7", ""},
		{"github.com/lib/pq", "v1.10.9", ""},
		{"github.com/moby/term", "v0.5.2", ""},
		{"github.com/sirupsen/logrus", "v1.9.4", ""},
		{"go.etcd.io/etcd/client/pkg/v3", "v3.6.12", "/fileutil"},
		{"k8s.io/kubectl", "v0.34.0", "/pkg/util/term"},
	} {
		if out, err := exec.CommandContext(t.Context(), "go", "mod", "download", l.module+"@"+l.version).CombinedOutput(); err != nil {
			t.Skipf("SKIPPED: %s cannot be downloaded: %v: %s", l.module, err, out)
		}
		mod += fmt.Sprintln("require", l.module, l.version)
		uses += fmt.Sprintf("\t_ %q\n", l.module+l.pkg)
	}
	r := checked(t, map[string]string{
		"go.mod": mod, "main.go": fineMain, "internal/controller/a.go": fineController,
		"internal/controller/b.go": "package controller\n\nimport (\n" + uses + ")\n",
	})
	if r.Fails() > 0 {
		t.Errorf("%+v", r.Findings)
	}
}
