// SPDX-License-Identifier: Apache-2.0

package build_test

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/wasmctl/wasmctl/test/e2e/internal/e2e"
)

// TestRelease_IsVerifiedAndInstalledAsItsPageSays: make release for the platform of this machine makes the files that the
// workflow publishes, and the commands of docs/install.md download, verify and unpack them. A changed archive does not
// pass.
func TestRelease_IsVerifiedAndInstalledAsItsPageSays(t *testing.T) {
	t.Parallel()
	for _, tool := range []string{"make", "openssl", "curl", "sha256sum", "tar", "bash"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skipf("SKIPPED: %s is not on PATH: make release is not tested", tool)
		}
	}
	root, err := filepath.Abs(filepath.Join("..", "..", ".."))
	if err != nil {
		t.Fatal(err)
	}
	dir, clone, platform := t.TempDir(), t.TempDir(), runtime.GOOS+"-"+runtime.GOARCH
	dist := filepath.Join(dir, "dist")
	run := func(dir string, command ...string) (string, error) {
		cmd := exec.CommandContext(t.Context(), command[0], command[1:]...)
		cmd.Dir = dir
		out, err := cmd.CombinedOutput()
		t.Logf("%q\n%s", command, out)
		return string(out), err
	}
	must := func(dir string, command ...string) string {
		t.Helper()
		out, err := run(dir, command...)
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	key, public := filepath.Join(dir, "release.key"), filepath.Join(clone, "release.pub")
	must(dir, "openssl", "genpkey", "-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-256", "-out", key)
	must(dir, "openssl", "pkey", "-in", key, "-pubout", "-out", public)
	must(root, "make", "--no-print-directory", "release", "BIN="+dir, "PLATFORMS="+platform, "VERSION=v1.2.3", "RELEASE_KEY="+key, "RELEASE_PUB="+public)

	page := strings.NewReplacer("https://github.com/wasmctl/wasmctl/releases/latest/download", "file://"+dist, "linux-amd64", platform).
		Replace(string(e2e.ReadFile(t, filepath.Join(root, "docs", "install.md"))))
	script := "set -eu\n"
	for _, block := range regexp.MustCompile("(?s)```sh\n(.*?)```").FindAllStringSubmatch(page, -1) {
		script += block[1]
	}
	if out := must(clone, "bash", "-c", script); !strings.Contains(out, "Verified OK") || !strings.Contains(out, "wasmctl v1.2.3, ") {
		t.Error("the archive is not verified, or has another version")
	}
	archive := filepath.Join(dist, "wasmctl-"+platform+".tar.gz")
	must(dir, "tar", "-xzf", filepath.Join(dist, "devcluster-"+platform+".tar.gz"), "devcluster")
	must(dir, filepath.Join(dir, "devcluster"), "--help")
	if out := must(dir, "tar", "-tzf", archive); !strings.Contains(out, "completions/wasmctl.bash") || !strings.Contains(out, "man/wasmctl.1") || !strings.Contains(out, "LICENSE") {
		t.Error("the archive lacks completions, manual pages or the license")
	}
	var plugin struct {
		Spec struct{ Platforms []struct{ SHA256 string } }
	}
	if err := yaml.Unmarshal(e2e.ReadFile(t, filepath.Join(dist, "wasmctl-krew.yaml")), &plugin); err != nil {
		t.Fatal(err)
	}
	if sum := plugin.Spec.Platforms[0].SHA256; !strings.HasPrefix(must(dir, "sha256sum", archive), sum+" ") {
		t.Errorf("krew wants the sum %s", sum)
	}

	changed := append(bytes.Clone(e2e.ReadFile(t, archive)), 0)
	if err := os.WriteFile(archive, changed, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := run(clone, "bash", "-c", script); err == nil {
		t.Error("a changed archive passes")
	}
}

// TestRelease_WorkflowCallsMake: the workflow builds with make release, and publishes the directory that it writes.
func TestRelease_WorkflowCallsMake(t *testing.T) {
	var workflow struct {
		Jobs struct {
			Release struct{ Steps []struct{ Run string } }
		}
	}
	if err := yaml.Unmarshal(e2e.ReadFile(t, "../../../.github/workflows/release.yml"), &workflow); err != nil {
		t.Fatal(err)
	}
	var all string
	for _, step := range workflow.Jobs.Release.Steps {
		all += step.Run + "\n"
	}
	for _, want := range []string{`make release VERSION="$GITHUB_REF_NAME" RELEASE_KEY=`, " bin/dist/*"} {
		if !strings.Contains(all, want) {
			t.Errorf("%q is not in\n%s", want, all)
		}
	}
}
