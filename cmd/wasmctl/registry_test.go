package main

import (
	"encoding/base64"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/wasmctl/wasmctl/host"
	"github.com/wasmctl/wasmctl/host/oci"
	"github.com/wasmctl/wasmctl/host/oci/ocitest"
	"github.com/wasmctl/wasmctl/internal/enginetest"
)

// registryOf starts a registry that wants a password, and returns the environment of
// a process that has logged in to it.
func registryOf(t *testing.T) (reg *ocitest.Registry, env []string) {
	t.Helper()
	reg = ocitest.New(t, ocitest.Basic("user", "secret"))
	dir := t.TempDir()
	config := `{"auths": {"` + reg.Host + `/team": {"auth": "` + base64.StdEncoding.EncodeToString([]byte("user:secret")) + `"}}}`
	if err := os.WriteFile(filepath.Join(dir, "config.json"), []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	return reg, append(os.Environ(), "DOCKER_CONFIG="+dir, "XDG_CACHE_HOME="+dir)
}

// inEnv runs a command, and returns its exit code and all that it prints.
func inEnv(t *testing.T, env []string, args ...string) (code int, out string) {
	t.Helper()
	cmd := exec.Command("wasmctl", args...)
	cmd.Env = env
	b, err := cmd.CombinedOutput()
	if err != nil && cmd.ProcessState == nil {
		t.Fatal(err)
	}
	return cmd.ProcessState.ExitCode(), string(b)
}

// TestRegistry_FollowedAndRolledBack: a module is pushed and run; a new version of
// its tag is swapped in; one that does worse is rolled back, and not tried again; a
// later one is. Nothing ends while the registry is away, nor for a start then.
func TestRegistry_FollowedAndRolledBack(t *testing.T) {
	t.Parallel()
	ns, kubeconfig := newConfigMaps(t)
	reg, env := registryOf(t)
	ref, file := "oci://"+reg.Host+"/team/greeter:1", filepath.Join(t.TempDir(), "m.wasm")
	push := func(module []byte) (pinned string) {
		t.Helper()
		replace(t, file, module)
		code, out := inEnv(t, env, "push", ref, file, "--insecure-registry", reg.Host)
		if code != exitOK || !strings.HasPrefix(out, ref+"@sha256:") {
			t.Fatalf("%d: %s", code, out)
		}
		return strings.TrimSpace(out)
	}
	first := push(enginetest.Worse(enginetest.Good, 1))
	socket := newSocket(t)
	args := []string{ref, "--insecure-registry", reg.Host, "--for", "cm", "-n", ns, "--socket", socket, "--kubeconfig", kubeconfig, "--cache-dir", t.TempDir()}
	c := startWasmctlEnv(t, env, append(args, "--follow", "1s", "--probation", "2s")...)
	c.wantLine(`"msg":"reconciled"`, `"object":"`+ns+`/o0"`, `"revision":1`)
	if st := statusOf(t, socket); st.Name != "greeter" || st.Module != first {
		t.Errorf("%s: %s, want %s", st.Name, st.Module, first)
	}
	if out := steer(t, "status", socket); !containsAll(out, []string{"greeter runs " + ref + "@sha256:", "registries without verified TLS: " + reg.Host}) {
		t.Errorf("%s", out)
	}

	good := enginetest.Worse(enginetest.Good, 2)
	push(good)
	c.wantLine(`"msg":"module swapped"`, "the tag names a new module", `"revision":2`)
	c.wantLine(`"msg":"probation passed"`, `"revision":2`)
	bad := push(enginetest.Worse(enginetest.Traps, 3))
	c.wantLine(`"msg":"module swapped"`, bad[strings.Index(bad, "sha256"):], `"revision":3`)
	enginetest.Until(t, "the one before is live again", func() bool { return statusOf(t, socket).Digest == host.DigestOf(good) })
	polls := func(n int) {
		t.Helper()
		reg.Requests()
		enginetest.Until(t, "the tag is asked for again", func() bool {
			n -= len(reg.Requests())
			return n <= 0
		})
	}
	polls(6) // each twice: the first answer asks for the password
	if n := strings.Count(c.text(), `"msg":"the tag names a new module"`); n != 2 {
		t.Errorf("%d modules were tried, want 2", n)
	}

	reg.Use(ocitest.Status(http.StatusServiceUnavailable, "UNAVAILABLE", "Retry-After", "11"))
	c.wantLine(`"msg":"cannot ask the registry for a new module; keeping the running one"`, "too many requests")
	if code, out := inEnv(t, env, "inspect", ref, "--insecure-registry", reg.Host); code != exitRegistry {
		t.Errorf("%d: %s", code, out)
	}
	reg.Use(ocitest.Basic("user", "secret"))
	push(enginetest.Worse(enginetest.Good, 4))
	c.wantLine(`"msg":"probation passed"`, `"revision":5`)

	c.signal(syscall.SIGTERM)
	c.wantExit(exitOK)
	reg.Use(ocitest.Status(http.StatusServiceUnavailable, "UNAVAILABLE", "Retry-After", "100"))
	c = startWasmctlEnv(t, env, args...)
	c.wantLine(`"msg":"the registry does not answer; using what the tag meant last"`)
	c.wantLine(`"msg":"reconciled"`, `"object":"`+ns+`/o0"`)
}

// TestRegistry_CommandsTakeReferences: wherever a module's path is taken, and what
// each kind of failure is for a script.
func TestRegistry_CommandsTakeReferences(t *testing.T) {
	t.Parallel()
	reg, env := registryOf(t)
	const example = "configmapgenerator"
	ref := "oci://" + reg.Host + "/team/" + example + ":1.2.0"
	insecure := []string{"--insecure-registry", reg.Host}
	run := func(args ...string) (int, string) {
		t.Helper()
		return inEnv(t, env, append(args, insecure...)...)
	}
	want := func(code int, text string) func(int, string) {
		return func(got int, out string) {
			t.Helper()
			if got != code || !strings.Contains(out, text) {
				t.Errorf("exit code %d, want %d, with %q: %s", got, code, text, out)
			}
		}
	}
	code, pinned := run("push", ref, exampleWasm(t, example))
	want(exitOK, ref+"@sha256:")(code, pinned)
	pinned = strings.TrimSpace(pinned)
	again, second := run("push", ref, exampleWasm(t, example), "--format", "artifact")
	want(exitOK, pinned)(again, second)

	dir := t.TempDir()
	out := filepath.Join(dir, "out.wasm")
	want(exitOK, pinned)(run("pull", strings.Replace(ref, "1.2.0", "^1.1", 1), "-o", out))
	pulled, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	built, err := os.ReadFile(exampleWasm(t, example))
	if err != nil || host.DigestOf(pulled) != host.DigestOf(built) {
		t.Errorf("another module was pulled: %v", err)
	}
	want(exitOK, host.DigestOf(built))(run("inspect", pinned))
	want(exitOK, "capabilities")(run("grant", ref))
	want(exitOK, "ClusterRole")(run("rbac", ref))
	want(exitOK, "ok")(run("validate", ref, "--calls", "10"))
	file := filepath.Join(dir, "controllers.yaml")
	text := "apiVersion: wasmctl.dev/v1\nkind: Controllers\nprocess:\n  insecureRegistry: [\"" + reg.Host + "\"]\ncontrollers:\n- name: a\n  module: " + ref + "\n  follow: 5m\n  grantManifest: true\n"
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	want(exitOK, "1 controller")(inEnv(t, env, "config", "check", file))
	want(exitOK, "module: "+ref)(inEnv(t, env, "manifests", "-f", file))

	missing := "oci://" + reg.Host + "/team/none:1"
	want(exitModule, "check repository, tag and digest")(run("inspect", missing))
	want(exitDenied, "docker login "+reg.Host)(run("inspect", "oci://"+reg.Host+"/other/none:1"))
	want(exitUsage, "want oci://HOST/REPOSITORY:TAG")(run("inspect", "oci://none"))
	want(exitRegistry, "certificate")(inEnv(t, env, "inspect", ref))
	want(exitUsage, "always names the same module")(run("run", pinned, "--follow", "5m"))
	want(exitUsage, "is a file")(run("run", out, "--follow", "5m"))
	want(exitUsage, "at least 1s")(run("run", ref, "--follow", "5ms"))
	reg.Use(ocitest.Basic("user", "secret"), ocitest.On(http.MethodPut, "/manifests/", ocitest.Status(http.StatusBadRequest, "MANIFEST_INVALID")))
	want(exitModule, "--format image")(run("push", ref, exampleWasm(t, example)))
	if !strings.Contains(pinned, oci.Scheme) {
		t.Error(pinned)
	}
}
