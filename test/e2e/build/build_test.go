// SPDX-License-Identifier: Apache-2.0

package build_test

import (
	"encoding/json"
	"os/exec"
	"slices"
	"testing"
	"time"

	"github.com/wasmctl/wasmctl/test/e2e/internal/e2e"
)

// built is the output of wasmctl build -o json.
type built struct {
	File, Version string
	Size          int64
	Took          time.Duration
}

// build runs wasmctl build, and stores the compiled code in the cache of e2e.Run. The arguments after
// "--" are for the main function of an operator.
func build(t *testing.T, dir string, args ...string) (b built) {
	t.Helper()
	flags, main := args, []string(nil)
	if at := slices.Index(args, "--"); at >= 0 {
		flags, main = args[:at], args[at:]
	}
	cmd := exec.CommandContext(t.Context(), "wasmctl", slices.Concat([]string{"build", dir, "-o", "json", "--cache-dir", e2e.CodeDir}, flags, main)...)
	cmd.Stderr = t.Output()
	out, err := cmd.Output()
	if err == nil {
		err = json.Unmarshal(out, &b)
	}
	if err != nil {
		t.Fatalf("%q: %v", cmd.Args, err)
	}
	return b
}
