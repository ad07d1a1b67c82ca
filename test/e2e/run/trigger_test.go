// SPDX-License-Identifier: Apache-2.0

package run_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/devcluster/devclustertest"
	"github.com/wasmctl/wasmctl/internal/enginetest"
	"github.com/wasmctl/wasmctl/test/e2e/internal/e2e"
)

// TestTriggers_LinesSettingsAndASignal: lines of stdin, new settings and a signal each
// trigger the objects that they name, and no others. An invalid line or setting is
// reported, and has no other effect.
func TestTriggers_LinesSettingsAndASignal(t *testing.T) {
	t.Parallel()
	f, socket := e2e.NewFleet(t, devclustertest.Shared(t)), e2e.NewSocket(t)
	f.Put(t.Context(), "a", e2e.App{Image: "i:1"})
	f.Put(t.Context(), "b", e2e.App{Image: "i:1"})
	settings := filepath.Join(t.TempDir(), "settings.yaml")
	writeFile(t, settings, "defaultReplicas: 2")
	stdin, lines, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	c := e2e.RunIn(t, nil, stdin, e2e.Example(t, "webapp"), "-n", f.Ns, "--kubeconfig", f.Cluster.Kubeconfig(), "--socket", socket,
		"--trigger-on-stdin", "--trigger-on-signal", "USR1", "--config-file", settings)
	_ = stdin.Close() // the child has its own
	f.Confirm()
	e2e.AwaitQuiet(t, socket)
	ran := func(name string, reason abi.ReasonType) (n int) { // history has only the last runs
		for _, line := range c.LinesWith(`"msg":"reconciled"`, `"object":"`+f.Ns+"/"+name+`"`) {
			if strings.Contains(e2e.ParseLine(t, line).Reason, string(reason)) { // the trigger of an event may come together with it
				n++
			}
		}
		return n
	}
	triggered := func(name string) int { return ran(name, abi.ReasonTriggered) }

	_, _ = fmt.Fprintf(lines, "b\n%s/a\n", f.Ns) // an error shows below
	enginetest.Until(t, "a is reconciled", func() bool { return triggered("a") == 1 })
	c.WantLine("skipping a line of stdin", "line 1", "namespace is required")
	if n := triggered("b"); n != 0 {
		t.Errorf("b was triggered %d times, and never named", n)
	}
	_, _ = fmt.Fprintln(lines, "*")
	enginetest.Until(t, "both are reconciled", func() bool { return triggered("a") == 2 && triggered("b") == 1 })
	_, _ = fmt.Fprintln(lines, f.Ns+"/nobody")
	c.WantLine("object not found", f.Ns+"/nobody")
	_ = lines.Close() // ends only this trigger

	writeFile(t, settings, "defaultReplicas: many")
	c.WantLine("refused new settings", "many")
	writeFile(t, settings, "defaultReplicas: 3\nreplicas: 2")
	c.WantLine("settings applied", `"config_gen":2`)
	c.WantLine("unknown setting", "replicas: unknown setting; want one of defaultReplicas")
	for _, name := range []string{"a", "b"} {
		c.Until(name+" runs with new settings", func() bool { return ran(name, abi.ReasonConfigChanged) > 0 })
	}

	e2e.AwaitQuiet(t, socket)
	c.Signal(syscall.SIGUSR1)
	enginetest.Until(t, "both are reconciled", func() bool { return triggered("a") == 3 && triggered("b") == 2 })
	c.Signal(syscall.SIGTERM)
	c.WantExit(e2e.ExitOK)
}

func writeFile(t *testing.T, path, content string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}
