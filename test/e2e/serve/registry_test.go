// SPDX-License-Identifier: Apache-2.0

package serve_test

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/wasmctl/wasmctl/api/v1alpha1"
	"github.com/wasmctl/wasmctl/host/load"
	"github.com/wasmctl/wasmctl/host/oci/ocitest"
	"github.com/wasmctl/wasmctl/internal/enginetest"
	"github.com/wasmctl/wasmctl/test/e2e/internal/e2e"
)

// mayGet allows the default service account to get one Secret.
func (t *tenant) mayGet(secret string) {
	t.Helper()
	role, err := t.client.RbacV1().Roles(t.ns).Get(t.Context(), "module", metav1.GetOptions{})
	t.must(err)
	rule := role.Rules[0]
	rule.Resources, rule.Verbs, rule.ResourceNames = []string{"secrets"}, []string{"get"}, []string{secret}
	role.Rules = append(role.Rules, rule)
	_, err = t.client.RbacV1().Roles(t.ns).Update(t.Context(), role, metav1.UpdateOptions{})
	t.must(err)
}

// TestServe_RunsModulesOfARegistry: with the pull secret of the namespace, by the digest
// of the tag, and only if the key has signed it. A followed tag delivers its next
// module.
func TestServe_RunsModulesOfARegistry(t *testing.T) {
	t.Parallel()
	tenant := newTenant(t)
	reg, env := e2e.RegistryOf(t)
	dir := t.TempDir()
	env = append(env, "COSIGN_PASSWORD=secret")
	file, key := filepath.Join(dir, "m.wasm"), filepath.Join(dir, "signer")
	if code, out := e2e.Exec(t, env, "sign", "--generate-key", key); code != e2e.ExitOK {
		t.Fatal(out)
	}
	public, err := os.ReadFile(key + ".pub")
	tenant.must(err)
	push := func(tag string, module []byte, sign bool) {
		t.Helper()
		e2e.Replace(t, file, module)
		ref := "oci://" + reg.Host + "/team/greeter:" + tag
		if code, out := e2e.Exec(t, env, "push", ref, file, "--insecure-registry", reg.Host); code != e2e.ExitOK {
			t.Fatal(out)
		}
		if !sign {
			return
		}
		if code, out := e2e.Exec(t, env, "sign", ref, "--key", key+".key", "--insecure-registry", reg.Host); code != e2e.ExitOK {
			t.Fatal(out)
		}
	}
	one, two, three := enginetest.Worse(enginetest.Good, 1), enginetest.Worse(enginetest.Good, 2), enginetest.Worse(enginetest.Good, 3)
	push("1.0.0", one, true)
	config, err := os.ReadFile(filepath.Join(envValue(env, "DOCKER_CONFIG"), "config.json"))
	tenant.must(err)
	_, err = tenant.client.CoreV1().Secrets(tenant.ns).Create(t.Context(), &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: "pull"}, Type: corev1.SecretTypeDockerConfigJson, Data: map[string][]byte{corev1.DockerConfigJsonKey: config},
	}, metav1.CreateOptions{})
	tenant.must(err)
	image := reg.Host + "/team/greeter:"
	tenant.create("greeter", map[string]any{
		"module": map[string]any{"image": image + "1.0.0", "verify": map[string]any{"keys": []any{string(public)}}},
		"for":    map[string]any{"apiVersion": "v1", "kind": "ConfigMap"}, "rollout": map[string]any{"probation": "1s"},
	})
	c := startServe(tenant, "--insecure-registry", reg.Host, "--min-follow", "1s")
	if r := tenant.ready("greeter", "False", "Unauthorized"); meta.FindStatusCondition(r.Status.Conditions, v1alpha1.ModuleFetched) == nil {
		t.Errorf("%+v", r.Status)
	}
	tenant.patch("greeter", map[string]any{"module": map[string]any{"pullSecrets": []any{map[string]any{"name": "pull"}}}})
	tenant.ready("greeter", "False", "PullSecret") // the service account cannot get it
	tenant.mayGet("pull")
	r := tenant.ready("greeter", "True", "Succeeded")
	if l := r.Status.Live; l.Digest != load.DigestOf(one) || l.Version != "1.0.0" || !strings.Contains(l.Image, "/team/greeter@sha256:") || !meta.IsStatusConditionTrue(r.Status.Conditions, v1alpha1.ModuleVerified) {
		t.Errorf("%+v", r.Status)
	}

	if m := meta.FindStatusCondition(r.Status.Conditions, v1alpha1.ModuleFetched).Message; !strings.Contains(m, "without verified TLS of "+reg.Host) {
		t.Errorf("%q", m)
	}
	push("1.1.0", two, false)
	tenant.patch("greeter", map[string]any{"module": map[string]any{"image": image + "1.1.0"}})
	r = tenant.ready("greeter", "False", "SignatureRefused")
	if r.Status.Live.Digest != load.DigestOf(one) || meta.IsStatusConditionTrue(r.Status.Conditions, v1alpha1.ModuleVerified) {
		t.Errorf("%+v", r.Status)
	}
	push("1.2.0", two, true)
	tenant.patch("greeter", map[string]any{"module": map[string]any{"image": image + "^1.0", "follow": "1s"}})
	r = tenant.ready("greeter", "True", "Succeeded")
	if l := r.Status.Live; l.Digest != load.DigestOf(two) || l.Version != "1.2.0" {
		t.Errorf("%+v", r.Status)
	}
	push("1.3.0", three, true)
	enginetest.Until(t, "the new version is live", func() bool {
		l := tenant.get("greeter").Status.Live
		return l.Digest == load.DigestOf(three) && l.Version == "1.3.0"
	})
	c.Signal(syscall.SIGTERM)
	c.WantExit(e2e.ExitOK)
}

