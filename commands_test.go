// SPDX-License-Identifier: Apache-2.0

package wasmctl_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var (
	benchDecl    = regexp.MustCompile(`(?m)^func (Benchmark\w+)\(`)
	benchCommand = regexp.MustCompile(`go test ([^` + "`" + `|\n]*|'[^']*')*-bench ('[^']*'|\S+)[^` + "`" + `#\n]*`)
	makeCommand  = regexp.MustCompile("(?m)(?:`|^    |&& )make ([a-z][a-z-]*)")
	makeTarget   = regexp.MustCompile(`(?m)^([a-z][a-z-]*):`)
	folder       = regexp.MustCompile(`\s(\./\S+|\.)\s*$`)
	skipCall     = regexp.MustCompile(`\b(?:t|tb|b)\.Skipf?\(`)
)

// pages calls a function with every page of this repository.
func pages(t *testing.T, do func(path, text string)) {
	t.Helper()
	walk(t, ".md", do)
}

// walk calls a function with every file of this repository whose name has a suffix.
func walk(t *testing.T, suffix string, do func(path, text string)) {
	t.Helper()
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (d.Name() == ".git" || path == "bin" || d.Name() == "target" || d.Name() == "testdata"):
			return filepath.SkipDir
		case d.IsDir() || !strings.HasSuffix(path, suffix):
			return nil
		}
		text, err := os.ReadFile(path)
		if err == nil {
			do(path, string(text))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// TestDocs_NamedTestsExist: every test that a page names exists. docs/properties.md also
// names tests of other projects, and has a test of its own.
func TestDocs_NamedTestsExist(t *testing.T) {
	declared, n := declaredTests(t), 0
	pages(t, func(path, text string) {
		if path == filepath.FromSlash("docs/properties.md") {
			return
		}
		for _, at := range testName.FindAllStringIndex(text, -1) {
			name := text[at[0]:at[1]]
			if strings.HasSuffix(text[:at[0]], "func ") {
				continue // the page contains the test itself
			}
			n++
			begin, some := strings.CutSuffix(name, "*")
			if some = some || strings.HasSuffix(strings.TrimRight(text[:at[0]], "'^("), "-run "); !some {
				begin += " "
			}
			if !strings.Contains(declared, " "+begin) {
				t.Errorf("%s: there is no %s", path, name)
			}
		}
	})
	if n < 30 {
		t.Errorf("%d tests are named: the pages have another form than this test reads", n)
	}
}

// TestDocs_BenchmarksExist: every command that runs a benchmark finds one.
func TestDocs_BenchmarksExist(t *testing.T) {
	n := 0
	pages(t, func(path, text string) {
		for _, command := range benchCommand.FindAllStringSubmatch(text, -1) {
			n++
			dir := folder.FindStringSubmatch(command[0])
			if dir == nil {
				continue // the folder precedes -bench
			}
			at := dir[1]
			if at == "." { // the folder of the page
				at = filepath.Dir(path)
			}
			pattern, err := regexp.Compile(strings.Trim(command[2], "'"))
			if err != nil {
				t.Errorf("%s: %s: %v", path, command[0], err)
				continue
			}
			if !declaresBenchmark(t, at, pattern) {
				t.Errorf("%s: %s: there is no such benchmark", path, command[0])
			}
		}
	})
	if n < 15 {
		t.Errorf("%d commands: the pages have another form than this test reads", n)
	}
}

func declaresBenchmark(t *testing.T, dir string, pattern *regexp.Regexp) bool {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range benchDecl.FindAllSubmatch(text, -1) {
			if pattern.Match(m[1]) {
				return true
			}
		}
	}
	return false
}

// TestDocs_MakeTargetsExist: every make target that a page names exists.
func TestDocs_MakeTargetsExist(t *testing.T) {
	targets := map[string]bool{}
	for _, path := range []string{"Makefile", "cmd/wasmctl/internal/project/templates/all/Makefile.tmpl"} { // ours, and that of a new project
		makefile, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range makeTarget.FindAllStringSubmatch(string(makefile), -1) {
			targets[m[1]] = true
		}
	}
	n := 0
	pages(t, func(path, text string) {
		for _, m := range makeCommand.FindAllStringSubmatch(text, -1) {
			if n++; !targets[m[1]] {
				t.Errorf("%s: make has no target %s", path, m[1])
			}
		}
	})
	if n < 15 {
		t.Errorf("%d targets are named: the pages have another form than this test reads", n)
	}
}

// TestSkips_AreSeen: all skipped tests can be found in a log by one word.
func TestSkips_AreSeen(t *testing.T) {
	n := 0
	walk(t, "_test.go", func(path, text string) {
		for _, at := range skipCall.FindAllStringIndex(text, -1) {
			if n++; !strings.HasPrefix(text[at[1]:], `"SKIPPED: `) {
				t.Errorf("%s: a skip whose text does not begin with SKIPPED: %.60s", path, text[at[0]:])
			}
		}
	})
	if n < 10 {
		t.Errorf("%d skips were found", n)
	}
}
