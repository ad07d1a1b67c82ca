// SPDX-License-Identifier: Apache-2.0

package serve_test

import (
	"encoding/pem"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilrand "k8s.io/apimachinery/pkg/util/rand"

	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/api/v1alpha1"
	"github.com/wasmctl/wasmctl/devcluster/devclustertest"
	"github.com/wasmctl/wasmctl/host/oci/ocitest"
	"github.com/wasmctl/wasmctl/internal/enginetest"
	"github.com/wasmctl/wasmctl/testdata/wasm"
)

// broken is a Reconciler that does not work, and its correction.
type broken struct {
	name, reason, message string
	condition             string // a condition that has the cause in addition to Ready
	stalled               bool   // only a change of the spec helps; otherwise it recovers by itself
	spec                  map[string]any
	mend                  map[string]any // the correction of the spec; nil if heal is the correction
	heal                  func()
}

// brokenness returns a Reconciler for each cause.
func (t *tenant) brokenness(group string, reg, secure *ocitest.Registry, closed string) []broken {
	good := t.module("good", enginetest.Worse(enginetest.Good, 0))
	in := func(key string, value any) map[string]any { return map[string]any{key: value} }
	module := func(m map[string]any) map[string]any { return in("module", m) }
	ref := func(name, key string) map[string]any {
		return in("configMapKeyRef", map[string]any{"name": name, "key": key})
	}
	selector := func(operator string) map[string]any {
		return in("selector", map[string]any{"matchExpressions": []any{map[string]any{"key": "module", "operator": operator}}})
	}
	asks := enginetest.WithManifest(t.T, enginetest.Good, enginetest.MayWrite("configmaps"))
	several := t.module("several", enginetest.WithManifest(t.T, enginetest.Good, &abi.Manifest{Name: "a"}, &abi.Manifest{Name: "b"}))
	image := t.pushed(reg, "good:1", enginetest.Worse(enginetest.Good, 0))["image"].(string)
	reg.Use(ocitest.Status(http.StatusServiceUnavailable, "UNAVAILABLE"))
	private := t.pushed(secure, "good:1", enginetest.Worse(enginetest.Good, 0))
	t.config("authority", string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: secure.Certificate()})))
	t.config("no-authority", "not a certificate")
	_, err := t.client.CoreV1().Secrets(t.ns).Create(t.Context(), &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: "colour"}, StringData: map[string]string{"word": "bad colour"}, // as the module says
	}, metav1.CreateOptions{})
	t.must(err)
	t.allow("colour", rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"secrets"}, ResourceNames: []string{"colour"}, Verbs: []string{"get"}})
	return []broken{
		{name: "no-account", reason: "ServiceAccountNotFound", message: "serviceaccount[" + t.ns + "/absent] does not exist", condition: v1alpha1.Granted, spec: in("serviceAccountName", "absent"), mend: in("serviceAccountName", nil)},
		{name: "private-authority", reason: "RegistryUnavailable", message: "spec.module.registryCA", condition: v1alpha1.ModuleFetched, spec: module(private), mend: module(in("registryCA", ref("authority", "key")))},
		{name: "no-authority", reason: "RegistryCA", message: "no certificate in PEM", condition: v1alpha1.ModuleFetched, spec: module(withAll(private, in("registryCA", ref("no-authority", "key")))), mend: module(in("registryCA", ref("authority", "key")))},
		{name: "registry-unavailable", reason: "RegistryUnavailable", message: "does not answer as a registry", condition: v1alpha1.ModuleFetched, spec: module(in("image", image)), heal: func() { reg.Use() }},
		{name: "registry-refuses", reason: "RegistryUnavailable", message: "cannot be reached", condition: v1alpha1.ModuleFetched, spec: module(in("image", closed+strings.TrimPrefix(image, reg.Host))), heal: func() {
			serveAt(t.T, closed, reg)
		}},
		{name: "no-configmap", reason: "ConfigMapFailed", message: "not found", condition: v1alpha1.ModuleFetched, spec: module(ref("absent", "module.wasm")), heal: func() {
			t.module("absent", enginetest.Worse(enginetest.Good, 7))
		}},
		{name: "no-key", reason: "ConfigMapFailed", message: `binaryData["absent"]`, condition: v1alpha1.ModuleFetched, spec: module(ref("good", "absent")), mend: module(good)},
		{name: "no-module", reason: "ModuleRefused", message: "WebAssembly", stalled: true, spec: module(t.module("text", []byte("this is not a module"))), mend: module(good)},
		{name: "which-controller", reason: "ModuleRefused", message: "Reconciler's module: a, b", stalled: true, spec: module(several), mend: module(withAll(several, in("controller", "b")))},
		{name: "traps-at-start", reason: "ModuleRefused", message: "unreachable", stalled: true, spec: module(t.module("trap", wasm.StartTrap)), mend: module(good)},
		{name: "bad-manifest", reason: "ModuleRefused", message: "manifest", stalled: true, spec: module(t.module("describe", wasm.DescribeBad)), mend: module(good)},
		{name: "no-crd", reason: "WaitingForKind", message: "kubectl apply", condition: v1alpha1.KindServed, spec: in("for", map[string]any{"apiVersion": group + "/v1", "kind": "Widget"}), heal: func() {
			devclustertest.Apply(t.T, devclustertest.Shared(t.T), widgets(group))
			t.allow("widgets", rbacv1.PolicyRule{APIGroups: []string{group}, Resources: []string{"*"}, Verbs: []string{"*"}})
		}},
		{name: "no-group", reason: "WaitingForKind", message: "nowhere.example", condition: v1alpha1.KindServed, spec: in("for", map[string]any{"apiVersion": "nowhere.example/v1", "kind": "Thing"}), mend: in("for", map[string]any{"apiVersion": "v1", "kind": "ConfigMap"})},
		{name: "no-rights", reason: "RightsMissing", message: "secrets", condition: v1alpha1.Granted, spec: in("for", map[string]any{"apiVersion": "v1", "kind": "Secret"}), heal: func() {
			t.allow("secrets", rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"secrets"}, Verbs: []string{"get", "list", "watch"}})
		}},
		{name: "nothing-granted", reason: "NotGranted", message: "spec.grant", condition: v1alpha1.Granted, stalled: true, spec: module(t.module("asks", asks)), mend: in("grant", in("manifest", true))},
		{name: "config-refused", reason: "ConfigRefused", message: "config", stalled: true, spec: withAll(module(t.module("configure", wasm.Configure)), in("config", in("word", "r"))), mend: in("config", in("word", "fine"))},
		{name: "secret-refused", reason: "ConfigRefused", message: "[redacted]", stalled: true, spec: withAll(module(t.module("refuses", wasm.Configure)), in("configFrom", []any{
			in("secretKeyRef", map[string]any{"name": "colour", "key": "word"}),
		})), mend: in("config", in("word", "fine"))},
		{name: "config-missing", reason: "ConfigMissing", message: "spec.configFrom[0]", spec: in("configFrom", []any{ref("absent-config", "key")}), mend: in("configFrom", nil)},
		{name: "memory", reason: "InvalidSpec", message: "spec.limits.memory", stalled: true, spec: in("limits", in("memory", "1Gi")), mend: in("limits", in("memory", "16Mi"))},
		{name: "api-rate", reason: "InvalidSpec", message: "spec.limits.api_rate", stalled: true, spec: in("limits", in("api_rate", "1M")), mend: in("limits", in("api_rate", "10"))},
		{name: "no-limit", reason: "InvalidSpec", message: "nonsense", stalled: true, spec: in("limits", in("nonsense", 1)), mend: in("limits", nil)},
		{name: "concurrency", reason: "InvalidSpec", message: "spec.concurrency", stalled: true, spec: in("concurrency", 1000), mend: in("concurrency", 2)},
		{name: "selector", reason: "InvalidSpec", message: "selector", stalled: true, spec: selector("Nonsense"), mend: selector("DoesNotExist")},
		{name: "field-selector", reason: "InvalidSpec", message: "selector", stalled: true, spec: in("fieldSelector", "spec.nonsense=x"), mend: in("fieldSelector", "metadata.name=o0")},
		{name: "schedule", reason: "InvalidSpec", message: "schedule", stalled: true, spec: in("schedule", []any{"at noon"}), mend: in("schedule", []any{"0 12 * * *"})},
		{name: "predicate", reason: "InvalidSpec", message: "predicate", stalled: true, spec: in("predicates", []any{"nonsense"}), mend: in("predicates", []any{"generation"})},
	}
}

