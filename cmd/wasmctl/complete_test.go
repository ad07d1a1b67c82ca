// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

// TestComplete_EveryArgumentIsKnown: the shell completes each argument according to its placeholder in
// the usage, and offers files only for arguments that are files.
func TestComplete_EveryArgumentIsKnown(t *testing.T) {
	for _, c := range []struct{ args, want string }{
		{"log-level web ", "debug info warn error :4"},
		{"swap web ", "wasm :8"},
		{"run a.wasm ", "wasm :8"},
		{"test a.wasm ", ":0"},
		{"test a.wasm cases ", ":0"},
		{"build ", ":16"},
		{"build a ", ":4"},
		{"config check ", "yaml yml :8"},
		{"status ", ":4"},
		{"logs --socket /nowhere ", ":4"},
	} {
		var out, errs bytes.Buffer
		args := append([]string{cobra.ShellCompRequestCmd}, strings.Split(c.args, " ")...)
		if code := execute(t.Context(), args, streams{in: strings.NewReader(""), out: &out, err: &errs}); code != exitOK {
			t.Errorf("%s: exit code %d: %s", c.args, code, &errs)
		}
		if got := strings.Join(strings.Fields(out.String()), " "); got != c.want {
			t.Errorf("%s: %q, want %q", c.args, got, c.want)
		}
	}
}
