// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"path/filepath"
	"strings"
	"testing"
)

// TestObjects_AreReadFromFiles: each document has an object. Secrets, other documents and too many
// bytes are errors.
func TestObjects_AreReadFromFiles(t *testing.T) {
	file := filepath.Join(t.TempDir(), "o.yaml")
	read := func(text string) (int, error) {
		write(t, file, text)
		got, err := readObjects([]string{file})
		return len(got), err
	}
	const one = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n"
	if n, err := read("---\n# settings\n---\n" + one + "---\n" + one); err != nil || n != 2 {
		t.Errorf("%d, %v", n, err)
	}
	for _, bad := range []string{"kind: ConfigMap\n", "a", strings.Replace(one, "ConfigMap", "Secret", 1), "Kind: Secret\n" + one, "kind: Secret\n" + one, one + "data: {a: " + strings.Repeat("x", maxObjects) + "}\n"} {
		if n, err := read(bad); err == nil {
			t.Errorf("%.40q is no error: %d", bad, n)
		}
	}
	if _, err := readObjects([]string{file + "x"}); err == nil {
		t.Error("a missing file is no error")
	}
}
