// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"bytes"
	"encoding/json"
	"go/build/constraint"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

// takeUnix adds the program's files for "unix" to the module, if their package has no files for
// other systems. A module is like a unix in all but the name: its paths and most of package os are
// the same.
func (s *Stage) takeUnix(packages []pkg) error {
	replace := map[string]string{} // by file
	for i := range packages {
		if m := packages[i].Module; m == nil || !m.Main || len(packages[i].IgnoredGoFiles) == 0 {
			continue
		}
		if err := s.addUnix(&packages[i], replace); err != nil {
			return err
		}
	}
	if len(replace) == 0 {
		return nil
	}
	text, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		return err
	}
	s.overlay = filepath.Join(s.dir, links, "overlay.json")
	return os.WriteFile(s.overlay, text, 0o600)
}

// addUnix adds a package's files for unix to replace.
func (s *Stage) addUnix(p *pkg, replace map[string]string) error {
	for _, name := range p.GoFiles {
		if line, err := buildLine(filepath.Join(p.Dir, name)); err != nil || line != nil && !holds(line, true) {
			return err // it replaces a file for unix
		}
	}
	for _, name := range p.IgnoredGoFiles {
		file := filepath.Join(p.Dir, name)
		line, err := buildLine(file)
		if err != nil {
			return err
		}
		if line == nil || strings.HasSuffix(name, "_test.go") || holds(line, false) || !holds(line, true) {
			continue
		}
		text, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		to := filepath.Join(s.dir, links, "unix", strings.ReplaceAll(p.ImportPath, "/", "_")+"_"+name)
		if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(to, withoutBuildLine(text), 0o600); err != nil {
			return err
		}
		replace[file] = to
	}
	return nil
}

var ofWasm = regexp.MustCompile(`\b(wasm|wasip1)\b`)

// leftOut reports files of a package that its constraints leave out of a module by name, such as !wasm, and that a
// native build on Linux has.
func (u *usage) leftOut(p *pkg) {
	for _, name := range p.IgnoredGoFiles {
		file := filepath.Join(p.Dir, name)
		line, err := buildLine(file)
		if err != nil || line == nil || strings.HasSuffix(name, "_test.go") || !ofWasm.MatchString(line.String()) {
			continue
		}
		native := func(tag string) bool {
			return tag == "linux" || tag == "unix" || tag == "amd64" || tag == "gc" || strings.HasPrefix(tag, "go1.")
		}
		if line.Eval(native) {
			what, do := "the file is not in a module: //go:build "+line.String(), "move code that a module needs to a file without this constraint"
			u.report.Findings = append(u.report.Findings, Finding{Place{u.name(file), 1}, Warn, what, do})
		}
	}
}

// buildLine returns the build constraint of a file, or nil if it has none.
func buildLine(file string) (constraint.Expr, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	for line := range strings.Lines(string(text)) {
		switch {
		case constraint.IsGoBuild(line):
			return constraint.Parse(strings.TrimSpace(line))
		case strings.HasPrefix(line, "package "):
			return nil, nil //nolint:nilnil // documented
		}
	}
	return nil, nil //nolint:nilnil // documented
}

// holds reports whether a constraint includes a file in a module, as a unix or not.
func holds(line constraint.Expr, unix bool) bool {
	return line.Eval(func(tag string) bool {
		return tag == "wasip1" || tag == "wasm" || tag == "gc" || strings.HasPrefix(tag, "go1.") || unix && tag == "unix"
	})
}

// withoutBuildLine preserves the line numbers.
func withoutBuildLine(text []byte) []byte {
	lines := bytes.SplitAfter(text, []byte("\n"))
	for i, line := range lines {
		if constraint.IsGoBuild(string(line)) {
			lines[i] = []byte("//\n")
			break
		}
	}
	return bytes.Join(lines, nil)
}
