// SPDX-License-Identifier: Apache-2.0

package wasmctl_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// link finds relative links of Markdown; it captures the target.
var link = regexp.MustCompile(`\]\(([^()\s:]+)\)`)

// TestDocs_IndexNamesEachPage: docs/README.md links to every page of docs, and
// RATIONALE.md to every decision record.
func TestDocs_IndexNamesEachPage(t *testing.T) {
	for _, tc := range []struct {
		index, pages, prefix string
		least                int
	}{
		{"docs/README.md", "docs/*.md", "", 20},
		{"RATIONALE.md", "docs/decisions/*.md", "docs/decisions/", 40},
	} {
		index, err := os.ReadFile(tc.index)
		if err != nil {
			t.Fatal(err)
		}
		names, err := filepath.Glob(tc.pages)
		if err != nil || len(names) < tc.least {
			t.Fatalf("%s: %d pages, %v", tc.pages, len(names), err)
		}
		for _, page := range names {
			name := tc.prefix + filepath.Base(page)
			if page != filepath.FromSlash(tc.index) && !strings.Contains(string(index), "]("+name+")") {
				t.Errorf("%s does not link to %s", tc.index, name)
			}
		}
	}
}

// TestDocs_LinksLeadSomewhere: every relative link of every page leads to a file, and to a
// heading of that file if the link names one.
func TestDocs_LinksLeadSomewhere(t *testing.T) {
	links := 0
	pages(t, func(path, text string) {
		for _, found := range link.FindAllStringSubmatch(prose(text), -1) {
			links++
			if !leadsSomewhere(path, found[1]) {
				t.Errorf("%s: (%s) leads nowhere", path, found[1])
			}
		}
	})
	if links < 100 {
		t.Errorf("%d links", links)
	}
}

// TestArchitecture_NamesEachPackage: ARCHITECTURE.md names every package.
func TestArchitecture_NamesEachPackage(t *testing.T) {
	text, err := os.ReadFile("ARCHITECTURE.md")
	if err != nil {
		t.Fatal(err)
	}
	out, err := exec.CommandContext(t.Context(), "go", "list", "./...").Output()
	if err != nil {
		t.Fatal(err)
	}
	for pkg := range strings.FieldsSeq(string(out)) {
		name, _ := strings.CutPrefix(pkg, module+"/")
		if parts := strings.Split(name, "/"); len(parts) > 2 { // its last two parts suffice
			name = strings.Join(parts[len(parts)-2:], "/")
		}
		if pkg != module && !strings.Contains(string(text), name+"`") {
			t.Errorf("ARCHITECTURE.md does not name %s", pkg)
		}
	}
}

// prose returns a page without its indented code.
func prose(page string) string {
	var b strings.Builder
	for line := range strings.Lines(page) {
		if !strings.HasPrefix(line, "    ") {
			b.WriteString(line)
		}
	}
	return b.String()
}

// leadsSomewhere reports whether a link of a page has a target.
func leadsSomewhere(page, target string) bool {
	file, heading, _ := strings.Cut(target, "#")
	to := page
	if file != "" {
		to = filepath.Join(filepath.Dir(page), filepath.FromSlash(file))
	}
	if heading == "" {
		_, err := os.Stat(to)
		return err == nil
	}
	text, err := os.ReadFile(to)
	if err != nil {
		return false
	}
	for line := range strings.Lines(string(text)) {
		if title := strings.TrimLeft(line, "#"); title != line && anchor(title) == heading {
			return true
		}
	}
	return false
}

// anchor returns the name of a heading in links.
func anchor(title string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == ' ' || r == '-':
			return '-'
		case r == '_' || 'a' <= r && r <= 'z' || '0' <= r && r <= '9':
			return r
		}
		return -1
	}, strings.ToLower(strings.TrimSpace(title)))
}
