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
	heldBy   = regexp.MustCompile(`(?m)^\|.*\|([^|]+)\|$`)         // the last column of a table
	shownBy  = regexp.MustCompile(`(?m)^  Tests: (.*(?:\n  .*)*)`) // the end of a list item
)

// TestProperties_EachNamedTestExists: docs/properties.md names the test of each promise. A
// name that ends in an underscore stands for all tests with that prefix.
func TestProperties_EachNamedTestExists(t *testing.T) {
	checkNamedTests(t, "docs/properties.md", heldBy, 100)
}

// TestSecurity_EachNamedTestExists: docs/security.md names the test of each defense.
func TestSecurity_EachNamedTestExists(t *testing.T) {
	checkNamedTests(t, "docs/security.md", shownBy, 35)
}

// TestLimits_EachNamedTestExists: docs/limits.md names the test of each limit.
func TestLimits_EachNamedTestExists(t *testing.T) { checkNamedTests(t, "docs/limits.md", heldBy, 18) }

// checkNamedTests checks that every test named in an entry of a page exists, and that the
// page has at least min entries.
func checkNamedTests(t *testing.T, file string, entry *regexp.Regexp, least int) {
	t.Helper()
	declared := declaredTests(t)
	page, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	rows := entry.FindAllStringSubmatch(string(page), -1)
	if len(rows) < least {
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
