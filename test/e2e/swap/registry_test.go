// SPDX-License-Identifier: Apache-2.0

package swap_test

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/wasmctl/wasmctl/host/load"
	"github.com/wasmctl/wasmctl/host/oci"
	"github.com/wasmctl/wasmctl/host/oci/ocitest"
	"github.com/wasmctl/wasmctl/internal/enginetest"
	"github.com/wasmctl/wasmctl/test/e2e/internal/e2e"
)

// TestRegistry_FollowedAndRolledBack: a module is pushed and run. A new version of its
// tag is swapped in. One that does worse is rolled back and not tried again, and a later
// one is swapped in. A registry outage ends no process and prevents no start.
func TestRegistry_FollowedAndRolledBack(t *testing.T) {
	t.Parallel()
	ns, kubeconfig := e2e.NewConfigMaps(t)
	reg, env := e2e.RegistryOf(t)
	ref, file := "oci://"+reg.Host+"/team/greeter:1", filepath.Join(t.TempDir(), "m.wasm")
	push := func(module []byte) (pinned string) {
		t.Helper()
		e2e.Replace(t, file, module)
		code, out := e2e.Exec(t, env, "push", ref, file, "--insecure-registry", reg.Host)
		if code != e2e.ExitOK || !strings.HasPrefix(out, ref+"@sha256:") {
			t.Fatalf("%d: %s", code, out)
		}
		return strings.TrimSpace(out)
	}
	first := push(enginetest.Worse(enginetest.Good, 1))
	socket := e2e.NewSocket(t)
	args := []string{ref, "--insecure-registry", reg.Host, "--for", "cm", "-n", ns, "--socket", socket, "--kubeconfig", kubeconfig, "--cache-dir", t.TempDir()}
	c := e2e.RunEnv(t, env, append(args, "--follow", "1s", "--probation", "2s")...)
	c.WantLine(`"msg":"reconciled"`, `"object":"`+ns+`/o0"`, `"revision":1`)
	if st := e2e.StatusOf(t, socket); st.Name != "greeter" || st.Module != first {
		t.Errorf("%s: %s, want %s", st.Name, st.Module, first)
	}
	if out := e2e.Steer(t, "status", socket); !e2e.ContainsAll(out, []string{ref + "@sha256:", "registries without verified TLS: " + reg.Host}) {
		t.Errorf("%s", out)
	}

	good := enginetest.Worse(enginetest.Good, 2)
	push(good)
	c.WantLine(`"msg":"module swapped"`, "the tag names a new module", `"revision":2`)
	c.WantLine(`"msg":"probation passed"`, `"revision":2`)
	bad := push(enginetest.Worse(enginetest.Traps, 3))
	c.WantLine(`"msg":"module swapped"`, bad[strings.Index(bad, "sha256"):], `"revision":3`)
	enginetest.Until(t, "the one before is live again", func() bool { return e2e.StatusOf(t, socket).Digest == load.DigestOf(good) })
	polls := func(n int) {
		t.Helper()
		reg.Requests()
		enginetest.Until(t, "the tag is asked for again", func() bool {
			n -= len(reg.Requests())
			return n <= 0
		})
	}
	polls(6) // each twice: the first answer asks for the password
	if n := strings.Count(c.Text(), `"msg":"the tag names a new module"`); n != 2 {
		t.Errorf("%d modules were tried, want 2", n)
	}

	reg.Use(ocitest.Status(http.StatusServiceUnavailable, "UNAVAILABLE", "Retry-After", "11"))
	c.WantLine(`"msg":"cannot ask the registry for a new module; keeping the running one"`, "too many requests")
	if code, out := e2e.Exec(t, env, "inspect", ref, "--insecure-registry", reg.Host); code != e2e.ExitRegistry {
		t.Errorf("%d: %s", code, out)
	}
	reg.Use(ocitest.Basic("user", "secret"))
	push(enginetest.Worse(enginetest.Good, 4))
	c.WantLine(`"msg":"probation passed"`, `"revision":5`)

	c.Signal(syscall.SIGTERM)
	c.WantExit(e2e.ExitOK)
	reg.Use(ocitest.Status(http.StatusServiceUnavailable, "UNAVAILABLE", "Retry-After", "100"))
	c = e2e.RunEnv(t, env, args...)
	c.WantLine(`"msg":"the registry does not answer; using the last known digest of the tag"`)
	c.WantLine(`"msg":"reconciled"`, `"object":"`+ns+`/o0"`)
}

