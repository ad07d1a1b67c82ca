// SPDX-License-Identifier: Apache-2.0

package serve_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utilrand "k8s.io/apimachinery/pkg/util/rand"

	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/api/v1alpha1"
	"github.com/wasmctl/wasmctl/internal/enginetest"
	"github.com/wasmctl/wasmctl/test/e2e/internal/e2e"
)

// intruder is a tenant that attacks another one. Its service account "strong" has all
// rights for the attacks in every namespace, so that its rights do not stop them. The
// account "default" has those of newTenant.
type intruder struct {
	*tenant

	victim *tenant
	n      int
}

func newIntruder(t *testing.T) *intruder {
	t.Helper()
	mine := newTenant(t)
	theirs := *mine
	theirs.ns = "v" + utilrand.String(5) // as long as declared needs it
	in := &intruder{tenant: mine, victim: &theirs}
	_, err := in.client.CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: theirs.ns}}, metav1.CreateOptions{})
	in.must(err)
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: mine.ns}, Rules: []rbacv1.PolicyRule{
		{APIGroups: []string{"", "events.k8s.io", "coordination.k8s.io", v1alpha1.Group}, Resources: []string{"*"}, Verbs: []string{"*"}},
	}}
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: mine.ns}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: mine.ns},
		Subjects: []rbacv1.Subject{{Kind: "ServiceAccount", Name: "strong", Namespace: mine.ns}, {Kind: "ServiceAccount", Name: "default", Namespace: theirs.ns}},
	}
	_, err = in.client.RbacV1().ClusterRoles().Create(t.Context(), role, metav1.CreateOptions{})
	in.must(err)
	_, err = in.client.RbacV1().ClusterRoleBindings().Create(t.Context(), binding, metav1.CreateOptions{})
	in.must(err)
	for _, ns := range []string{mine.ns, theirs.ns} {
		for _, name := range []string{"o0", "seen", "changed", "patched", "deleted"} {
			_, err := in.client.CoreV1().ConfigMaps(ns).Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}, Data: map[string]string{"of": ns}}, metav1.CreateOptions{})
			if name != "o0" || ns != mine.ns { // newTenant has made that
				in.must(err)
			}
		}
		_, err := in.client.CoreV1().Secrets(ns).Create(t.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "secret"}, StringData: map[string]string{"password": "of-" + ns}}, metav1.CreateOptions{})
		in.must(err)
	}
	return in
}

// attempt is one attack.
type attempt struct {
	name string
	spec map[string]any // in addition to the module and the service account
	// ops returns operations in a namespace. In the victim's namespace, none may succeed. If own is
	// set, they succeed in the intruder's own namespace, so they do not fail for another reason.
	ops func(ns string) []enginetest.Operation
	own bool

	manifest *abi.Manifest // if nil, one that requests everything
	module   []byte        // if nil, it is made from ops and manifest
	// refused and message are the expected reason and message of Ready, if the Reconciler is refused.
	refused, message string
	// invalid is the expected answer of the API server, if it refuses the object.
	invalid string
}

func asksForAll() *abi.Manifest {
	m := &abi.Manifest{Version: "1"}
	for group, resources := range map[string][]string{
		"": {"configmaps", "secrets", "namespaces", "serviceaccounts"}, "events.k8s.io": {"events"}, "coordination.k8s.io": {"leases"}, v1alpha1.Group: {"reconcilers"},
	} {
		for _, r := range resources {
			all := []string{"get", "list", "watch", "create", "update", "patch", "delete"}
			m.Capabilities = append(m.Capabilities, abi.Capability{Group: group, Resource: r, Verbs: all}, abi.Capability{Group: group, Resource: r, Subresources: []string{"status", "token", "finalizers"}, Verbs: all})
		}
	}
	return m
}

// op is an operation on a ConfigMap.
func op(o abi.Op, ns, name string, more ...any) []enginetest.Operation {
	r := map[string]any{"apiVersion": "v1", "kind": "ConfigMap"}
	if ns != "" {
		r["namespace"] = ns
	}
	if name != "" {
		r["name"] = name
	}
	for i := 0; i < len(more); i += 2 {
		r[more[i].(string)] = more[i+1]
	}
	return []enginetest.Operation{{Op: o, Request: r}}
}

