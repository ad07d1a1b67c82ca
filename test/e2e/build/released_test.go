// SPDX-License-Identifier: Apache-2.0

package build_test

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/wasmctl/wasmctl/test/e2e/internal/e2e"
)

// root is the directory of the repository.
const root = "../../.."

// errNoRelease means that the clone does not have the commit of the release.
var errNoRelease = errors.New("this clone does not have the commit of the last release")

// released returns the path of the last released wasmctl, which it builds once.
func released(t *testing.T) string {
	t.Helper()
	path, err := builtRelease()
	if errors.Is(err, errNoRelease) {
		t.Skipf("SKIPPED: %v: git fetch --unshallow gets it; upgrades are not tested", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	return path
}

var builtRelease = sync.OnceValues(func() (string, error) {
	commit, err := releaseCommit()
	if err != nil {
		return "", err
	}
	dir := filepath.Join(e2e.BuiltDir, "released-"+commit)
	path := filepath.Join(dir, "wasmctl")
	if _, err := os.Stat(path); err == nil {
		return path, nil
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", err
	}
	source, err := os.MkdirTemp(dir, "source-")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(source) //nolint:errcheck // a directory for temporary files
	index := append(os.Environ(), "GIT_INDEX_FILE="+filepath.Join(source, "git-index"))
	if _, err := run(root, index, "git", "read-tree", commit); err != nil {
		return "", err
	}
	if _, err := run(root, index, "git", "checkout-index", "--all", "--prefix="+source+"/"); err != nil {
		return "", err
	}
	built := filepath.Join(source, "built")
	if _, err := run(source, append(os.Environ(), "CGO_ENABLED=0"), "go", "build", "-trimpath", "-ldflags=-s -w -X main.version=released", "-o", built, "./cmd/wasmctl"); err != nil {
		return "", err
	}
	return path, os.Rename(built, path)
})

// releaseCommit returns the commit of the last release: that of the newest tag, or the one in testdata while there is no tag.
func releaseCommit() (string, error) {
	tag, _ := run(root, nil, "git", "describe", "--tags", "--abbrev=0", "--match=v[0-9]*", "HEAD^") // fails without a tag
	file, err := os.ReadFile("testdata/released")
	if err != nil {
		return "", err
	}
	name := cmp.Or(tag, strings.TrimSpace(string(file)))
	commit, err := run(root, nil, "git", "rev-parse", "--verify", "--quiet", name+"^{commit}")
	if err != nil {
		return "", fmt.Errorf("%w, %s: %w", errNoRelease, name, err)
	}
	return commit, nil
}

// run runs a command in a directory, and returns its output without the last newline.
func run(dir string, env []string, command ...string) (string, error) {
	var errs strings.Builder
	cmd := exec.Command(command[0], command[1:]...)
	cmd.Dir, cmd.Env, cmd.Stderr = dir, env, &errs
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("%s: %w: %s", strings.Join(command[:2], " "), err, errs.String())
	}
	return strings.TrimSpace(string(out)), nil
}
