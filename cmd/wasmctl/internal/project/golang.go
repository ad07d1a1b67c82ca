// SPDX-License-Identifier: Apache-2.0

package project

import (
	"context"
	"fmt"
	"io"
	"os/exec"
	"path/filepath"
	"slices"
)

// goFlags build a module that stays loaded and is called (a reactor), without symbols. The bytes do
// not depend on the machine: no path, no version control state and no build ID is in them.
var goFlags = []string{"-buildmode=c-shared", "-trimpath", "-buildvcs=false"}

const goLinker = "-s -w -buildid="

const getGo = "install Go 1.24 or newer from https://go.dev/dl, or with the system's packages, and put it on PATH"

// goProject is a folder with a Go main package, for the standard toolchain.
type goProject struct {
	dir   string // absolute
	flags GoFlags
}

// name implements builder. It returns the name of the folder.
func (p goProject) name() string { return filepath.Base(p.dir) }

// version implements builder.
func (p goProject) version(ctx context.Context) (string, error) {
	return versionOf(ctx, &command{dir: p.dir, name: "go"}, getGo)
}

// versionOf returns the output of a compiler's version command. get explains how to install the
// compiler.
func versionOf(ctx context.Context, c *command, get string) (string, error) {
	if _, err := exec.LookPath(c.name); err != nil {
		return "", fmt.Errorf("%w: %s is not on PATH: %s", ErrNoToolchain, c.name, get)
	}
	c.args = []string{"version"}
	version, err := c.output(ctx)
	if err != nil {
		return "", fmt.Errorf("%w: %w: %s", ErrNoToolchain, err, get)
	}
	return version, nil
}

// compile implements builder.
func (p goProject) compile(ctx context.Context, file string, stderr io.Writer) error {
	flags, err := p.flags.effective(ctx, p.dir)
	if err != nil {
		return err
	}
	c := command{dir: p.dir, name: "go", env: []string{"GOOS=wasip1", "GOARCH=wasm", "GOWASM="}}
	c.args = slices.Concat([]string{"build", "-tags=" + flags.tags}, goFlags, []string{"-ldflags=" + goLinker + flags.linker, "-o", file, mainPackage(p.dir)})
	return c.run(ctx, stderr, stderr)
}
