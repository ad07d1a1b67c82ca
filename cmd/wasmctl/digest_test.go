package main

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/wasmctl/wasmctl/cmd/wasmctl/internal/flags"
	"github.com/wasmctl/wasmctl/host"
	"github.com/wasmctl/wasmctl/internal/enginetest"
)

// TestGrant_OfADigestIsForThatModule: a module with another digest than those that
// the grant's file names does not start, and is not swapped in, in any way. Once the
// file names it, it is, and each revision has the rights of its own digest: also the
// one that is rolled back to.
func TestGrant_OfADigestIsForThatModule(t *testing.T) {
	w := newWalled(t)
	dir := t.TempDir()
	example, err := os.ReadFile(exampleWasm(t, "configmapgenerator"))
	if err != nil {
		t.Fatal(err)
	}
	var modules, digests []string
	for i, name := range []string{"a.wasm", "b.wasm"} {
		wasm := enginetest.Numbered(example, i)
		modules, digests = append(modules, filepath.Join(dir, name)), append(digests, host.DigestOf(wasm))
		replace(t, modules[i], wasm)
	}
	file := filepath.Join(dir, "grant.yaml")
	document := func(digest, capabilities string) string {
		return "apiVersion: wasmctl.dev/v1\nkind: Grant\ndigest: " + digest + "\ncapabilities:\n" + strings.ReplaceAll(capabilities, "NS", w.ns)
	}
	const all = exampleGrant + "- {resource: configmaps, verbs: [get, list, watch, create, patch], namespaces: [NS]}\n"
	replace(t, file, []byte(document(digests[0], labelsOnly)))
	refused := func(what string, code int, out string) {
		t.Helper()
		for _, want := range append(digests, "add this digest to the document", "run the module that is meant") {
			if code == exitOK || !strings.Contains(out, want) {
				t.Errorf("%s: exit code %d, and no %q: %s", what, code, want, out)
			}
		}
	}
	args := []string{"-n", w.ns, "--kubeconfig", w.cluster.Kubeconfig(), "--grant", file, "--probation", "0"}
	c := startWasmctl(t, append(args, modules[1], "--socket", "none")...)
	c.wantExit(exitDenied)
	refused("run", exitDenied, c.text())
	o := &rbacOptions{
		module: modules[1], output: "yaml", streams: streams{out: os.Stderr, err: os.Stderr},
		process: flags.Process{Kubeconfig: w.cluster.Kubeconfig()}, controller: flags.Controller{Rights: flags.Rights{GrantFile: file}},
	}
	err = runRBAC(t.Context(), o)
	if exitCode(err) != exitDenied {
		t.Fatal(err)
	}
	refused("rbac", exitDenied, err.Error())

	w.generate("a")
	socket := newSocket(t)
	c = startWasmctl(t, append(args, modules[0], "--socket", socket, "--allow-more-rights")...)
	c.wantLine("denied a request of the module", "data.content")
	for _, command := range [][]string{{"swap"}, {"swap", "--canary", "50%"}, {"shadow", "--for", "1s"}} {
		code, out := refusedSteer(t, command[0], socket, append(command[1:], "configmapgenerator", modules[1])...)
		refused(strings.Join(command, " "), code, out)
	}

	replace(t, file, []byte(document(digests[0], labelsOnly)+"---\n"+document(digests[1], all)))
	c.wantLine("grant changed")
	enginetest.Until(t, "the module that was live is again", func() bool { return c.count(`"msg":"reconciling"`) == 2 })
	steer(t, "swap", socket, "configmapgenerator", modules[1])
	enginetest.Until(t, "it has the rights of its digest", func() bool { return w.configMaps() == "a" })
	steer(t, "rollback", socket, "configmapgenerator")
	w.generate("b")
	c.wantLine("denied a request of the module", w.ns+"/b", "data.content")
	if got := w.configMaps(); got != "a" {
		t.Errorf("%s were written", got)
	}
	c.signal(syscall.SIGTERM)
	c.wantExit(exitOK)
}
