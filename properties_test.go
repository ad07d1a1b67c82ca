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
	testDecl = regexp.MustCompile(`(?m)^func ((?:Test|Fuzz)\w+)\(`)
	testName = regexp.MustCompile(`\b(?:Test|Fuzz)[A-Z]\w*\*?`)
	heldBy   = regexp.MustCompile(`(?m)^\|.*\|([^|]+)\|$`)
)

// TestProperties_EachNamedTestExists: docs/properties.md says which test holds
// which promise. A name may end in an underscore, for all tests that begin so.
func TestProperties_EachNamedTestExists(t *testing.T) {
	declared := declaredTests(t)
	page, err := os.ReadFile("docs/properties.md")
	if err != nil {
		t.Fatal(err)
	}
	rows := heldBy.FindAllStringSubmatch(string(page), -1)
	if len(rows) < 100 {
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

// declaredTests returns the names of all tests of this repository, each between
// spaces.
func declaredTests(t *testing.T) string {
	t.Helper()
	var names strings.Builder
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		b, err := os.ReadFile(path)
		for _, m := range testDecl.FindAllSubmatch(b, -1) {
			names.WriteString(" " + string(m[1]) + " ")
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return names.String()
}
