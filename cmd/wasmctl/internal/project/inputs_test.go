// SPDX-License-Identifier: Apache-2.0

package project

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/wasmctl/wasmctl/cmd/wasmctl/internal/project/operator"
)

// TestWriteInputs_IsAFileToEdit: without an edit it sets nothing, and with each # of an input removed it
// sets the defaults. It never replaces a file.
func TestWriteInputs_IsAFileToEdit(t *testing.T) {
	dir := t.TempDir()
	inputs := []operator.Input{
		{Kind: operator.InputEnv, Name: "POD_NAME", Default: `a "quoted" # text`, Place: operator.Place{File: "x.go", Line: 3}},
		{Kind: operator.InputFlag, Name: "addr", Default: ":80", Place: operator.Place{File: "main.go", Line: 4}},
	}
	if err := WriteInputs(dir, inputs); err != nil {
		t.Fatal(err)
	}
	if f, err := readFile(dir); err != nil || !f.IsZero() {
		t.Errorf("as written: %+v, %v", f, err)
	}
	file := filepath.Join(dir, FileName)
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(b), "\n")
	edited := strings.ReplaceAll("\n"+rest, "\n# ", "\n")
	edited = strings.ReplaceAll(edited, "\n#   ", "\n  ")
	if err := os.WriteFile(file, []byte(edited), 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := readFile(dir)
	if err != nil || len(f.Args) != 1 || f.Args[0] != "--addr=:80" || f.Env["POD_NAME"] != inputs[0].Default {
		t.Errorf("edited: %+v, %v\n%s", f, err, edited)
	}
	if err := WriteInputs(dir, inputs); err == nil || !strings.Contains(err.Error(), "exists") {
		t.Errorf("written over an existing file: %v", err)
	}
}