// configMap returns an object that an attack leaves as a trace.
func configMap(ns, name string) map[string]any {
	metadata := map[string]any{"name": name}
	if ns != "" {
		metadata["namespace"] = ns
	}
	return map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": map[string]any{"intruder": "was here"}}
}

// kindOf returns operations with another kind.
func kindOf(ops []enginetest.Operation, apiVersion, kind string) []enginetest.Operation {
	ops[0].Request["apiVersion"], ops[0].Request["kind"] = apiVersion, kind
	return ops
}

// operations returns attacks by a module whose service account has all rights in every namespace.
func (in *intruder) operations() []attempt {
	patch := map[string]any{"data": map[string]any{"intruder": "was here"}}
	lease := func(ns string) []enginetest.Operation {
		return kindOf(op(abi.OpAPICreate, ns, "", "object", map[string]any{"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": map[string]any{"name": "intruder"}}), "coordination.k8s.io/v1", "Lease")
	}
	token := func(ns string) []enginetest.Operation {
		return kindOf(op(abi.OpAPICreate, ns, "default", "subresource", "token", "object", map[string]any{"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": map[string]any{"audiences": []any{}}}), "v1", "ServiceAccount")
	}
	event := func(ns string) []enginetest.Operation {
		return []enginetest.Operation{{Op: abi.OpEventRecord, Request: map[string]any{"reason": "Intruder", "note": "was here", "regarding": map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "namespace": ns, "name": "seen"}}}}
	}
	secrets := &abi.Manifest{Capabilities: asksForAll().Capabilities, Watches: []abi.Watch{{Version: "v1", Kind: "Secret", Map: abi.MapFunc}}}
	return []attempt{
		{name: "get", own: true, ops: func(ns string) []enginetest.Operation { return op(abi.OpAPIGet, ns, "seen") }},
		{name: "get-secret", own: true, ops: func(ns string) []enginetest.Operation { return kindOf(op(abi.OpAPIGet, ns, "secret"), "v1", "Secret") }},
		{name: "list", own: true, ops: func(ns string) []enginetest.Operation { return op(abi.OpAPIList, ns, "") }},
		{name: "list-all", ops: func(string) []enginetest.Operation { return op(abi.OpAPIList, "", "") }},
		{name: "list-by-field", ops: func(ns string) []enginetest.Operation {
			return op(abi.OpAPIList, "", "", "fieldSelector", "metadata.namespace="+ns+",metadata.name=seen")
		}},
		{name: "create", own: true, ops: func(ns string) []enginetest.Operation {
			return op(abi.OpAPICreate, ns, "", "object", configMap("", "new"))
		}},
		{name: "create-object", own: true, ops: func(ns string) []enginetest.Operation {
			return op(abi.OpAPICreate, "", "", "object", configMap(ns, "new2"))
		}},
		{name: "create-mixed", ops: func(ns string) []enginetest.Operation {
			return op(abi.OpAPICreate, in.ns, "", "object", configMap(ns, "new3"))
		}},
		{name: "update", own: true, ops: func(ns string) []enginetest.Operation {
			return op(abi.OpAPIUpdate, ns, "", "object", configMap("", "changed"))
		}},
		{name: "apply", own: true, ops: func(ns string) []enginetest.Operation {
			return op(abi.OpAPIApply, ns, "", "force", true, "object", configMap("", "patched"))
		}},
		{name: "apply-as-another", own: true, ops: func(ns string) []enginetest.Operation {
			return op(abi.OpAPIApply, ns, "", "force", true, "fieldManager", "wasmctl-serve", "object", configMap("", "patched"))
		}},
		{name: "patch", own: true, ops: func(ns string) []enginetest.Operation {
			return op(abi.OpAPIPatch, ns, "patched", "patchType", "merge", "patch", patch)
		}},
		{name: "finalizer", own: true, ops: func(ns string) []enginetest.Operation {
			return op(abi.OpAPIPatch, ns, "patched", "patchType", "merge", "patch", map[string]any{"metadata": map[string]any{"finalizers": []any{}}})
		}},
		{name: "delete", own: true, ops: func(ns string) []enginetest.Operation { return op(abi.OpAPIDelete, ns, "deleted") }},
		{name: "event", own: true, ops: event},
		{name: "event-default", ops: func(string) []enginetest.Operation { return event("default") }},
		{name: "lease", own: true, ops: lease},
		{name: "lease-leader", ops: func(string) []enginetest.Operation { return lease("kube-system") }},
		{name: "token", own: true, ops: token},
		{name: "cache-get", own: true, manifest: secrets, ops: func(ns string) []enginetest.Operation {
			return kindOf(op(abi.OpCacheGet, ns, "secret"), "v1", "Secret")
		}},
		{name: "cache-list", own: true, manifest: secrets, ops: func(ns string) []enginetest.Operation { return kindOf(op(abi.OpCacheList, ns, ""), "v1", "Secret") }},
		{name: "cache-list-all", manifest: secrets, ops: func(string) []enginetest.Operation { return kindOf(op(abi.OpCacheList, "", ""), "v1", "Secret") }},
		{name: "namespace", ops: func(ns string) []enginetest.Operation { return kindOf(op(abi.OpAPIGet, "", ns), "v1", "Namespace") }},
		{name: "namespace-in", ops: func(ns string) []enginetest.Operation { return kindOf(op(abi.OpAPIGet, in.ns, ns), "v1", "Namespace") }},
		{name: "new-namespace", ops: func(string) []enginetest.Operation {
			return kindOf(op(abi.OpAPICreate, "", "", "object", map[string]any{"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": "intruder"}}), "v1", "Namespace")
		}},
		{name: "their-reconciler", ops: func(ns string) []enginetest.Operation {
			return kindOf(op(abi.OpAPIPatch, ns, "web", "patchType", "merge", "patch", map[string]any{"spec": map[string]any{"suspend": true}}), v1alpha1.Group+"/"+v1alpha1.Version, "Reconciler")
		}},
		{name: "their-status", ops: func(ns string) []enginetest.Operation {
			return kindOf(op(abi.OpAPIPatch, ns, "web", "subresource", "status", "patchType", "merge", "patch", map[string]any{"status": map[string]any{"record": "x"}}), v1alpha1.Group+"/"+v1alpha1.Version, "Reconciler")
		}},
		{name: "path-namespace", ops: func(ns string) []enginetest.Operation { return op(abi.OpAPIGet, in.ns+"/../"+ns, "seen") }},
		{name: "path-name", ops: func(ns string) []enginetest.Operation { return op(abi.OpAPIGet, in.ns, "../../"+ns+"/configmaps/seen") }},
		{name: "path-escaped", ops: func(ns string) []enginetest.Operation {
			return op(abi.OpAPIGet, in.ns, "..%2f..%2f"+ns+"%2fconfigmaps%2fseen")
		}},
		{name: "path-subresource", ops: func(ns string) []enginetest.Operation {
			return op(abi.OpAPIGet, in.ns, "seen", "subresource", "../../../"+ns+"/configmaps/seen")
		}},
		{name: "granted-theirs", spec: map[string]any{"grant": map[string]any{"capabilities": []any{
			map[string]any{"resource": "configmaps", "verbs": []any{"*"}, "namespaces": []any{in.victim.ns}},
			map[string]any{"resource": "configmaps", "verbs": []any{"get", "list", "watch"}},
		}}}, ops: func(ns string) []enginetest.Operation {
			return op(abi.OpAPIPatch, ns, "patched", "patchType", "merge", "patch", patch)
		}},
		{name: "declared", own: true, module: declared(in.T, "ConfigMap", in.victim.ns)},
		{name: "declared-namespace", module: declared(in.T, "Namespace", "")},
	}
}

