// SPDX-License-Identifier: Apache-2.0

package cases

import (
	"os"
	"path/filepath"
	"strings"
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

// TestRead_RefusesAKeyThatAppearsTwice: the API server would refuse the object, and readers would disagree about it.
func TestRead_RefusesAKeyThatAppearsTwice(t *testing.T) {
	const text = "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nspec: {group: a.dev, group: b.dev}\n"
	file := filepath.Join(t.TempDir(), "object.yaml")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := ReadObjects(file)
	for what, err := range map[string]error{"objects": err, "CRDs": new(File).AddCRDs([]byte(text))} {
		if err == nil || !strings.Contains(err.Error(), `"group" already set`) {
			t.Errorf("%s: %v", what, err)
		}
	}
	err = new(File).AddCRDs([]byte(strings.Replace(text, "group: b.dev", "Group: b.dev", 1)))
	if err == nil || !strings.Contains(err.Error(), `key "spec.Group": differs from "group" by case only`) {
		t.Error(err)
	}
}
