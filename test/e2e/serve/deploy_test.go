package serve_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/wasmctl/wasmctl/devcluster/devclustertest"
	"github.com/wasmctl/wasmctl/host/oci/ocitest"
	"github.com/wasmctl/wasmctl/test/e2e/internal/e2e"
)

// TestProject_DeploysByMake: make deploy of a new project pushes the module to a
// registry, and wasmctl serve runs it. After a change, it runs the other one.
func TestProject_DeploysByMake(t *testing.T) {
	t.Parallel()
	for _, tool := range []string{"kubectl", "make"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skipf("SKIPPED: %s is not on PATH: make deploy of a new project is not tested", tool)
		}
	}
	tenant, reg := newTenant(t), ocitest.NewPlain(t)
	dir := filepath.Join(t.TempDir(), "greeter")
	e2e.Output(t, "new", dir, "--lang", "go", "--kind", "Deployed.project.wasmctl.dev/v1", "--sdk", "../../..")
	spec := filepath.Join(dir, "reconciler.yaml")
	e2e.Replace(t, spec, []byte(string(e2e.ReadFile(t, spec))+"  rollout: {probation: 1s}\n"))
	c := startServe(tenant, "--insecure-registry", reg.Host)
	run := func(command ...string) {
		t.Helper()
		cmd := exec.Command(command[0], command[1:]...)
		cmd.Dir, cmd.Env = dir, append(os.Environ(), "KUBECONFIG="+devclustertest.Shared(t).Kubeconfig())
		cmd.Stdout, cmd.Stderr = t.Output(), t.Output()
		if err := cmd.Run(); err != nil {
			t.Fatalf("%q: %v", command, err)
		}
	}
	deploy := []string{"make", "deploy", "IMAGE=" + reg.Host + "/team/greeter:1", "NAMESPACE=" + tenant.ns, "PUSH_FLAGS=--insecure-registry " + reg.Host}
	run(deploy...)
	sample := filepath.Join(dir, "sample.yaml")
	e2e.Replace(t, sample, []byte(strings.ReplaceAll(string(e2e.ReadFile(t, sample)), "namespace: default", "namespace: "+tenant.ns)))
	run("kubectl", "apply", "-f", "sample.yaml") // probation needs runs
	first := tenant.ready("greeter", "True", "Succeeded").Status.Live
	code := filepath.Join(dir, "reconcile.go")
	e2e.Replace(t, code, []byte(strings.ReplaceAll(string(e2e.ReadFile(t, code)), "the ConfigMap has the text", "the ConfigMap has this text")))
	run(deploy...)
	second := tenant.ready("greeter", "True", "Succeeded").Status.Live
	if first.Version != "1" || second.Version != "1" || first.Digest == second.Digest {
		t.Errorf("%+v, then %+v", first, second)
	}
	run("kubectl", "-n", tenant.ns, "delete", "reconciler", "greeter")
	c.Signal(syscall.SIGTERM)
	c.WantExit(e2e.ExitOK)
}