// declared returns a module that declares an object, in a namespace or in that of its
// owner. The kind has nine letters, like ConfigMap.
func declared(t *testing.T, kind, ns string) []byte {
	t.Helper()
	module := enginetest.WithManifest(t, enginetest.Declares, asksForAll())
	object := func(keys, kind, rest string) []byte {
		return []byte(keys + "\xaaapiVersion\xa2v1\xa4kind\xa9" + kind + "\xa8metadata" + rest)
	}
	own := "\x81\xa4name\xa4made\xa4data\x81\xa5color\xa4blue"
	old, made := object("\x84", "ConfigMap", own), object("\x84", kind, own)
	if ns != "" {
		made = object("\x83", kind, "\x82\xa4name\xa4made\xa9namespace\xa6"+ns)
	}
	if len(old) != len(made) || bytes.Count(module, old) != 1 {
		t.Fatalf("%d and %d bytes, %d times", len(old), len(made), bytes.Count(module, old))
	}
	return bytes.Replace(module, old, made, 1)
}

// specs returns attacks by Reconcilers that request more than their own rights.
func (in *intruder) specs() []attempt {
	all := asksForAll().Capabilities
	of := func(k abi.Watch) *abi.Manifest { return &abi.Manifest{For: &k, Capabilities: all} }
	from := func(kind, name, key string) map[string]any {
		return map[string]any{"configFrom": []any{map[string]any{kind: map[string]any{"name": name, "key": key}}}}
	}
	image := func(secret string) map[string]any {
		return map[string]any{"module": map[string]any{"image": "registry.invalid/m:1", "pullSecrets": []any{map[string]any{"name": secret}}}}
	}
	account := func(name string) map[string]any { return map[string]any{"serviceAccountName": name} }
	kind := func(kind string) map[string]any {
		return map[string]any{"for": map[string]any{"apiVersion": "v1", "kind": kind}}
	}
	return []attempt{
		{name: "for-nodes", spec: kind("Node"), refused: "InvalidSpec", message: "cluster-scoped"},
		{name: "for-namespaces", spec: kind("Namespace"), refused: "InvalidSpec", message: "cluster-scoped"},
		{name: "manifest-for-nodes", spec: map[string]any{"for": nil}, manifest: of(abi.Watch{Version: "v1", Kind: "Node"}), refused: "InvalidSpec", message: "cluster-scoped"},
		{name: "owns-namespaces", spec: map[string]any{"owns": []any{map[string]any{"apiVersion": "v1", "kind": "Namespace"}}}, refused: "NotGranted", message: "namespaces"},
		{name: "watches-theirs", manifest: &abi.Manifest{Watches: []abi.Watch{{Version: "v1", Kind: "Secret", Map: abi.MapFunc, Namespaces: []string{in.victim.ns}}}}, refused: "NotGranted", message: "secrets"},
		{name: "watches-nodes", manifest: &abi.Manifest{Watches: []abi.Watch{{Version: "v1", Kind: "Node", Map: abi.MapFunc}}}, refused: "NotGranted", message: "nodes"},
		{name: "config-path", spec: from("configMapKeyRef", "../../"+in.victim.ns+"/configmaps/seen", "of"), refused: "ConfigMissing", message: "invalid"},
		{name: "config-slash", spec: from("secretKeyRef", in.victim.ns+"/secret", "password"), refused: "ConfigMissing", message: "invalid"},
		{name: "config-secret", spec: withAll(from("secretKeyRef", "secret", "password"), account("default")), refused: "ConfigMissing", message: "forbidden"},
		{name: "module-path", spec: map[string]any{"module": map[string]any{"configMapKeyRef": map[string]any{"name": "../../" + in.victim.ns + "/configmaps/m", "key": "m"}}}, refused: "ConfigMapFailed", message: "invalid"},
		{name: "pull-path", spec: image("../../" + in.victim.ns + "/secrets/secret"), refused: "PullSecret", message: "invalid"},
		{name: "pull-secret", spec: withAll(image("secret"), account("default")), refused: "PullSecret", message: "forbidden"},
		{name: "account-colon", spec: account(in.victim.ns + ":default"), invalid: "serviceAccountName"},
		{name: "account-slash", spec: account(in.victim.ns + "/default"), invalid: "serviceAccountName"},
		{name: "account-path", spec: account("../" + in.victim.ns + ":default"), invalid: "serviceAccountName"},
		{name: "account-theirs", spec: account("x"), refused: "ServiceAccountNotFound", message: "does not exist"},
		{name: "namespaces", spec: map[string]any{"namespaces": []any{in.victim.ns}}, invalid: "namespaces"},
		{name: "account-namespace", spec: map[string]any{"serviceAccountNamespace": in.victim.ns}, invalid: "serviceAccountNamespace"},
	}
}

