// SPDX-License-Identifier: Apache-2.0

package conformance

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// toolchain builds one guest of the folder guests.
type toolchain struct {
	name string
	dir  string
	// tools must be on PATH, else the guest is skipped, loudly.
	tools []string
	// target is what Rust must be able to build for; empty for others.
	target string
	// build writes the module to out.
	build func(t *testing.T, dir, out string)
	// lacks are the cases that the guest may lack; see Lacks.
	lacks []string
}

// noImport is the case that needs an import which no SDK has.
var noImport = []string{"import.unknown"}

var toolchains = []toolchain{
	{name: "go", dir: "go", lacks: noImport, tools: []string{"go"}, build: func(t *testing.T, dir, out string) {
		run(t, dir, []string{"GOOS=wasip1", "GOARCH=wasm", "GOFLAGS="}, "go", "build", "-buildmode=c-shared", "-trimpath", "-ldflags=-s -w", "-o", out, ".")
	}},
	{name: "tinygo", dir: "go", lacks: noImport, tools: []string{"tinygo"}, build: func(t *testing.T, dir, out string) {
		run(t, dir, nil, "tinygo", "build", "-target=wasip1", "-buildmode=c-shared", "-gc=precise", "-scheduler=none", "-no-debug", "-opt=2",
			"-ldflags=-extldflags '-z stack-size=524288 --initial-memory=1048576'", "-o", out, ".")
	}},
	{name: "c", dir: "c", tools: []string{clang(), "wasm-ld"}, build: func(t *testing.T, dir, out string) {
		run(t, dir, []string{"CLANG=" + clang()}, "./build.sh", out)
	}},
}

// rust are the guests in Rust. Debian's compiler has an older name for WASI.
func rust() []toolchain {
	var out []toolchain
	for _, target := range []string{"wasm32-unknown-unknown", "wasm32-wasip1", "wasm32-wasi"} {
		out = append(out, toolchain{
			name: "rust-" + target, dir: "rust", lacks: noImport, tools: []string{"cargo"}, target: target,
			build: func(t *testing.T, dir, out string) {
				run(t, ".", []string{"CARGO_TARGET_DIR=" + cargoTarget(t)}, "../../guest-sdk/rust/build.sh", dir, out, target)
			},
		})
	}
	return out
}

// cargoTarget is where cargo builds: crates that are built once stay so.
func cargoTarget(t *testing.T) string {
	t.Helper()
	dir, err := filepath.Abs("../../bin/rust")
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// missing names the tool that building a guest lacks; empty if it has all.
func (tc *toolchain) missing(ctx context.Context) string {
	for _, tool := range tc.tools {
		if !onPath(tool) {
			return tool + " is not on PATH"
		}
	}
	if tc.target != "" {
		if !hasTarget(ctx, "rustc", tc.target) && !hasTarget(ctx, "/usr/bin/rustc", tc.target) {
			return "no Rust for " + tc.target + " (guest-sdk/rust/toolchain.sh " + tc.target + " installs it)"
		}
	}
	if dir := filepath.Join("guests", tc.dir); !exists(dir) {
		return dir + " is not there"
	}
	return ""
}

// hasTarget reports whether a compiler has the standard library for a target.
func hasTarget(ctx context.Context, rustc, target string) bool {
	sysroot, err := exec.CommandContext(ctx, rustc, "--print", "sysroot").Output()
	return err == nil && exists(filepath.Join(strings.TrimSpace(string(sysroot)), "lib", "rustlib", target, "lib"))
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// clang is the name of the compiler, which Debian gives a version.
func clang() string {
	for version := 22; version >= 14; version-- {
		if name := fmt.Sprint("clang-", version); onPath(name) {
			return name
		}
	}
	return "clang"
}

func onPath(tool string) bool {
	_, err := exec.LookPath(tool)
	return err == nil
}

// run runs a command in a folder.
func run(t *testing.T, dir string, env []string, name string, args ...string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), name, args...)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), env...)
	if msg, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, msg)
	}
}

// TestGuests_AllDoTheSame keeps the SDKs equal: every guest, in every language, passes every case,
// and lacks only permitted functions.
func TestGuests_AllDoTheSame(t *testing.T) {
	if testing.Short() {
		t.Skip("SKIPPED: -short: builds a guest for each toolchain")
	}
	for _, tc := range slices.Concat(toolchains, rust()) {
		t.Run(tc.name, func(t *testing.T) {
			if why := tc.missing(t.Context()); why != "" {
				t.Skipf("SKIPPED: %s: the guest %s is not tested; see host/conformance/README.md", why, tc.name)
			}
			out := filepath.Join(t.TempDir(), "guest.wasm")
			tc.build(t, filepath.Join("guests", tc.dir), out)
			testGuest(t, out, tc.lacks)
		})
	}
}

func testGuest(t *testing.T, file string, mayLack []string) {
	wasm, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	g, err := Open(t.Context(), wasm, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := g.Close(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
	}()
	count := map[Result]int{}
	for _, c := range Cases() {
		out := g.Try(t.Context(), c)
		count[out.Result]++
		switch out.Result {
		case Fail:
			t.Errorf("%s (ABI.md, %d: %s)", out, c.Section, c.About)
		case Lacks:
			if !slices.Contains(mayLack, c.ID) {
				t.Errorf("%s: the SDK has no function for it, and must have", out)
			}
		case Pass:
		}
	}
	t.Logf("%d KiB: %d cases pass, %d fail, %d are lacking", len(wasm)>>10, count[Pass], count[Fail], count[Lacks])
}
