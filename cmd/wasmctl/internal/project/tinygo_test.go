// SPDX-License-Identifier: Apache-2.0

package project

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// fakeTinyGo behaves as TinyGo does where these tests look: it asks the go
// command for its version and takes 1.23 at most, and its linker refuses a memory
// that is too small for the data.
const fakeTinyGo = `#!/bin/sh
version=$(go version)
if [ "$1" = version ]; then echo "tinygo version 0.35.0 linux/amd64 (using go version $version and LLVM version 18.1.2)"; exit; fi
echo "$@" >> "$LOG"
case $version in
go1.23*) ;;
*) echo "requires go version 1.19 through 1.23, got go1.26" >&2; exit 1 ;;
esac
case "$BIG $*" in
"yes "*--initial-memory*) echo "wasm-ld: error: initial memory too small, 2524576 bytes needed" >&2; exit 1 ;;
esac
while [ $# -gt 1 ]; do [ "$1" = -o ] && cp "$MODULE" "$2"; shift; done
`

// fakeGo follows GOTOOLCHAIN unless it is offline.
const fakeGo = `#!/bin/sh
[ -z "$GOTOOLCHAIN" ] || [ -z "$OFFLINE" ] || { echo "go: download $GOTOOLCHAIN: no network" >&2; exit 1; }
echo "${GOTOOLCHAIN:-go1.26}"
`

// tinyGo puts the fakes on PATH, and returns a project and a function that returns
// how TinyGo was called.
func tinyGo(t *testing.T) (dir string, calls func() []string) {
	t.Helper()
	bin := write(t, "bin", map[string]string{"tinygo": fakeTinyGo, "go": fakeGo})
	for _, name := range []string{"tinygo", "go"} {
		if err := os.Chmod(filepath.Join(bin, name), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	module, err := filepath.Abs("../../../../testdata/wasm/describe.wasm")
	if err != nil {
		t.Fatal(err)
	}
	log := filepath.Join(t.TempDir(), "log")
	t.Setenv("PATH", bin+string(os.PathListSeparator)+os.Getenv("PATH"))
	t.Setenv("GOTOOLCHAIN", "")
	t.Setenv("LOG", log)
	t.Setenv("MODULE", module)
	return write(t, "p", map[string]string{"go.mod": "module x\n", "main.go": "package main\n"}), func() []string {
		b, err := os.ReadFile(log)
		if err != nil {
			t.Fatal(err)
		}
		return strings.Split(strings.TrimSpace(string(b)), "\n")
	}
}

func TestBuild_TinyGoGetsAGoThatItTakes(t *testing.T) {
	dir, calls := tinyGo(t)
	var said bytes.Buffer
	res, err := Build(t.Context(), dir, Options{Toolchain: TinyGo, Stderr: &said})
	if err != nil || !strings.Contains(res.Version, "using go version go1.23.12") || len(calls()) != 2 {
		t.Errorf("%v, %+v, %q", err, res, calls())
	}
	want := "this TinyGo takes Go 1.23 at most, not go1.26: building with GOTOOLCHAIN=go1.23.12\n"
	if said.String() != want {
		t.Errorf("%q, want %q", said.String(), want)
	}
	for _, call := range calls() {
		if !strings.Contains(call, "-extldflags '-z stack-size=524288 --initial-memory=1048576'") {
			t.Errorf("without the flags of the linker: %s", call)
		}
	}
}

func TestBuild_TinyGoWithoutAFittingGoSaysTheCommand(t *testing.T) {
	for name, tc := range map[string]struct{ set, message string }{
		"OFFLINE":     {"yes", "go1.23.12 cannot be had: go: download go1.23.12: no network"},
		"GOTOOLCHAIN": {"go1.25.1", "GOTOOLCHAIN=go1.25.1 gives it go1.26"},
	} {
		t.Run(name, func(t *testing.T) {
			dir, _ := tinyGo(t)
			t.Setenv(name, tc.set)
			_, err := Build(t.Context(), dir, Options{Toolchain: TinyGo})
			if !errors.Is(err, ErrNoToolchain) {
				t.Fatal(err)
			}
			for _, want := range []string{tc.message, "GOTOOLCHAIN=go1.23.12 wasmctl build --toolchain tinygo", "TinyGo 0.41"} {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("does not say %q: %v", want, err)
				}
			}
		})
	}
}

// TestBuild_TinyGoWithMuchDataIsLinked: the data of a module may be more than the
// memory that the flags ask for.
func TestBuild_TinyGoWithMuchDataIsLinked(t *testing.T) {
	dir, calls := tinyGo(t)
	t.Setenv("GOTOOLCHAIN", "go1.23.4")
	t.Setenv("BIG", "yes")
	var said bytes.Buffer
	res, err := Build(t.Context(), dir, Options{Toolchain: TinyGo, Stderr: &said})
	if err != nil || !res.Changed || said.Len() > 0 {
		t.Errorf("%v, %+v, %q", err, res, said.String())
	}
	if last := calls()[len(calls())-1]; strings.Contains(last, "--initial-memory") || !strings.Contains(last, "stack-size") {
		t.Errorf("linked with %s", last)
	}
}

// TestBuild_TinyGoWarnsOfDeepEqual: where the program has it, and not its tests.
func TestBuild_TinyGoWarnsOfDeepEqual(t *testing.T) {
	dir, _ := tinyGo(t)
	for name, text := range map[string]string{"main.go": "package main\n\n// DeepEqual\n", "sub/a.go": "package sub\n\nvar x = reflect.DeepEqual(1, 2)\n", "sub/a_test.go": "reflect.DeepEqual()"} {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	var said bytes.Buffer
	if _, err := Build(t.Context(), dir, Options{Toolchain: TinyGo, Stderr: &said}); err != nil {
		t.Fatal(err)
	}
	if got := said.String(); strings.Count(got, "reflect.DeepEqual") != 1 || !strings.Contains(got, "sub/a.go:3: ") {
		t.Errorf("got %q, want a warning about sub/a.go:3", got)
	}
}

func TestTinyGo_SaysWhatToDoAboutItsLimits(t *testing.T) {
	for said, want := range map[string]string{
		"main.go:7:2: attempted to start a goroutine without a scheduler\n": "no goroutines",
		"main.go:9:3: todo: builtin: ssa:deferstack\n":                      "function of its own",
	} {
		if got := adviceOn(said); !strings.Contains(got, want) || !strings.HasSuffix(got, "--toolchain go\n") {
			t.Errorf("%q: advice %q, want %q in it", said, got, want)
		}
	}
	if got := adviceOn("main.go:1:1: undefined: x\n"); got != "" {
		t.Errorf("advice on an ordinary error: %q", got)
	}
}
