// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestMan_EachCommandHasAPage: each command has a page with its flags, and groff formats it without
// warnings.
func TestMan_EachCommandHasAPage(t *testing.T) {
	dir := t.TempDir()
	if out, err := exec.Command("wasmctl", "man", dir).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	pages, err := filepath.Glob(filepath.Join(dir, "*.1"))
	if err != nil || len(pages) < 25 {
		t.Fatalf("%v: %v", pages, err)
	}
	if page, err := os.ReadFile(filepath.Join(dir, "wasmctl-serve.1")); err != nil || !strings.Contains(string(page), `\-\-default\-service\-account`) {
		t.Errorf("%v:\n%s", err, page)
	}
	groff, err := exec.LookPath("groff")
	if err != nil {
		t.Skip("SKIPPED: groff is not on PATH: the manual pages are not rendered")
	}
	if out, err := exec.Command(groff, append([]string{"-man", "-Tutf8", "-ww", "-z"}, pages...)...).CombinedOutput(); err != nil || len(out) > 0 {
		t.Errorf("%v: %s", err, out)
	}
}

// TestRoot_IsAPluginOfKubectl: if the program is started as kubectl-wasmctl, its help names it kubectl
// wasmctl.
func TestRoot_IsAPluginOfKubectl(t *testing.T) {
	help, err := exec.Command("kubectl-wasmctl", "serve", "--help").CombinedOutput()
	if err != nil || !strings.Contains(string(help), "  kubectl wasmctl serve [flags]") {
		t.Errorf("%v: %s", err, help)
	}
	wrong, err := exec.Command("kubectl-wasmctl", "serve", "surplus").CombinedOutput()
	if err == nil || !strings.Contains(string(wrong), "See 'kubectl wasmctl serve --help'") {
		t.Errorf("%v: %s", err, wrong)
	}
}
