// SPDX-License-Identifier: Apache-2.0

package wasmctl_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
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

// evidence are the pages that name tests, and the machine of a measurement. All others are
// for users.
var evidence = []string{"docs/metering.md", "docs/performance.md", "docs/properties.md", "docs/reports.md", "docs/wazero-internals.md"}

// machine finds words about the load of a machine.
var machine = regexp.MustCompile(`load of [0-9]|busy (?:CPUs|cores|machine with)`)

// TestDocs_UserPagesNameNoTests: the names of tests, and the load of the machine of a
// measurement, are on the pages of evidence.
func TestDocs_UserPagesNameNoTests(t *testing.T) {
	pages(t, func(path, text string) {
		if dir, _ := filepath.Split(filepath.ToSlash(path)); dir != "docs/" || slices.Contains(evidence, filepath.ToSlash(path)) {
			return
		}
		if found := testName.FindString(text); found != "" {
			t.Errorf("%s names %s; move it to docs/properties.md or docs/performance.md", path, found)
		}
		if found := machine.FindString(text); found != "" {
			t.Errorf("%s has the words %q; move the figures to docs/performance.md", path, found)
		}
	})
}

// TestAlerts_HaveRunbooks: the runbook_url of each alert leads to its section of
// docs/runbooks.md, and each section belongs to an alert.
func TestAlerts_HaveRunbooks(t *testing.T) {
	rules := readPage(t, "docs/dashboards/alerts.yaml")
	var alerts, sections []string
	for _, m := range regexp.MustCompile(`(?m)^  - alert: (\w+)$`).FindAllStringSubmatch(rules, -1) {
		alerts = append(alerts, m[1])
		if url := "runbook_url: https://" + module + "/blob/main/docs/runbooks.md#" + strings.ToLower(m[1]); !strings.Contains(rules, url+"\n") {
			t.Errorf("%s has no %s", m[1], url)
		}
	}
	for _, m := range regexp.MustCompile(`(?m)^## (\w+)$`).FindAllStringSubmatch(readPage(t, "docs/runbooks.md"), -1) {
		sections = append(sections, m[1])
	}
	if len(alerts) < 20 || !slices.Equal(alerts, sections) {
		t.Errorf("the alerts are %q, and the sections %q", alerts, sections)
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