// config creates a ConfigMap with a key of this name.
func (t *tenant) config(name, value string) {
	t.Helper()
	_, err := t.client.CoreV1().ConfigMaps(t.ns).Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}, Data: map[string]string{"key": value}}, metav1.CreateOptions{})
	t.must(err)
}

// closedPort returns an address that refuses connections until serveAt.
func closedPort(t *testing.T) string {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = ln.Close() }()
	return ln.Addr().String()
}

// serveAt serves at an address.
func serveAt(t *testing.T, address string, handler http.Handler) {
	t.Helper()
	ln, err := net.Listen("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	s := httptest.Server{Listener: ln, Config: &http.Server{Handler: handler}} //nolint:gosec // a test
	s.Start()
	t.Cleanup(s.Close)
}

// allow gives the service account more rights.
func (t *tenant) allow(name string, rule rbacv1.PolicyRule) {
	t.Helper()
	_, err := t.client.RbacV1().Roles(t.ns).Create(t.Context(), &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Name: name}, Rules: []rbacv1.PolicyRule{rule}}, metav1.CreateOptions{})
	t.must(err)
	_, err = t.client.RbacV1().RoleBindings(t.ns).Create(t.Context(), &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: name}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: name},
		Subjects: []rbacv1.Subject{{Kind: "ServiceAccount", Name: "default", Namespace: t.ns}},
	}, metav1.CreateOptions{})
	t.must(err)
}

