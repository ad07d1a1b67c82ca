package project

import (
	"context"
	"fmt"
	"io"
	"os/exec"
	"path/filepath"
)

// goFlags make a module that stays loaded and is called (a reactor), without
// symbols, and with the same bytes wherever it is built: no path of this machine,
// no state of its version control, no id of this build.
var goFlags = []string{"build", "-buildmode=c-shared", "-trimpath", "-buildvcs=false", "-ldflags=-s -w -buildid="}

// tinyGoFlags are the only ones that neither leak nor are many times slower: see
// docs/toolchains.md. The bigger stack is for deeply nested objects.
var tinyGoFlags = []string{
	"build", "-target=wasip1", "-buildmode=c-shared", "-gc=precise", "-scheduler=none", "-no-debug", "-opt=2",
	"-ldflags=-extldflags '-z stack-size=524288'",
}

const (
	getGo     = "install Go 1.24 or newer from https://go.dev/dl, or with the system's packages, and put it on PATH"
	getTinyGo = `install TinyGo 0.35 or newer from https://tinygo.org/getting-started/install and put it on PATH, or build with --toolchain go`
)

// goProject is a folder with a Go main package.
type goProject struct {
	dir  string // absolute
	tiny bool
}

// name implements builder: the name of the folder.
func (p goProject) name() string { return filepath.Base(p.dir) }

// program returns the compiler, and how to get it.
func (p goProject) program() (name, get string) {
	if p.tiny {
		return "tinygo", getTinyGo
	}
	return "go", getGo
}

// version implements builder.
func (p goProject) version(ctx context.Context) (string, error) {
	name, get := p.program()
	if _, err := exec.LookPath(name); err != nil {
		return "", fmt.Errorf("%w: %s is not on PATH: %s", ErrNoToolchain, name, get)
	}
	version, err := (&command{dir: p.dir, name: name, args: []string{"version"}}).output(ctx)
	if err != nil {
		return "", fmt.Errorf("%w: %w: %s", ErrNoToolchain, err, get)
	}
	return version, nil
}

// compile implements builder.
func (p goProject) compile(ctx context.Context, file string, stderr io.Writer) error {
	name, _ := p.program()
	c := command{dir: p.dir, name: name}
	if p.tiny {
		c.args = append(append(c.args, tinyGoFlags...), "-o", file, ".")
	} else {
		c.env = []string{"GOOS=wasip1", "GOARCH=wasm", "GOWASM="}
		c.args = append(append(c.args, goFlags...), "-o", file, ".")
	}
	return c.run(ctx, stderr, stderr)
}
