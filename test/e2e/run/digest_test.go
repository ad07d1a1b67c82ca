// SPDX-License-Identifier: Apache-2.0

package run_test

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/wasmctl/wasmctl/host/load"
	"github.com/wasmctl/wasmctl/internal/enginetest"
	"github.com/wasmctl/wasmctl/test/e2e/internal/e2e"
)

// TestGrant_OfADigestIsForThatModule: a module whose digest the grant does not name does
// not start, and is not swapped in by any command. Once the grant names it, it is
// swapped in. Each revision has the rights of its own digest, also after a rollback.
func TestGrant_OfADigestIsForThatModule(t *testing.T) {
	w := newWalled(t)
	dir := t.TempDir()
	example, err := os.ReadFile(e2e.Example(t, "configmapgenerator"))
	if err != nil {
		t.Fatal(err)
	}
	var modules, digests []string
	for i, name := range []string{"a.wasm", "b.wasm"} {
		wasm := enginetest.Numbered(example, i)
		modules, digests = append(modules, filepath.Join(dir, name)), append(digests, load.DigestOf(wasm))
		e2e.Replace(t, modules[i], wasm)
	}
	file := filepath.Join(dir, "grant.yaml")
	document := func(digest, capabilities string) string {
		return "apiVersion: wasmctl.dev/v1\nkind: Grant\ndigests: " + digest + "\ncapabilities:\n" + strings.ReplaceAll(capabilities, "NS", w.ns)
	}
	const all = exampleGrant + "- {resource: configmaps, verbs: [get, list, watch, create, patch], namespaces: [NS]}\n"
	e2e.Replace(t, file, []byte(document(digests[0], labelsOnly)))
	refused := func(what string, code int, out string) {
		t.Helper()
		for _, want := range append(digests, "add this digest to the document", "run the module that is meant") {
			if code == e2e.ExitOK || !strings.Contains(out, want) {
				t.Errorf("%s: exit code %d, and no %q: %s", what, code, want, out)
			}
		}
	}
	args := []string{"-n", w.ns, "--kubeconfig", w.cluster.Kubeconfig(), "--grant", file, "--probation", "0"}
	c := e2e.Run(t, append(args, modules[1], "--socket", "none")...)
	c.WantExit(e2e.ExitDenied)
	refused("run", e2e.ExitDenied, c.Text())
	code, out := e2e.Exec(t, nil, "rbac", modules[1], "--grant", file, "--kubeconfig", w.cluster.Kubeconfig())
	if code != e2e.ExitDenied {
		t.Fatalf("exit code %d: %s", code, out)
	}
	refused("rbac", e2e.ExitDenied, out)

	w.generate("a")
	socket := e2e.NewSocket(t)
	c = e2e.Run(t, append(args, modules[0], "--socket", socket, "--allow-more-rights")...)
	c.WantLine("denied a request of the module", "data.content")
	for _, command := range [][]string{{"swap"}, {"swap", "--canary", "50%"}, {"shadow", "--for", "1s"}} {
		code, out := e2e.Refused(t, command[0], socket, append(command[1:], "configmapgenerator", modules[1])...)
		refused(strings.Join(command, " "), code, out)
	}

	e2e.Replace(t, file, []byte(document(digests[0], labelsOnly)+"---\n"+document(digests[1], all)))
	c.WantLine("grant changed")
	enginetest.Until(t, "the module that was live is again", func() bool { return c.Count(`"msg":"reconciling"`) == 2 })
	e2e.Steer(t, "swap", socket, "configmapgenerator", modules[1])
	enginetest.Until(t, "it has the rights of its digest", func() bool { return w.configMaps() == "a" })
	e2e.Steer(t, "rollback", socket, "configmapgenerator")
	w.generate("b")
	c.WantLine("denied a request of the module", w.ns+"/b", "data.content")
	if got := w.configMaps(); got != "a" {
		t.Errorf("%s were written", got)
	}
	c.Signal(syscall.SIGTERM)
	c.WantExit(e2e.ExitOK)
}