func withAll(specs ...map[string]any) map[string]any {
	out := map[string]any{}
	for _, s := range specs {
		maps.Copy(out, s)
	}
	return out
}

// start creates the Reconciler of an attack. Operations are in a namespace.
func (in *intruder) start(name string, a attempt, ns string) error {
	in.n++
	wasm := a.module
	if wasm == nil {
		m := a.manifest
		if m == nil {
			m = asksForAll()
		}
		var ops []enginetest.Operation
		if a.ops != nil {
			ops = a.ops(ns)
		}
		wasm = enginetest.Scripted(in.T, m, ops...)
	}
	spec := withAll(map[string]any{
		"serviceAccountName": "strong", "for": map[string]any{"apiVersion": "v1", "kind": "ConfigMap"}, "fieldSelector": "metadata.name=o0", "grant": map[string]any{"manifest": true},
	}, a.spec)
	if spec["for"] == nil {
		delete(spec, "for")
	}
	if spec["module"] == nil {
		spec["module"] = in.module(fmt.Sprint("module", in.n), enginetest.Numbered(wasm, in.n))
	}
	return in.try(name, spec)
}

// try creates a Reconciler, which the API server may refuse.
func (t *tenant) try(name string, spec map[string]any) error {
	o := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "wasmctl.dev/v1alpha1", "kind": "Reconciler", "metadata": map[string]any{"name": name}, "spec": spec}}
	_, err := t.dynamic.Resource(v1alpha1.GVR("Reconciler")).Namespace(t.ns).Create(t.Context(), o, metav1.CreateOptions{FieldValidation: metav1.FieldValidationStrict})
	return err
}

