// SPDX-License-Identifier: Apache-2.0

package controllerruntime_test

import (
	"os/exec"
	"testing"
)

// TestAPI_OfOlderVersions checks the symbols that differ before 0.18, 0.19 and
// 0.23, with the tags that wasmctl build sets for programs of these versions.
func TestAPI_OfOlderVersions(t *testing.T) {
	if testing.Short() {
		t.Skip("SKIPPED: -short: compiles a program")
	}
	cmd := exec.CommandContext(t.Context(), "go", "test", "-tags=wasmctl_before_018,wasmctl_before_019,wasmctl_before_023", "./pkg/internal/older")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}
