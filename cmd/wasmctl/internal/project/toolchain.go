// SPDX-License-Identifier: Apache-2.0

package project

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/wasmctl/wasmctl/cmd/wasmctl/internal/project/operator"
)

// Toolchain turns a project into a module.
type Toolchain string

// The toolchains. If empty, the files in the folder decide.
const (
	Go     Toolchain = "go"     // the standard toolchain
	TinyGo Toolchain = "tinygo" // small modules, from Go as well
	Rust   Toolchain = "rust"   // cargo
)

// Toolchains are the values of --toolchain and --lang.
var Toolchains = []string{string(Go), string(TinyGo), string(Rust)}

// ParseToolchain returns the toolchain with a name. An empty name gives the empty toolchain.
func ParseToolchain(name string) (Toolchain, error) {
	switch t := Toolchain(name); t {
	case "", Go, TinyGo, Rust:
		return t, nil
	}
	return "", fmt.Errorf("toolchain %q: want one of %s", name, strings.Join(Toolchains, ", "))
}

// ErrNoProject matches the error for a folder without a project.
var ErrNoProject = errors.New("nothing to build")

// ErrNoToolchain matches the error for a toolchain that is not installed, or cannot build for
// WebAssembly as installed. Its text explains how to get it.
var ErrNoToolchain = errors.New("toolchain is missing")

// find returns the toolchain of a folder. Cargo.toml means Rust, and Go files in a Go module mean
// the standard toolchain. TinyGo must be requested.
func find(dir string) (Toolchain, error) {
	info, err := os.Stat(dir)
	switch {
	case err != nil:
		return "", fmt.Errorf("project[%s]: %w: %w", dir, ErrNoProject, err)
	case !info.IsDir():
		return "", fmt.Errorf("project[%s]: %w: is a file; name the directory", dir, ErrNoProject)
	case exists(filepath.Join(dir, "Cargo.toml")):
		return Rust, nil
	}
	if mainPackage(dir) != "" && moduleFolder(dir) != "" || hasOperator(dir) {
		return Go, nil
	}
	if programs := operator.Programs(dir); len(programs) > 0 {
		return "", fmt.Errorf("project[%s]: %w without a choice: has programs in other folders; name the folder of one: %s", dir, ErrNoProject, strings.Join(programs, ", "))
	}
	return "", fmt.Errorf("project[%s]: %w: has neither a Cargo.toml nor a go.mod with Go files; create a project with wasmctl new", dir, ErrNoProject)
}

// mainPackage returns the Go package to build: dir, or otherwise its folder cmd, as in
// kubebuilder's layout. It is empty if neither has a main package.
func mainPackage(dir string) string {
	switch {
	case operator.IsMain(dir):
		return "."
	case operator.IsMain(filepath.Join(dir, "cmd")):
		return "./cmd"
	}
	return ""
}

// moduleFolder returns the folder with the go.mod of dir: dir itself or the nearest one above it. It is empty
// if there is none.
func moduleFolder(dir string) string {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return ""
	}
	for !exists(filepath.Join(abs, "go.mod")) {
		up := filepath.Dir(abs)
		if up == abs {
			return ""
		}
		abs = up
	}
	return abs
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// command is a program that a build runs.
type command struct {
	dir  string
	env  []string // added to the environment of the process
	name string
	args []string
}

// run runs the program. Its stderr is passed to the user unchanged.
func (c *command) run(ctx context.Context, stdout, stderr io.Writer) error {
	cmd := exec.CommandContext(ctx, c.name, c.args...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = c.dir, stdout, stderr
	cmd.Env = append(os.Environ(), c.env...)
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("%s: %w", strings.Join(append([]string{filepath.Base(c.name)}, c.args[:min(1, len(c.args))]...), " "), err)
	}
	return nil
}

// output runs the program and returns the first line of its output.
func (c *command) output(ctx context.Context) (string, error) {
	var out bytes.Buffer
	if err := c.run(ctx, &out, io.Discard); err != nil {
		return "", err
	}
	line, _, _ := strings.Cut(out.String(), "\n")
	return strings.TrimSpace(line), nil
}
