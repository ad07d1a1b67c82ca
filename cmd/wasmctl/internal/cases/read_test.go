// SPDX-License-Identifier: Apache-2.0

package cases

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// An object from a file has the numbers that its text has: 2^53+1 is no float.
func TestReadObjects_KeepsNumbers(t *testing.T) {
	file := filepath.Join(t.TempDir(), "object.yaml")
	if err := os.WriteFile(file, []byte("# nothing\n---\nkind: Namespace\n---\nspec: {count: 9007199254740993, f: 1.5, whole: 2.0, list: [-1, x, null, true]}"), 0o600); err != nil {
		t.Fatal(err)
	}
	got, err := ReadObjects(file)
	want := []map[string]any{{"kind": "Namespace"}, {"spec": map[string]any{"count": int64(1<<53 + 1), "f": 1.5, "whole": int64(2), "list": []any{int64(-1), "x", nil, true}}}}
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("%v\n%s", err, diff)
	}
}
