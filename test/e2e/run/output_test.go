// SPDX-License-Identifier: Apache-2.0

package run_test

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/devcluster/devclustertest"
	"github.com/wasmctl/wasmctl/host/load"
	"github.com/wasmctl/wasmctl/internal/enginetest"
	"github.com/wasmctl/wasmctl/test/e2e/internal/e2e"
	"github.com/wasmctl/wasmctl/testdata/wasm"
)

// forged is a name with everything that a terminal could interpret as a command, and
// with line breaks.
const forged = "x\x1b]0;t\a\x1b[2J\u009b31m\u202e\u200b\x7f\r\nForged:  line\n\tForged:  line"

// wantPlain checks that an output contains no command for a terminal, and no forged
// line.
func wantPlain(t *testing.T, of, out string) {
	t.Helper()
	odd := strings.IndexFunc(out, func(r rune) bool { return r != '\n' && r != '\t' && !unicode.IsPrint(r) })
	if odd >= 0 || !utf8.ValidString(out) {
		t.Errorf("%s commands the terminal: %q", of, out[max(0, odd-100):min(len(out), max(0, odd)+100)])
	}
	for line := range strings.Lines(out) {
		if strings.HasPrefix(strings.TrimSpace(line), "Forged:") {
			t.Errorf("%s has a forged line:\n%s", of, out)
		}
	}
}

// withNames returns the empty guest with one more export, and an import, of a name.
func withNames(name string) []byte {
	vec := func(b []byte, s string) []byte { return append(append(b, byte(len(s))), s...) }
	imports := append(vec(vec([]byte{1}, name), name), 0, 0) // a function of the first type
	out := append([]byte(nil), wasm.Empty[:8]...)
	for rest := wasm.Empty[8:]; len(rest) > 0; {
		id, size := rest[0], int(rest[1]) // all sections are short
		body := rest[2 : 2+size]
		rest = rest[2+size:]
		switch id {
		case 3:
			out = append(append(out, 2, byte(len(imports))), imports...)
		case 7:
			body = append(vec(append([]byte{body[0] + 1}, body[1:]...), name), 0, 1)
		}
		out = append(append(append(out, id), sized(len(body))...), body...)
	}
	return out
}

func sized(n int) []byte {
	if n < 0x80 {
		return []byte{byte(n)}
	}
	return []byte{byte(n&0x7f) | 0x80, byte(n >> 7)}
}

// TestOutput_OfAModuleCommandsNoTerminal: names and requests of a module cannot control
// the terminal, in any command that reads its file.
func TestOutput_OfAModuleCommandsNoTerminal(t *testing.T) {
	dir := t.TempDir()
	m := &abi.Manifest{
		Name: "x" + forged, Version: forged, For: &abi.Watch{Group: forged, Version: forged, Kind: "Widget" + forged},
		Watches:      []abi.Watch{{Kind: forged, Map: abi.MapOwner, Optional: true}},
		Capabilities: []abi.Capability{{Group: forged, Resource: forged, Verbs: []string{forged, "get"}, Namespaces: []string{forged}, Names: []string{forged}}},
	}
	described, err := load.WithManifest(wasm.Empty, m)
	if err != nil {
		t.Fatal(err)
	}
	kind := &abi.Manifest{Version: "1", For: &abi.Watch{Group: "g" + forged, Version: "v1", Kind: "Widget" + forged}}
	for name, module := range map[string][]byte{
		"names": withNames(forged), "manifest": described, "kind": must(load.WithManifest(wasm.Empty, kind)),
		"toolchain": append(bytes.Clone(described), append([]byte{0, byte(len(forged) + 1), byte(len(forged))}, forged...)...),
	} {
		file := filepath.Join(dir, name+".wasm")
		if err := os.WriteFile(file, module, 0o600); err != nil {
			t.Fatal(err)
		}
		for _, args := range [][]string{
			{"inspect"},
			{"inspect", "-o", "yaml"},
			{"inspect", "-o", "json"},
			{"validate", "--calls", "10"},
			{"validate", "--calls", "10", "-o", "json"},
			{"rbac", "--kubeconfig", filepath.Join(dir, "none")},
			{"rbac", "--kubeconfig", filepath.Join(dir, "none"), "-o", "json"},
			{"manifests", "--kubeconfig", filepath.Join(dir, "none")},
			{"annotate", "--file", filepath.Join(dir, "out.wasm")},
			{"run", "--kubeconfig", filepath.Join(dir, "none")},
		} {
			out, _ := exec.CommandContext(t.Context(), "wasmctl", append([]string{args[0], file}, args[1:]...)...).CombinedOutput()
			wantPlain(t, name+": wasmctl "+strings.Join(args, " "), string(out))
			if args[0] == "inspect" && !strings.Contains(string(out), "u202e") && name != "toolchain" {
				t.Errorf("%s: wasmctl %s does not show the name:\n%s", name, args, out)
			}
		}
	}
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// TestOutput_OfAProcessCommandsNoTerminal: neither can requests of a module and answers
// of the API server, in the log and in the commands that query the process.
func TestOutput_OfAProcessCommandsNoTerminal(t *testing.T) {
	t.Parallel()
	get := enginetest.Operation{Op: abi.OpAPIGet, Request: map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "name": forged}}
	l, socket := newLeaks(t, get), e2e.NewSocket(t)
	m := enginetest.MayWrite("configmaps")
	m.Watches = []abi.Watch{{Group: "g" + forged, Kind: "K" + forged, Map: abi.MapOwner, Optional: true}}
	kind := enginetest.Operation{Op: abi.OpAPIGet, Request: map[string]any{"apiVersion": forged + "/v1", "kind": forged, "name": "a"}}
	denied := enginetest.Operation{Op: abi.OpAPIGet, Request: map[string]any{"apiVersion": "v1", "kind": "Pod", "namespace": l.ns, "name": forged}}
	e2e.Replace(t, l.file, enginetest.Scripted(t, m, get, kind, denied))
	for _, format := range []string{"text", "json"} {
		c, printed := l.run("--grant-manifest", "--socket", socket, "--log-format", format)
		enginetest.Until(t, "the object is reconciled", func() bool { return strings.Contains(printed(), l.ns+"/a") })
		enginetest.Until(t, "its run is known", func() bool {
			return strings.Contains(e2e.Steer(t, "explain", socket, "sa/a", "-n", l.ns), "u202e")
		})
		for _, args := range [][]string{{"explain", "sa/a", "-n", l.ns}, {"status"}, {"logs", "leaks"}, {"top", "--once"}} {
			for _, output := range []string{"text", "json"} {
				wantPlain(t, strings.Join(args, " ")+" -o "+output, e2e.Steer(t, args[0], socket, append(args[1:], "-o", output)...))
			}
		}
		c.Signal(syscall.SIGTERM)
		c.WantExit(e2e.ExitOK)
		wantPlain(t, "run", printed())
	}
}

// TestOutput_AnswersOfTheServerArePlain: answers of the API server in errors cannot control the
// terminal.
func TestOutput_AnswersOfTheServerArePlain(t *testing.T) {
	kubeconfig := devclustertest.Shared(t).Kubeconfig()
	out, _ := exec.CommandContext(t.Context(), "wasmctl", "run", e2e.Guests+"empty.wasm", "--grant-manifest", "--for", "cm", "--field-selector", "data."+forged+"=1", "--kubeconfig", kubeconfig, "--socket", "none").CombinedOutput()
	wantPlain(t, "run", string(out))
}
