// SPDX-License-Identifier: Apache-2.0

package wasmctl_test

import (
	"os"
	"regexp"
	"strings"
	"testing"
)

var (
	testDecl = regexp.MustCompile(`(?m)^func ((?:Test|Fuzz)\w+)\(`)
	testName = regexp.MustCompile(`\b(?:Test|Fuzz)[A-Z]\w*\*?`)
	heldBy   = regexp.MustCompile(`(?m)^\|.*\|([^|]+)\|$`)      // the last column of a table
	threat   = regexp.MustCompile(`(?ms)^- \*\*(.+?)[.:]?\*\*`) // the beginning of a list item
)

// TestProperties_EachNamedTestExists: docs/properties.md names the test of each promise. A
// name that ends in a star stands for all tests with that prefix.
func TestProperties_EachNamedTestExists(t *testing.T) {
	declared := declaredTests(t)
	rows := heldBy.FindAllStringSubmatch(readPage(t, "docs/properties.md"), -1)
	if len(rows) < 200 {
		t.Errorf("%d rows: the page has another form than this test reads", len(rows))
	}
	for _, row := range rows {
		for _, name := range testName.FindAllString(row[1], -1) {
			begin, some := strings.CutSuffix(" "+name, "*")
			if !some {
				begin += " "
			}
			if !strings.Contains(declared, begin) {
				t.Errorf("%s does not exist; it is to hold:%s", name, row[0])
			}
		}
	}
}

// TestProperties_HaveEachThreat: docs/properties.md names the tests of each threat in
// docs/security.md.
func TestProperties_HaveEachThreat(t *testing.T) {
	properties := readPage(t, "docs/properties.md")
	threats, _, _ := strings.Cut(readPage(t, "docs/security.md"), "\n## What is not protected against")
	found := threat.FindAllStringSubmatch(threats, -1)
	if len(found) < 60 {
		t.Errorf("%d threats: the page has another form than this test reads", len(found))
	}
	for _, m := range found {
		if title := strings.Join(strings.Fields(m[1]), " "); !strings.Contains(properties, "| "+title+" |") {
			t.Errorf("docs/properties.md has no row for the threat %q", title)
		}
	}
}

func readPage(t *testing.T, path string) string {
	t.Helper()
	page, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(page)
}

// declaredTests returns the names of all tests of this repository, separated by spaces.
func declaredTests(t *testing.T) string {
	t.Helper()
	var names strings.Builder
	walk(t, "_test.go", func(_, text string) {
		for _, m := range testDecl.FindAllStringSubmatch(text, -1) {
			names.WriteString(" " + m[1] + " ")
		}
	})
	return names.String()
}