func widgets(group string) []byte {
	return fmt.Appendf(nil, `{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: widgets.%[1]s}, spec: {
group: %[1]s, scope: Namespaced, names: {kind: Widget, plural: widgets}, versions: [{name: v1, served: true, storage: true, subresources: {status: {}},
schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}]}}`, group)
}

// TestServe_OneThatIsBrokenAffectsNoOther: each kind of broken Reconciler runs among
// working ones in one process. Its status has the cause and the next step, a correction
// makes it Ready, and the working ones stay Ready and reconcile in the meantime.
func TestServe_OneThatIsBrokenAffectsNoOther(t *testing.T) {
	t.Parallel()
	tenant := newTenant(t)
	spec := func(more map[string]any) map[string]any {
		return withAll(map[string]any{"module": map[string]any{"configMapKeyRef": map[string]any{"name": "good", "key": "module.wasm"}}, "for": map[string]any{"apiVersion": "v1", "kind": "ConfigMap"}, "rollout": map[string]any{"probation": "1s"}}, more)
	}
	reg, secure, closed := ocitest.NewPlain(t), ocitest.New(t), closedPort(t)
	rows := tenant.brokenness("g"+utilrand.String(5)+".example.dev", reg, secure, closed)
	c := startServe(tenant, "--insecure-registry", reg.Host, "--insecure-registry", closed, "--registry-allow", reg.Host, "--registry-allow", secure.Host, "--registry-allow", closed)
	good := []string{"good-0", "good-1", "good-2"}
	var since []metav1.Time
	for _, name := range good {
		tenant.create(name, spec(nil))
	}
	for _, name := range good {
		r := tenant.ready(name, "True", "Succeeded")
		since = append(since, meta.FindStatusCondition(r.Status.Conditions, v1alpha1.Ready).LastTransitionTime)
	}
	for _, b := range rows {
		tenant.must(tenant.try(b.name, spec(b.spec)))
	}
	for _, b := range rows {
		tenant.saysWhy(&b)
	}
	tenant.touch("o0")
	for _, name := range good {
		c.WantLine(`"msg":"reconciled"`, tenant.ns+"/o0", `"reason":"ObjectUpdated"`, `"controller":"`+tenant.ns+"."+name+`"`)
	}
	corrected := time.Now()
	for _, b := range rows {
		if b.heal != nil {
			b.heal()
		} else {
			tenant.patch(b.name, b.mend)
		}
	}
	for _, b := range rows {
		tenant.ready(b.name, "True", "Succeeded")
		t.Logf("%s: Ready after %v", b.name, time.Since(corrected).Round(time.Second))
	}
	for i, name := range good {
		r := tenant.ready(name, "True", "Succeeded")
		if at := meta.FindStatusCondition(r.Status.Conditions, v1alpha1.Ready).LastTransitionTime; !at.Equal(&since[i]) {
			t.Errorf("%s was not Ready until %v", name, at)
		}
	}
}

// saysWhy waits until the status of a broken Reconciler has its cause.
func (t *tenant) saysWhy(b *broken) {
	t.Helper()
	r := t.ready(b.name, "False", b.reason)
	conditions := r.Status.Conditions
	if message := meta.FindStatusCondition(conditions, v1alpha1.Ready).Message; !strings.Contains(message, b.message) {
		t.Errorf("%s: %q does not say %q", b.name, message, b.message)
	}
	if meta.IsStatusConditionTrue(conditions, v1alpha1.Stalled) != b.stalled || meta.IsStatusConditionTrue(conditions, v1alpha1.Reconciling) == b.stalled {
		t.Errorf("%s: want stalled %v: %+v", b.name, b.stalled, conditions)
	}
	if b.condition != "" && !meta.IsStatusConditionFalse(conditions, b.condition) {
		t.Errorf("%s: %s is not False: %+v", b.name, b.condition, conditions)
	}
	t.Logf("%s: %s", b.name, meta.FindStatusCondition(conditions, v1alpha1.Ready).Message)
}

// touch changes a ConfigMap.
func (t *tenant) touch(name string) {
	t.Helper()
	cm, err := t.client.CoreV1().ConfigMaps(t.ns).Get(t.Context(), name, metav1.GetOptions{})
	t.must(err)
	cm.Data = map[string]string{"touched": utilrand.String(8)}
	_, err = t.client.CoreV1().ConfigMaps(t.ns).Update(t.Context(), cm, metav1.UpdateOptions{})
	t.must(err)
}
