package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/wasmctl/wasmctl/devcluster/devclustertest"
	"github.com/wasmctl/wasmctl/internal/enginetest"
)

// TestTriggers_LinesSettingsAndASignal: lines of stdin, new settings and a
// signal each lead to reconciles of what they name, and to no others; what is
// wrong with a line or with settings is said, and costs nothing else.
func TestTriggers_LinesSettingsAndASignal(t *testing.T) {
	t.Parallel()
	f, socket := newFleet(t, devclustertest.Shared(t)), newSocket(t)
	f.put(t.Context(), "a", app{image: "i:1"})
	f.put(t.Context(), "b", app{image: "i:1"})
	settings := filepath.Join(t.TempDir(), "settings.yaml")
	writeFile(t, settings, "defaultReplicas: 2")
	stdin, lines, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	c := startWasmctlIn(t, nil, stdin, exampleWasm(t, "webapp"), "-n", f.ns, "--kubeconfig", f.cluster.Kubeconfig(), "--socket", socket,
		"--trigger-on-stdin", "--trigger-on-signal", "USR1", "--config-file", settings)
	_ = stdin.Close() // the child has its own
	f.confirm()
	awaitQuiet(t, socket)
	triggered := func(name string) int { return c.count(`"object":"`+f.ns+"/"+name+`"`, `"reason":"Triggered`) }

	_, _ = fmt.Fprintf(lines, "b\n%s/a\n", f.ns) // an error shows below
	enginetest.Until(t, "a is reconciled", func() bool { return triggered("a") == 1 })
	c.wantLine("skipping a line of stdin", "line 1", "namespace is needed")
	if n := triggered("b"); n != 0 {
		t.Errorf("b was triggered %d times, and never named", n)
	}
	_, _ = fmt.Fprintln(lines, "*")
	enginetest.Until(t, "both are reconciled", func() bool { return triggered("a") == 2 && triggered("b") == 1 })
	_, _ = fmt.Fprintln(lines, f.ns+"/nobody")
	c.wantLine("object not found", f.ns+"/nobody")
	_ = lines.Close() // ends that trigger alone

	writeFile(t, settings, "defaultReplicas: many")
	c.wantLine("refused new settings", "many")
	writeFile(t, settings, "defaultReplicas: 3\nreplicas: 2")
	c.wantLine("settings applied", `"config_gen":2`)
	c.wantLine("unknown setting", "replicas: unknown setting; want one of defaultReplicas")
	for _, name := range []string{"a", "b"} {
		c.wantLine(`"object":"`+f.ns+"/"+name+`"`, `"reason":"ConfigChanged`)
	}

	awaitQuiet(t, socket)
	c.signal(syscall.SIGUSR1)
	enginetest.Until(t, "both are reconciled", func() bool { return triggered("a") == 3 && triggered("b") == 2 })
	c.signal(syscall.SIGTERM)
	c.wantExit(exitOK)
}

// awaitQuiet waits until nothing has been reconciled for a while: what is
// triggered then is not merged with anything else.
func awaitQuiet(t *testing.T, socket string) {
	t.Helper()
	same, last := 0, uint64(0)
	enginetest.Until(t, "nothing is left to do", func() bool {
		st := statusOf(t, socket)
		if same++; st.Ready+st.Running > 0 || st.Runs != last {
			same = 0
		}
		last = st.Runs
		return same >= 20
	})
}

// count returns how many lines contain all parts.
func (c *child) count(parts ...string) int { return len(c.linesWith(parts...)) }

// linesWith returns the lines that contain all parts.
func (c *child) linesWith(parts ...string) (lines []string) {
	for line := range strings.Lines(c.text()) {
		if containsAll(line, parts) {
			lines = append(lines, line)
		}
	}
	return lines
}

func writeFile(t *testing.T, path, content string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}
