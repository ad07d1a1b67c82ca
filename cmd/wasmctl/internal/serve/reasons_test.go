// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var reasonForm = regexp.MustCompile(`(?:reason: |\.reason(?:, p\.stalled)? = (?:v1alpha1\.\w+, )?|p\.condition, p\.reason(?:, p\.stalled)? = v1alpha1\.\w+, )"(\w+)"`)

// TestReasons_AreAllInTheTable compares the reasons in the source with the table of
// docs/serve.md.
func TestReasons_AreAllInTheTable(t *testing.T) {
	page, err := os.ReadFile("../../../../docs/serve.md")
	if err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	for _, file := range files {
		source, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		for _, m := range reasonForm.FindAllSubmatch(source, -1) {
			found++
			if !strings.Contains(string(page), "`"+string(m[1])+"`") {
				t.Errorf("%s: docs/serve.md lacks the reason %s", file, m[1])
			}
		}
	}
	if found < 15 {
		t.Errorf("only %d reasons", found)
	}
}
