// SPDX-License-Identifier: Apache-2.0

package run_test

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/host/load"
	"github.com/wasmctl/wasmctl/internal/enginetest"
	"github.com/wasmctl/wasmctl/runtime/admin"
	"github.com/wasmctl/wasmctl/test/e2e/internal/e2e"
)

// asking returns the example with other capabilities in its manifest.
func asking(t *testing.T, capabilities ...abi.Capability) []byte {
	t.Helper()
	wasm, err := os.ReadFile(e2e.Example(t, "configmapgenerator"))
	if err != nil {
		t.Fatal(err)
	}
	man := *load.Inspect(t.Context(), wasm).Manifest
	man.Capabilities = capabilities
	if wasm, err = load.WithManifest(wasm, &man); err != nil {
		t.Fatal(err)
	}
	return wasm
}

func onConfigMaps(verbs ...string) abi.Capability {
	return abi.Capability{Resource: "configmaps", Verbs: verbs}
}

// writeGrant replaces a grant file; NS in it stands for the namespace.
func (w *walled) writeGrant(path, capabilities string) {
	w.t.Helper()
	e2e.Replace(w.t, path, []byte("apiVersion: wasmctl.dev/v1\nkind: Grant\ncapabilities:\n"+strings.ReplaceAll(capabilities, "NS", w.ns)))
}

const labelsOnly = exampleGrant + "- {resource: configmaps, verbs: [get, list, watch, create, patch], namespaces: [NS], fields: [metadata.labels]}\n"

// TestGrant_BoundsASwapThatAsksForMore: a module that requests more than the grant gives
// is not swapped in, and the error names the missing rights. With --allow-more-rights it
// is, within both: a write beyond them is denied, with the missing rule.
func TestGrant_BoundsASwapThatAsksForMore(t *testing.T) {
	w := newWalled(t)
	dir := t.TempDir()
	module, more, file := filepath.Join(dir, "m.wasm"), filepath.Join(dir, "more.wasm"), filepath.Join(dir, "grant.yaml")
	e2e.Replace(t, module, asking(t, onConfigMaps("get")))
	e2e.Replace(t, more, asking(t, onConfigMaps("get", "create", "patch"), abi.Capability{Resource: "secrets", Verbs: []string{"get"}}))
	w.writeGrant(file, labelsOnly)
	w.generate("a")
	socket := e2e.NewSocket(t)
	c := e2e.Run(t, module, "-n", w.ns, "--kubeconfig", w.cluster.Kubeconfig(), "--socket", socket, "--grant", file, "--probation", "0")
	if line := c.WantLine("denied a request of the module"); !strings.Contains(line, "its manifest") {
		t.Errorf("the manifest lacks the right: %s", line)
	}
	code, out := e2e.Refused(t, "swap", socket, "configmapgenerator", more)
	for _, want := range []string{`"resource":"secrets","verbs":["get"],"namespaces":["` + w.ns + `"]}`, `"resource":"configmaps","verbs":["create","patch"],"namespaces":["` + w.ns + `"]}`, "allowMoreRights"} {
		if code == e2e.ExitOK || !strings.Contains(out, want) {
			t.Errorf("exit code %d, and no %q: %s", code, want, out)
		}
	}
	c.Signal(syscall.SIGTERM)
	c.WantExit(e2e.ExitOK)

	c = e2e.Run(t, module, "-n", w.ns, "--kubeconfig", w.cluster.Kubeconfig(), "--socket", socket, "--grant", file, "--probation", "0", "--allow-more-rights")
	c.WantLine("denied a request of the module", "its manifest")
	e2e.Steer(t, "swap", socket, "configmapgenerator", more)
	c.WantLine("denied a request of the module", "data.content", "the grant of the operator (--grant; for a Reconciler, spec.grant)")
	if out := e2e.Steer(t, "status", socket); !strings.Contains(out, `"verbs":["patch"],"namespaces":["`+w.ns+`"],"fields":["data.content`) {
		t.Errorf("status does not say what is missing:\n%s", out)
	}
	c.Signal(syscall.SIGTERM)
	c.WantExit(e2e.ExitOK)
	if got := w.configMaps(); got != "" {
		t.Errorf("%s was written", got)
	}
}