// everything returns the objects of a namespace, without the status of the Reconciler
// and Leases, which change by themselves.
func (t *tenant) everything() string {
	t.Helper()
	var out strings.Builder
	for _, path := range []string{"api/v1/%s/configmaps", "api/v1/%s/secrets", "apis/events.k8s.io/v1/%s/events", "apis/coordination.k8s.io/v1/%s/leases", "apis/wasmctl.dev/v1alpha1/%s/reconcilers"} {
		b, err := t.client.CoreV1().RESTClient().Get().AbsPath("/" + fmt.Sprintf(path, "namespaces/"+t.ns)).DoRaw(t.Context())
		t.must(err)
		var list unstructured.UnstructuredList
		t.must(json.Unmarshal(b, &list))
		for _, o := range list.Items {
			delete(o.Object, "status")
			o.SetManagedFields(nil)
			if strings.HasSuffix(path, "reconcilers") {
				o.SetResourceVersion("")
			}
			line, err := json.Marshal(o.Object)
			t.must(err)
			out.Write(append(line, '\n'))
		}
	}
	return out.String()
}

// TestServe_ATenantReachesNothingElsewhere: the spec and the module of a Reconciler can
// neither change nor read another namespace, and have no rights beyond those of the
// service account. In the own namespace of the tenant, the same requests work.
func TestServe_ATenantReachesNothingElsewhere(t *testing.T) {
	t.Parallel()
	in := newIntruder(t)
	in.victim.create("web", map[string]any{
		"module": in.victim.module("module", enginetest.WithManifest(t, enginetest.Good, &abi.Manifest{
			Watches: []abi.Watch{{Version: "v1", Kind: "Secret", Map: abi.MapFunc}}, Capabilities: asksForAll().Capabilities,
		})), "for": map[string]any{"apiVersion": "v1", "kind": "ConfigMap"}, "grant": map[string]any{"manifest": true},
	})
	c := startServe(in.tenant, "-n", in.victim.ns)
	in.victim.ready("web", "True", "Succeeded")
	before := in.victim.everything()

	ways := 0
	var wait []func()
	for _, a := range slices.Concat(in.operations(), in.specs()) {
		ways++
		err := in.start(a.name, a, in.victim.ns)
		if a.invalid != "" {
			if err == nil || !strings.Contains(err.Error(), a.invalid) {
				t.Errorf("%s: the API server accepted it, or answered: %v", a.name, err)
			}
			continue
		}
		in.must(err)
		wait = append(wait, func() { in.fails(c, a) })
		if a.own {
			if a.module != nil {
				a.module = declared(t, "ConfigMap", "")
			}
			in.must(in.start(a.name+"-own", a, in.ns))
			wait = append(wait, func() {
				c.WantLine(`"msg":"reconciled"`, `"controller":"`+in.ns+"."+a.name+`-own"`)
			})
		}
	}
	for _, w := range wait {
		w()
	}
	if after := in.victim.everything(); after != before {
		t.Errorf("the other namespace has changed:\n%s\nto\n%s", before, after)
	}
	if ways < 50 {
		t.Errorf("%d ways", ways)
	}
	in.sawNothing(c)
	in.victim.ready("web", "True", "Succeeded")
}

