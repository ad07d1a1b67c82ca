// SPDX-License-Identifier: Apache-2.0

package swap_test

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

// TestVerifyKey_OnlyWhatIsSignedRuns: through the binary, a module of a registry without
// a signature of the key is not started, swapped in or shown. A signed one is, and
// status names the signer. A grant for a signer applies to all of its modules. A module that was
// saved to a file, and loaded from there into another repository, is still signed.
func TestVerifyKey_OnlyWhatIsSignedRuns(t *testing.T) {
	ns, kubeconfig := e2e.NewConfigMaps(t)
	reg, env := e2e.RegistryOf(t)
	dir := t.TempDir()
	env = append(env, "COSIGN_PASSWORD=x")
	insecure := []string{"--insecure-registry", reg.Host}
	run := func(want int, args ...string) string {
		t.Helper()
		code, out := e2e.Exec(t, env, args...)
		if code != want {
			t.Fatalf("%q: %d: %s", args, code, out)
		}
		return out
	}
	prefix := filepath.Join(dir, "release")
	signer := strings.TrimSpace(run(e2e.ExitOK, "sign", "--generate-key", prefix)[len(prefix+".key\n"+prefix+".pub: "):])
	var refs, digests []string
	for i, name := range []string{"a", "b"} {
		file := filepath.Join(dir, name+".wasm")
		wasm := enginetest.Worse(enginetest.Good, i+1)
		e2e.Replace(t, file, wasm)
		refs, digests = append(refs, "oci://"+reg.Host+"/team/"+name+":1"), append(digests, load.DigestOf(wasm))
		run(e2e.ExitOK, append([]string{"push", refs[i], file}, insecure...)...)
	}
	verify := append([]string{"--verify-key", prefix + ".pub"}, insecure...)
	sign := func(ref string) {
		t.Helper()
		if out := run(e2e.ExitOK, append([]string{"sign", ref, "--key", prefix + ".key"}, insecure...)...); !strings.Contains(out, "signed by "+signer) {
			t.Error(out)
		}
	}
	grant := filepath.Join(dir, "grant.yaml")
	e2e.Replace(t, grant, []byte("apiVersion: wasmctl.dev/v1\nkind: Grant\nsigners: "+signer+"\ncapabilities:\n- {resource: configmaps, verbs: [get, list, watch, patch]}\n"))
	args := append([]string{"--for", "cm", "-n", ns, "--kubeconfig", kubeconfig, "--cache-dir", t.TempDir(), "--probation", "0", "--grant", grant}, verify...)
	for what, want := range map[string]string{
		run(e2e.ExitModule, append([]string{"inspect", refs[0]}, verify...)...):                             "no signature of it was found",
		run(e2e.ExitModule, append([]string{"pull", refs[0], "-o", filepath.Join(dir, "x")}, verify...)...): "no signature of it was found",
		run(e2e.ExitModule, append([]string{"run", refs[0]}, args...)...):                                   "no signature of it was found",
		run(e2e.ExitUsage, append([]string{"run", filepath.Join(dir, "a.wasm")}, args...)...):               "a file has no signature",
		run(e2e.ExitUsage, append([]string{"inspect", refs[0]}, "--verify-key", grant)...):                  "is not a PEM file",
	} {
		if !strings.Contains(what, want) {
			t.Errorf("no %q in %s", want, what)
		}
	}
	if _, err := os.Stat(filepath.Join(dir, "x")); err == nil {
		t.Error("what is not signed was written")
	}
	sign(refs[0])
	if out := run(e2e.ExitOK, append([]string{"inspect", refs[0]}, verify...)...); !strings.Contains(out, signer) {
		t.Error(out)
	}
	if out := run(e2e.ExitOK, append([]string{"pull", refs[0], "-o", filepath.Join(dir, "x")}, verify...)...); !strings.Contains(out, "signed by "+signer) {
		t.Error(out)
	}
	save := func(ref string) (archive string) {
		t.Helper()
		archive = filepath.Join(t.TempDir(), "saved.tar")
		if out := run(e2e.ExitOK, append([]string{"save", ref, "-o", archive}, verify...)...); !strings.Contains(out, "with 1 attached artifact\nsigned by "+signer) {
			t.Error(out)
		}
		return archive
	}
	archive, loaded := save(refs[0]), "oci://"+reg.Host+"/team/mirror/a:1"
	run(e2e.ExitOK, append([]string{"load", archive, loaded}, insecure...)...)
	for _, module := range []string{archive, loaded} {
		if out := run(e2e.ExitOK, append([]string{"verify", module}, verify...)...); !strings.Contains(out, "module "+digests[0]+"\nsigned by "+signer) {
			t.Error(out)
		}
	}
	socket := e2e.NewSocket(t)
	c := e2e.RunEnv(t, env, append(append([]string{loaded}, args...), "--socket", socket)...)
	c.WantLine(`"msg":"reconciled"`, `"object":"`+ns+`/o0"`)
	if st := e2e.StatusOf(t, socket); len(st.Signers) != 1 || st.Signers[0] != signer {
		t.Errorf("%+v", st)
	}
	for _, tt := range []struct {
		with []string
		exit int
	}{{verify, e2e.ExitModule}, {insecure, e2e.ExitDenied}} { // if the command does not have the key, the process verifies the module
		for _, command := range [][]string{{"swap"}, {"swap", "--canary", "50%"}, {"shadow", "--for", "1s"}} {
			out := run(tt.exit, append(append(append([]string{command[0], "--socket", socket}, command[1:]...), "a", refs[1]), tt.with...)...)
			if !strings.Contains(out, "no signature of it") && !strings.Contains(out, "module.verify: the module sha256:") {
				t.Error(out)
			}
		}
	}
	sign(refs[1])
	run(e2e.ExitOK, append([]string{"swap", "--socket", socket, "a", save(refs[1])}, verify...)...)
	enginetest.Until(t, "it is live, with its signer", func() bool {
		st := e2e.StatusOf(t, socket)
		return st.Digest == digests[1] && len(st.Signers) == 1 && st.Signers[0] == signer
	})
	c.Signal(syscall.SIGTERM)
	c.WantExit(e2e.ExitOK)
}
