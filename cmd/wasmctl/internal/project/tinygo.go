package project

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
)

const getTinyGo = `install TinyGo 0.41 (0.35 is the oldest) from https://tinygo.org/getting-started/install and put it on PATH, ` +
	`or build with --toolchain go`

// tinyGoFlags are the only ones that neither leak nor are many times slower: see
// docs/toolchains.md.
var tinyGoFlags = []string{
	"build", "-target=wasip1", "-buildmode=c-shared", "-gc=precise", "-scheduler=none", "-no-debug", "-opt=2",
}

// The flags of the linker. The bigger stack is for deeply nested objects. With a
// heap that is nearly full at the start, each run would collect garbage.
const (
	tinyGoStack  = "-z stack-size=524288"
	tinyGoMemory = "--initial-memory=1048576"
)

// memoryTooSmall is what the linker says of a module with more data than
// tinyGoMemory has room for.
const memoryTooSmall = "initial memory too small"

// goTooNew is what TinyGo says of a Go that it does not know yet.
var goTooNew = regexp.MustCompile(`requires go version 1\.\d+ through 1\.(\d+), got go(\S+)`)

// lastPatches are the last releases of Go 1.N, for what TinyGo 0.35 to 0.40 need.
var lastPatches = map[int]int{23: 12, 24: 13}

// tinyGoProject is a folder with a Go main package, for TinyGo.
type tinyGoProject struct {
	dir string // absolute
	env []string
}

// name implements builder: the name of the folder.
func (p *tinyGoProject) name() string { return filepath.Base(p.dir) }

// version implements builder.
func (p *tinyGoProject) version(ctx context.Context) (string, error) {
	return versionOf(ctx, &command{dir: p.dir, env: p.env, name: "tinygo"}, getTinyGo)
}

// compile implements builder. Two refusals of TinyGo have a remedy, and it is
// taken: an older Go, and the linker's own choice of the memory.
func (p *tinyGoProject) compile(ctx context.Context, file string, stderr io.Writer) error {
	linker := []string{tinyGoStack, tinyGoMemory}
	for {
		var said bytes.Buffer
		c := command{dir: p.dir, env: p.env, name: "tinygo"}
		c.args = append(append(c.args, tinyGoFlags...), "-ldflags=-extldflags '"+strings.Join(linker, " ")+"'", "-o", file, ".")
		err := c.run(ctx, &said, &said)
		if err != nil && len(linker) > 1 && strings.Contains(said.String(), memoryTooSmall) {
			linker = linker[:1]
			continue
		}
		if m := goTooNew.FindStringSubmatch(said.String()); err != nil && m != nil && p.env == nil {
			if err := p.olderGo(ctx, m, stderr); err != nil {
				return err
			}
			continue
		}
		_, _ = said.WriteTo(stderr)
		return err
	}
}

// olderGo sets the newest Go that this TinyGo takes. TinyGo asks the go command
// on PATH for its GOROOT, and that command obeys GOTOOLCHAIN: it downloads what it
// does not have.
func (p *tinyGoProject) olderGo(ctx context.Context, m []string, stderr io.Writer) error {
	minor, err := strconv.Atoi(m[1])
	if err != nil {
		return err
	}
	toolchain := fmt.Sprintf("go1.%d.%d", minor, lastPatches[minor])
	advice := fmt.Sprintf("build with GOTOOLCHAIN=%s wasmctl build --toolchain tinygo, or install TinyGo 0.41", toolchain)
	if set := os.Getenv("GOTOOLCHAIN"); set != "" {
		return fmt.Errorf("%w: this TinyGo takes Go 1.%d at most, and GOTOOLCHAIN=%s gives it go%s: %s", ErrNoToolchain, minor, set, m[2], advice)
	}
	p.env = []string{"GOTOOLCHAIN=" + toolchain}
	var said bytes.Buffer
	check := command{dir: p.dir, env: p.env, name: "go", args: []string{"version"}}
	if err := check.run(ctx, io.Discard, &said); err != nil {
		return fmt.Errorf("%w: this TinyGo takes Go 1.%d at most, not go%s, and %s cannot be had: %s: %s",
			ErrNoToolchain, minor, m[2], toolchain, strings.TrimSpace(said.String()), advice)
	}
	_, err = fmt.Fprintf(stderr, "this TinyGo takes Go 1.%d at most, not go%s: building with GOTOOLCHAIN=%s\n", minor, m[2], toolchain)
	return err
}
