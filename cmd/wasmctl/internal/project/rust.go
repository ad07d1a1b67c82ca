// SPDX-License-Identifier: Apache-2.0

package project

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// DefaultTarget is the Rust target if the project file names none. It imports only the host
// functions.
const DefaultTarget = "wasm32-unknown-unknown"

// debianTargets maps targets to their older names in Debian's packages.
var debianTargets = map[string]string{"wasm32-wasip1": "wasm32-wasi"}

// rustProject is a folder with a Cargo.toml.
type rustProject struct {
	dir    string // absolute
	target string
	// The tools are set by version.
	cargo, rustc string
}

// name implements builder. It returns the name of the folder.
func (p *rustProject) name() string { return filepath.Base(p.dir) }

// version implements builder. It takes the first toolchain that has the target: first the one on
// PATH, which may be rustup's, then the one of the system's packages.
func (p *rustProject) version(ctx context.Context) (string, error) {
	var tried []string
	for _, t := range []struct{ cargo, rustc string }{{"cargo", "rustc"}, {"/usr/bin/cargo", "/usr/bin/rustc"}} {
		version, err := p.try(ctx, t.cargo, t.rustc)
		if err == nil {
			return version, nil
		}
		if !slices.Contains(tried, err.Error()) {
			tried = append(tried, err.Error())
		}
	}
	return "", fmt.Errorf(`%w: no Rust toolchain for %s:
  %s
Get it with one of:
  rustup target add %s
  apt-get install cargo rustc libstd-rust-dev-wasm32 lld    # Debian, Ubuntu: without rustup
  curl --proto '=https' -sSf https://sh.rustup.rs | sh      # without any Rust; then run the first line`,
		ErrNoToolchain, p.target, strings.Join(tried, "\n  "), p.target)
}

// try uses a pair of tools if they can build for the target, under its current name or Debian's.
func (p *rustProject) try(ctx context.Context, cargo, rustc string) (string, error) {
	for _, tool := range []string{cargo, rustc} {
		if _, err := exec.LookPath(tool); err != nil {
			return "", fmt.Errorf("%s: not found", tool)
		}
	}
	version, err := (&command{dir: p.dir, name: rustc, args: []string{"--version"}}).output(ctx)
	if err != nil {
		return "", err
	}
	for _, target := range []string{p.target, debianTargets[p.target]} {
		if target == "" {
			continue
		}
		dir, err := (&command{dir: p.dir, name: rustc, args: []string{"--print", "target-libdir", "--target", target}}).output(ctx)
		if err == nil && exists(dir) {
			p.cargo, p.rustc, p.target = cargo, rustc, target
			return version, nil
		}
	}
	return "", fmt.Errorf("%s: %s has no target %s", rustc, version, p.target)
}

// compile implements builder. Cargo builds into the project's own target folder, so that the next
// build is incremental.
func (p *rustProject) compile(ctx context.Context, file string, stderr io.Writer) error {
	c := command{dir: p.dir, name: p.cargo, env: []string{"CARGO_ENCODED_RUSTFLAGS=" + rustFlags()}}
	if filepath.IsAbs(p.cargo) {
		if err := p.vendor(ctx, &c, stderr); err != nil {
			return err
		}
	}
	c.args = append(c.args, "rustc", "--release", "--lib", "--target", p.target, "--message-format=json-render-diagnostics",
		"--", "--remap-path-prefix="+p.dir+"=/src")
	var out bytes.Buffer
	if err := c.run(ctx, &out, stderr); err != nil {
		return err
	}
	built, err := artifact(&out, p.dir)
	if err != nil {
		return err
	}
	wasm, err := os.ReadFile(built)
	if err != nil {
		return err
	}
	return os.WriteFile(file, wasm, 0o644)
}

// vendor prepares a build with the system's packages. It hides rustup's programs, which are first
// on PATH. The system's cargo may be too old to read the registry's index, so a newer cargo, if
// present, fetches the dependencies of Cargo.lock.
func (p *rustProject) vendor(ctx context.Context, c *command, stderr io.Writer) error {
	target := filepath.Join(p.targetDir(), "system")
	c.env = append(c.env, "RUSTC="+p.rustc, "CARGO_TARGET_DIR="+target, "PATH="+filepath.Dir(p.cargo)+string(os.PathListSeparator)+"/bin")
	newer, err := exec.LookPath("cargo")
	if err != nil || newer == p.cargo {
		return nil //nolint:nilerr // there is no newer one
	}
	dir := filepath.Join(target, "vendor")
	lock, had := filepath.Join(p.dir, "Cargo.lock"), filepath.Join(target, "vendored.lock")
	if !exists(lock) {
		fetch := command{dir: p.dir, name: newer, args: []string{"generate-lockfile"}}
		if err := fetch.run(ctx, stderr, stderr); err != nil {
			return err
		}
	}
	want, err := os.ReadFile(lock)
	if err != nil {
		return err
	}
	if have, err := os.ReadFile(had); err != nil || !bytes.Equal(have, want) {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return err
		}
		fetch := command{dir: p.dir, name: newer, args: []string{"vendor", "--quiet", "--locked", dir}}
		if err := fetch.run(ctx, io.Discard, stderr); err != nil {
			return err
		}
		if err := os.WriteFile(had, want, 0o644); err != nil {
			return err
		}
	}
	c.args = append(c.args, "--config", `source.crates-io.replace-with="vendored"`, "--config", fmt.Sprintf("source.vendored.directory=%q", dir), "--offline")
	return nil
}

func (p *rustProject) targetDir() string {
	if dir := os.Getenv("CARGO_TARGET_DIR"); dir != "" {
		return filepath.Join(dir, p.name())
	}
	return filepath.Join(p.dir, "target")
}

// rustFlags returns the flags of all crates: the user's RUSTFLAGS, and one that removes the path of
// crates on this machine from the messages of panics. They do not depend on the project: projects
// that share a target folder compile their dependencies once.
func rustFlags() string {
	flags := strings.Fields(os.Getenv("RUSTFLAGS"))
	if home := cargoHome(); home != "" {
		flags = append(flags, "--remap-path-prefix="+home+"=/cargo")
	}
	return strings.Join(flags, "\x1f")
}

func cargoHome() string {
	if dir := os.Getenv("CARGO_HOME"); dir != "" {
		return dir
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return ""
	}
	return filepath.Join(home, ".cargo")
}

// artifact returns the module that cargo reports for the project in dir.
func artifact(messages io.Reader, dir string) (string, error) {
	for d := json.NewDecoder(messages); ; {
		var m struct {
			Reason       string   `json:"reason"`
			ManifestPath string   `json:"manifest_path"`
			Filenames    []string `json:"filenames"`
		}
		if err := d.Decode(&m); errors.Is(err, io.EOF) {
			return "", errors.New(`cargo has built no .wasm file: Cargo.toml needs crate-type = ["cdylib"] under [lib]`)
		} else if err != nil {
			return "", fmt.Errorf("cargo's messages: %w", err)
		}
		if m.Reason != "compiler-artifact" || filepath.Dir(m.ManifestPath) != dir {
			continue
		}
		for _, name := range m.Filenames {
			if filepath.Ext(name) == ".wasm" {
				return name, nil
			}
		}
	}
}