// TestServe_TriesAnotherImageFirst: another image in the spec runs as a canary, then on probation. A worse one is rolled back, and stays
// refused until the spec names another one. The history of the process has the tags.
func TestServe_TriesAnotherImageFirst(t *testing.T) {
	t.Parallel()
	tenant, reg := newTenant(t), ocitest.NewPlain(t)
	good, better, bad := enginetest.Worse(enginetest.Good, 1), enginetest.Worse(enginetest.Good, 2), enginetest.Worse(enginetest.Traps, 3)
	first, next, worse := tenant.pushed(reg, "web:1", good), tenant.pushed(reg, "web:2", better), tenant.pushed(reg, "web:3", bad)
	tenant.create("web", map[string]any{
		"module": first, "for": map[string]any{"apiVersion": "v1", "kind": "ConfigMap"},
		"rollout": map[string]any{"probation": "1s", "canary": map[string]any{"namespaces": []any{tenant.ns}, "time": "1h"}},
	})
	socket := e2e.NewSocket(t)
	c := startServe(tenant, "--insecure-registry", reg.Host, "--socket", socket)
	tenant.ready("web", "True", "Succeeded")
	tenant.patch("web", map[string]any{"module": next})
	r := tenant.ready("web", "False", "Canary")
	if k := r.Status.Candidate; r.Status.Live.Version != "1" || k == nil || k.Version != "2" {
		t.Errorf("%+v", r.Status)
	}
	e2e.Steer(t, "promote", socket, tenant.ns+".web")
	tenant.touch("o0") // the probation begins with a run
	if r = tenant.ready("web", "True", "Succeeded"); r.Status.Live.Version != "2" || r.Status.Live.Digest != load.DigestOf(better) {
		t.Errorf("%+v", r.Status)
	}
	tenant.patch("web", map[string]any{"module": worse})
	if r = tenant.ready("web", "False", "RolledBack"); r.Status.Live.Version != "2" || r.Status.Refused == nil || r.Status.Refused.Digest != load.DigestOf(bad) {
		t.Errorf("%+v", r.Status)
	}
	tenant.patch("web", map[string]any{"module": next})
	tenant.ready("web", "True", "Succeeded")
	if out := e2e.Steer(t, "history", socket, tenant.ns+".web"); !e2e.ContainsAll(out, []string{"/web:1", "/web:2", "/web:3"}) {
		t.Errorf("history:\n%s", out)
	}
	c.Signal(syscall.SIGTERM)
	c.WantExit(e2e.ExitOK)
}

// TestServe_WritesNoStatusWhileQuiet: neither checks of an unchanged tag nor runs of
// objects write the status of a Reconciler that is done.
func TestServe_WritesNoStatusWhileQuiet(t *testing.T) {
	t.Parallel()
	tenant, reg := newTenant(t), ocitest.NewPlain(t)
	image := tenant.pushed(reg, "quiet:1", enginetest.Worse(enginetest.Good, 1))
	tenant.create("quiet", map[string]any{
		"module": withAll(image, map[string]any{"follow": "1s"}), "for": map[string]any{"apiVersion": "v1", "kind": "ConfigMap"}, "rollout": map[string]any{"probation": "1s"},
	})
	c := startServe(tenant, "--insecure-registry", reg.Host, "--min-follow", "1s")
	looks := func(n int) {
		t.Helper()
		reg.Requests()
		enginetest.Until(t, "the tag is looked at again", func() bool {
			n -= len(reg.Requests())
			return n <= 0
		})
	}
	tenant.ready("quiet", "True", "Succeeded")
	looks(1) // the write of the previous look has arrived
	before := tenant.get("quiet").ResourceVersion
	for i := range 3 {
		tenant.touch("o0")
		enginetest.Until(t, "it is reconciled", func() bool { return strings.Count(c.Text(), `/o0","reason":"ObjectUpdated"`) > i })
		looks(3)
	}
	if r := tenant.get("quiet"); r.ResourceVersion != before {
		t.Errorf("written at %s, after %s: %+v", r.ResourceVersion, before, r.Status)
	}
	c.Signal(syscall.SIGTERM)
	c.WantExit(e2e.ExitOK)
}

// envValue returns the last value of a variable.
func envValue(env []string, name string) (value string) {
	for _, e := range env {
		if v, ok := strings.CutPrefix(e, name+"="); ok {
			value = v
		}
	}
	return value
}