// TestGrant_HoldsFromItsChangeOn: a changed grant file takes effect without a restart.
// Its new rights are used, an invalid file changes nothing, and a controller that loses
// its watch stops until the right is back.
func TestGrant_HoldsFromItsChangeOn(t *testing.T) {
	t.Parallel()
	w := newWalled(t)
	file, socket := filepath.Join(t.TempDir(), "grant.yaml"), e2e.NewSocket(t)
	const all = exampleGrant + "- {resource: configmaps, verbs: [get, list, watch, create, patch], namespaces: [NS]}\n"
	w.writeGrant(file, labelsOnly)
	w.generate("a")
	c := e2e.Run(t, e2e.Example(t, "configmapgenerator"), "-n", w.ns, "--kubeconfig", w.cluster.Kubeconfig(), "--socket", socket, "--grant", file)
	c.WantLine("denied a request of the module", "data.content")
	w.writeGrant(file, all)
	c.WantLine("grant changed")
	enginetest.Until(t, "what it grants now is done", func() bool { return w.configMaps() == "a" })
	w.writeGrant(file, "- {resource: configmaps, verbs: [gte]}\n")
	c.WantLine("cannot use the new grant", "did you mean get?")
	w.generate("b")
	enginetest.Until(t, "the rights are as they were", func() bool { return w.configMaps() == "a,b" })
	w.writeGrant(file, exampleGrant)
	c.WantLine("controller failed to start", "list, watch configmaps")
	if out := e2e.Steer(t, "status", socket); !strings.Contains(out, "configmapgenerator") || !strings.Contains(out, "list, watch configmaps") {
		t.Errorf("status does not say why it does not run:\n%s", out)
	}
	w.generate("c")
	w.writeGrant(file, all)
	enginetest.Until(t, "it runs again", func() bool { return w.configMaps() == "a,b,c" })
	c.Signal(syscall.SIGTERM)
	c.WantExit(e2e.ExitOK)
	if strings.Contains(c.Text(), "panic") || strings.Contains(c.Text(), "did not stop cleanly") {
		t.Errorf("it did not stop in order:\n%s", c.Text())
	}
}

// TestGrant_ChangeKeepsTheLiveModule: a controller that restarts after a change of its
// grant continues with the live module: the one in the controllers file, also if its
// file was replaced by a refused one, or the one of wasmctl swap. Status names its
// source.
func TestGrant_ChangeKeepsTheLiveModule(t *testing.T) {
	t.Parallel()
	w := newWalled(t)
	dir := t.TempDir()
	example, err := os.ReadFile(e2e.Example(t, "configmapgenerator"))
	if err != nil {
		t.Fatal(err)
	}
	path := func(name string) string { return filepath.Join(dir, name) }
	for i, name := range []string{"a.wasm", "b.wasm", "c.wasm"} {
		e2e.Replace(t, path(name), enginetest.Numbered(example, i))
	}
	name := func(module string) {
		e2e.Replace(t, path("controllers.yaml"), []byte("apiVersion: wasmctl.dev/v1\nkind: Controllers\ncontrollers:\n- {name: web, module: "+module+", namespaces: "+w.ns+", grantFile: grant.yaml, rollout: {probation: 0s}}\n"))
	}
	grants := []string{"", ", update", ", delete", ", update, delete"}
	grant := func(i int) {
		w.writeGrant(path("grant.yaml"), exampleGrant+"- {resource: configmaps, verbs: [get, list, watch, create, patch"+grants[i]+"], namespaces: [NS]}\n")
	}
	name("a.wasm")
	grant(0)
	socket := e2e.NewSocket(t)
	c := e2e.Run(t, "-f", path("controllers.yaml"), "--kubeconfig", w.cluster.Kubeconfig(), "--socket", socket)
	c.WantLine(`"msg":"reconciling"`, `"controller":"web"`)
	runs := func(n int, source string) {
		t.Helper()
		enginetest.Until(t, "module "+source+" runs", func() bool {
			got := e2e.ControllersOf(t, socket)["web"]
			return got.Phase == admin.PhaseRunning && got.Digest == load.DigestOf(enginetest.Numbered(example, n)) && got.Module == source
		})
	}
	restarts := func(n, times int) {
		t.Helper()
		digest := `"digest":"` + load.DigestOf(enginetest.Numbered(example, n))[:len("sha256:")+12] + `"`
		enginetest.Until(t, "it starts with "+digest, func() bool {
			return c.Count(`"msg":"module loaded"`) == 1+times && c.Count(`"msg":"module loaded"`, digest) > 0
		})
	}
	runs(0, path("a.wasm"))
	name("b.wasm")
	c.WantLine(`"msg":"module swapped"`, `"controller":"web"`)
	runs(1, path("b.wasm"))
	grant(1)
	restarts(1, 1)
	runs(1, path("b.wasm"))
	e2e.Replace(t, path("b.wasm"), []byte("no module"))
	c.WantLine(`"msg":"module not swapped in; keeping the running one"`)
	grant(2)
	restarts(1, 2)
	runs(1, path("b.wasm"))

	e2e.Steer(t, "swap", socket, "web", path("c.wasm"))
	runs(2, path("c.wasm"))
	grant(3)
	restarts(2, 3)
	runs(2, path("c.wasm"))
	if n := c.Count(`"msg":"module loaded"`); n != 4 {
		t.Errorf("modules were loaded %d times, want 4: at the start and after each grant", n)
	}
	w.generate("a")
	enginetest.Until(t, "it does its work", func() bool { return w.configMaps() == "a" })
	c.Signal(syscall.SIGTERM)
	c.WantExit(e2e.ExitOK)
}