// TestRegistry_CommandsTakeReferences: references work in every place of a module file,
// and each kind of failure has its exit code.
func TestRegistry_CommandsTakeReferences(t *testing.T) {
	t.Parallel()
	reg, env := e2e.RegistryOf(t)
	const example = "configmapgenerator"
	ref := "oci://" + reg.Host + "/team/" + example + ":1.2.0"
	insecure := []string{"--insecure-registry", reg.Host}
	run := func(args ...string) (int, string) {
		t.Helper()
		return e2e.Exec(t, env, append(args, insecure...)...)
	}
	want := func(code int, text string) func(int, string) {
		return func(got int, out string) {
			t.Helper()
			if got != code || !strings.Contains(out, text) {
				t.Errorf("exit code %d, want %d, with %q: %s", got, code, text, out)
			}
		}
	}
	code, pinned := run("push", ref, e2e.Example(t, example))
	want(e2e.ExitOK, ref+"@sha256:")(code, pinned)
	pinned = strings.TrimSpace(pinned)
	again, second := run("push", ref, e2e.Example(t, example), "--format", "artifact")
	want(e2e.ExitOK, pinned)(again, second)

	dir := t.TempDir()
	out := filepath.Join(dir, "out.wasm")
	want(e2e.ExitOK, pinned)(run("pull", strings.Replace(ref, "1.2.0", "^1.1", 1), "-o", out))
	pulled, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	built, err := os.ReadFile(e2e.Example(t, example))
	if err != nil || load.DigestOf(pulled) != load.DigestOf(built) {
		t.Errorf("another module was pulled: %v", err)
	}
	want(e2e.ExitOK, load.DigestOf(built))(run("inspect", pinned))
	want(e2e.ExitOK, "capabilities")(run("grant", ref))
	want(e2e.ExitOK, "ClusterRole")(run("rbac", ref))
	want(e2e.ExitOK, "ok")(run("validate", ref, "--calls", "10"))
	file := filepath.Join(dir, "controllers.yaml")
	text := "apiVersion: wasmctl.dev/v1\nkind: Controllers\nprocess:\n  insecureRegistry: [\"" + reg.Host + "\"]\ncontrollers:\n- name: a\n  module: {image: \"" + strings.TrimPrefix(ref, "oci://") + "\", follow: 5m}\n  grant: {manifest: true}\n"
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	want(e2e.ExitOK, "1 controller")(e2e.Exec(t, env, "config", "check", file))
	want(e2e.ExitOK, "image: "+strings.TrimPrefix(ref, "oci://"))(e2e.Exec(t, env, "manifests", "-f", file))

	missing := "oci://" + reg.Host + "/team/none:1"
	want(e2e.ExitModule, "check repository, tag and digest")(run("inspect", missing))
	want(e2e.ExitDenied, "docker login "+reg.Host)(run("inspect", "oci://"+reg.Host+"/other/none:1"))
	want(e2e.ExitUsage, "want oci://HOST/REPOSITORY:TAG")(run("inspect", "oci://none"))
	want(e2e.ExitRegistry, "certificate")(e2e.Exec(t, env, "inspect", ref))
	want(e2e.ExitUsage, "always names the same module")(run("run", pinned, "--follow", "5m"))
	want(e2e.ExitUsage, "is a file")(run("run", out, "--follow", "5m"))
	want(e2e.ExitUsage, "at least 1s")(run("run", ref, "--follow", "5ms"))
	reg.Use(ocitest.Basic("user", "secret"), ocitest.On(http.MethodPut, "/manifests/", ocitest.Status(http.StatusBadRequest, "MANIFEST_INVALID")))
	want(e2e.ExitModule, "--format image")(run("push", ref, e2e.Example(t, example)))
	if !strings.Contains(pinned, oci.Scheme) {
		t.Error(pinned)
	}
}
