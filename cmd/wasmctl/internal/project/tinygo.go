// SPDX-License-Identifier: Apache-2.0

package project

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
)

const getTinyGo = `install TinyGo 0.41 (0.35 is the oldest) from https://tinygo.org/getting-started/install and put it on PATH, ` +
	`or build with --toolchain go`

// tinyGoFlags are the only settings that neither leak memory nor are many times slower. See
// docs/toolchains.md.
var tinyGoFlags = []string{
	"build", "-target=wasip1", "-buildmode=c-shared", "-gc=precise", "-scheduler=none", "-no-debug", "-opt=2",
}

// The linker's flags. The larger stack is for deeply nested objects. If the heap were nearly full
// at the start, each run would collect garbage.
const (
	tinyGoStack  = "-z stack-size=524288"
	tinyGoMemory = "--initial-memory=1048576"
)

// memoryTooSmall is in the linker's error for a module whose data does not fit into tinyGoMemory.
const memoryTooSmall = "initial memory too small"

// goTooNew matches TinyGo's error for a version of Go that it does not support yet.
var goTooNew = regexp.MustCompile(`requires go version 1\.\d+ through 1\.(\d+), got go(\S+)`)

// lastPatches are the last releases of Go 1.N, for TinyGo 0.35 to 0.40.
var lastPatches = map[int]int{23: 12, 24: 13}

// tinyGoProject is a folder with a Go main package, for TinyGo.
type tinyGoProject struct {
	dir   string // absolute
	env   []string
	flags GoFlags
}

// name implements builder. It returns the name of the folder.
func (p *tinyGoProject) name() string { return filepath.Base(p.dir) }

// version implements builder.
func (p *tinyGoProject) version(ctx context.Context) (string, error) {
	return versionOf(ctx, &command{dir: p.dir, env: p.env, name: "tinygo"}, getTinyGo)
}

// compile implements builder. It works around two errors of TinyGo: it uses an older Go, or lets
// the linker choose the memory.
func (p *tinyGoProject) compile(ctx context.Context, file string, stderr io.Writer) error {
	linker := []string{tinyGoStack, tinyGoMemory}
	p.warn(stderr)
	flags, err := p.flags.effective(ctx, p.dir)
	if err != nil {
		return err
	}
	for {
		var said bytes.Buffer
		c := command{dir: p.dir, env: p.env, name: "tinygo"}
		c.args = append(append(c.args, tinyGoFlags...), "-tags="+flags.tags, "-ldflags=-extldflags '"+strings.Join(linker, " ")+"'"+flags.linker, "-o", file, ".")
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
		text := said.String()
		_, _ = said.WriteTo(stderr)
		if err != nil {
			_, _ = io.WriteString(stderr, adviceOn(text))
		}
		return err
	}
}

// tinyGoLimits are parts of errors of TinyGo, and what to do about them.
var tinyGoLimits = []struct{ said, advice string }{
	{
		"attempted to start a goroutine without a scheduler",
		"a module by TinyGo has no goroutines: leave out go statements, time.Sleep, and context.WithTimeout and WithDeadline, which start timers; the host ends a run at its own deadline",
	},
	{"todo: builtin: ssa:deferstack", "TinyGo has no defer in a loop over a function: move the body of the loop to a function of its own"},
}

// adviceOn returns a line for each limit of TinyGo in its error.
func adviceOn(said string) string {
	var b strings.Builder
	for _, l := range tinyGoLimits {
		if strings.Contains(said, l.said) {
			b.WriteString("wasmctl: " + l.advice + "; or build with --toolchain go\n")
		}
	}
	return b.String()
}

// deepEqual matches a comparison by reflection.
var deepEqual = regexp.MustCompile(`\breflect\.DeepEqual\(`)

// warn names the project's code that TinyGo compiles to something else than Go does.
func (p *tinyGoProject) warn(stderr io.Writer) {
	_ = filepath.WalkDir(p.dir, func(path string, d fs.DirEntry, err error) error { // a folder that cannot be read does not compile
		if err == nil && d.IsDir() && path != p.dir && (d.Name() == "vendor" || exists(filepath.Join(path, "go.mod"))) {
			return fs.SkipDir
		}
		if err != nil || d.IsDir() || filepath.Ext(path) != ".go" || strings.HasSuffix(path, "_test.go") {
			return nil //nolint:nilerr // see above
		}
		text, err := os.ReadFile(path)
		if at := deepEqual.FindIndex(text); err == nil && at != nil {
			rel, _ := filepath.Rel(p.dir, path) // path is below dir
			_, _ = fmt.Fprintf(stderr, "wasmctl: %s:%d: reflect.DeepEqual of TinyGo returns true for slices and maps of any with different elements: use wasmctl.Equal\n",
				rel, 1+bytes.Count(text[:at[0]], []byte("\n")))
		}
		return nil
	})
}

// olderGo selects the newest Go that this TinyGo supports. TinyGo asks the go command on PATH for
// its GOROOT. That command follows GOTOOLCHAIN, and downloads a missing version.
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