// fails waits until an attack has failed.
func (in *intruder) fails(c *e2e.Process, a attempt) {
	in.Helper()
	if a.refused == "" {
		c.WantLine(`"msg":"reconcile failed"`, `"controller":"`+in.ns+"."+a.name+`"`)
		return
	}
	r := in.ready(a.name, "False", a.refused)
	if ready := meta.FindStatusCondition(r.Status.Conditions, v1alpha1.Ready); !strings.Contains(ready.Message, a.message) {
		in.Errorf("%s: %s", a.name, ready.Message)
	}
}

// sawNothing checks the log and the objects that the tenant can read: no object of the
// victim was reconciled by another tenant, and no attack has succeeded.
func (in *intruder) sawNothing(c *e2e.Process) {
	in.Helper()
	for line := range strings.SplitSeq(c.Text(), "\n") {
		l := struct{ Msg, Controller, Object string }{}
		if json.Unmarshal([]byte(line), &l) != nil || l.Controller == in.victim.ns+".web" || strings.HasPrefix(l.Controller, "wasmctl-") {
			continue
		}
		if strings.HasPrefix(l.Object, in.victim.ns+"/") && strings.HasPrefix(l.Msg, "reconcile") || l.Msg == "reconciled" && !strings.HasSuffix(l.Controller, "-own") {
			in.Errorf("%s", line)
		}
	}
	list, err := in.dynamic.Resource(v1alpha1.GVR("Reconciler")).Namespace(in.ns).List(in.Context(), metav1.ListOptions{})
	in.must(err)
	if b, err := json.Marshal(list); err != nil || strings.Contains(string(b), "of-"+in.victim.ns) {
		in.Errorf("the victim's secret is in a status: %v", err)
	}
	if strings.Contains(c.Text(), "of-"+in.victim.ns) {
		in.Error("the victim's secret is in the log")
	}
}

// TestServe_RevokedRightsCloseTheCache: a right to list that is taken back ends the watch,
// although the API server would keep it open for minutes, and the condition names the right.
// When the right is back, the change of the meantime is reconciled.
func TestServe_RevokedRightsCloseTheCache(t *testing.T) {
	t.Parallel()
	tn := newTenant(t)
	may := func(verbs ...string) {
		t.Helper()
		role, err := tn.client.RbacV1().Roles(tn.ns).Get(t.Context(), "module", metav1.GetOptions{})
		tn.must(err)
		role.Rules[0].Verbs = verbs
		_, err = tn.client.RbacV1().Roles(tn.ns).Update(t.Context(), role, metav1.UpdateOptions{})
		tn.must(err)
	}
	_, err := tn.client.CoreV1().ServiceAccounts(tn.ns).Create(t.Context(), &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "web"}}, metav1.CreateOptions{})
	tn.must(err)
	binding, err := tn.client.RbacV1().RoleBindings(tn.ns).Get(t.Context(), "module", metav1.GetOptions{})
	tn.must(err)
	binding.Subjects[0].Name = "web"
	_, err = tn.client.RbacV1().RoleBindings(tn.ns).Update(t.Context(), binding, metav1.UpdateOptions{})
	tn.must(err)
	tn.create("web", map[string]any{
		"module": tn.module("v1", enginetest.Worse(enginetest.Good, 1)), "for": map[string]any{"apiVersion": "v1", "kind": "ConfigMap"}, "serviceAccountName": "web",
		"selector": map[string]any{"matchExpressions": []any{map[string]any{"key": "module", "operator": "DoesNotExist"}}},
		"rollout":  map[string]any{"probation": "0s"},
	})
	startServe(tn)
	tn.ready("web", "True", "Succeeded")
	may("get", "create", "update", "patch")
	r := tn.ready("web", "False", "RightsMissing")
	if c := meta.FindStatusCondition(r.Status.Conditions, v1alpha1.CachesSynced); c == nil || !strings.Contains(c.Message, "list and watch on configmaps") {
		t.Errorf("%+v", c)
	}
	may("*")
	tn.ready("web", "True", "Succeeded")
}
