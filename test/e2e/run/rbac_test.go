// SPDX-License-Identifier: Apache-2.0

package run_test

import (
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/devcluster/devclustertest"
	"github.com/wasmctl/wasmctl/internal/enginetest"
	"github.com/wasmctl/wasmctl/test/e2e/internal/e2e"
)

// rbac returns the output of wasmctl rbac for a module and its account in the namespace.
func (w *walled) rbac(module string, args ...string) []byte {
	w.t.Helper()
	args = append([]string{"rbac", module, "--serviceaccount", w.ns + ":example", "--kubeconfig", w.cluster.Kubeconfig()}, args...)
	return []byte(e2e.Output(w.t, args...))
}

// account returns a configuration that authenticates as a service account of the
// namespace.
func (w *walled) account(name string) *rest.Config {
	w.t.Helper()
	client, err := kubernetes.NewForConfig(w.cluster.RESTConfig())
	if err != nil {
		w.t.Fatal(err)
	}
	token, err := client.CoreV1().ServiceAccounts(w.ns).CreateToken(w.t.Context(), name, &authenticationv1.TokenRequest{}, metav1.CreateOptions{})
	if err != nil {
		w.t.Fatal(err)
	}
	rc := rest.AnonymousClientConfig(w.cluster.RESTConfig())
	rc.BearerToken = token.Status.Token
	return rc
}

// mayDo asks the API server whether a configuration's user may do something, as
// "verb group/resource/subresource name" in the namespace.
func (w *walled) mayDo(rc *rest.Config, ns, what string) bool {
	w.t.Helper()
	return e2e.MayDo(w.t, rc, ns, what)
}

// TestRBAC_IsTheLeastWithinAGrant: the roles for a module and a grant give the account exactly the
// rights that both allow, including subresources, names, status, Lease and events.
// With the token of the account, the module does its work.
func TestRBAC_IsTheLeastWithinAGrant(t *testing.T) {
	w := newWalled(t)
	dir := t.TempDir()
	module, file := filepath.Join(dir, "m.wasm"), filepath.Join(dir, "grant.yaml")
	e2e.Replace(t, module, asking(t, onConfigMaps("get", "create", "patch", "delete"),
		abi.Capability{Resource: "secrets", Verbs: []string{"get"}},
		abi.Capability{Group: "apps", Resource: "deployments", Subresources: []string{"scale", "status"}, Verbs: []string{"get", "patch"}},
		abi.Capability{Resource: "nodes", Verbs: []string{"get"}}))
	w.writeGrant(file, exampleGrant+`- {resource: configmaps, verbs: [get, list, watch, create, patch], namespaces: [NS]}
- {resource: secrets, verbs: ["*"], namespaces: [NS], names: [creds]}
- {group: apps, resource: deployments, subresources: [scale], verbs: [patch], namespaces: [NS]}
`)
	printed := w.rbac(module, "--grant", file, "--leader-elect")
	if strings.Contains(string(printed), "kind: ClusterRole") {
		t.Errorf("all of the grant is in one namespace, and there is a ClusterRole:\n%s", printed)
	}
	devclustertest.Apply(t, w.cluster, printed)
	account := w.account("example")
	const own = "examples.wasmctl.dev/configmapgenerators"
	enginetest.Until(t, "the API server knows the roles", func() bool {
		return w.mayDo(account, w.ns, "list "+own) && w.mayDo(account, w.ns, "get /secrets creds")
	})
	for _, what := range []string{
		"watch " + own, "patch " + own + "/status x", "create /configmaps", "patch /configmaps x", "get /configmaps x", "watch /configmaps",
		"patch apps/deployments/scale x", "create events.k8s.io/events", "patch events.k8s.io/events x",
		"create coordination.k8s.io/leases", "update coordination.k8s.io/leases wasmctl-configmapgenerator",
	} {
		if !w.mayDo(account, w.ns, what) {
			t.Errorf("it may not %s", what)
		}
	}
	for _, what := range []string{
		"delete /configmaps x", "get /secrets other", "list /secrets", "patch /secrets creds", "get apps/deployments/scale x", "patch apps/deployments/status x",
		"patch apps/deployments x", "patch " + own + " x", "get /nodes x", "update coordination.k8s.io/leases other",
	} {
		if w.mayDo(account, w.ns, what) {
			t.Errorf("it may %s", what)
		}
	}
	if w.mayDo(account, "default", "get /configmaps x") {
		t.Error("it may do something in another namespace")
	}
	c := e2e.Run(t, module, "-n", w.ns, "--socket", "none", "--grant", file, "--kubeconfig", e2e.WriteKubeconfig(t, account),
		"--leader-elect", "--leader-elect-resource-namespace", w.ns)
	w.generate("a")
	c.WantLine(`"msg":"reconciled"`, w.ns+"/a")
	enginetest.Until(t, "the ConfigMap is there", func() bool { return w.configMaps() == "a" })
	c.Signal(syscall.SIGTERM)
	c.WantExit(e2e.ExitOK)
	for _, bad := range []string{"forbidden", "denied a request", "allows less than"} {
		if strings.Contains(c.Text(), bad) {
			t.Errorf("output contains %q:\n%s", bad, c.Text())
		}
	}
}

// TestRBAC_AddsTheRightsOfShards: --shards adds only the rights for sharding, which are for every Lease
// of the namespace, because any of them can belong to a replica.
func TestRBAC_AddsTheRightsOfShards(t *testing.T) {
	w := newWalled(t)
	devclustertest.Apply(t, w.cluster, w.rbac(e2e.Example(t, "configmapgenerator"), "--shards", "-n", w.ns))
	account := w.account("example")
	const leases = "coordination.k8s.io/leases"
	enginetest.Until(t, "the API server knows the roles", func() bool { return w.mayDo(account, w.ns, "list "+leases) })
	for _, verb := range []string{"get", "list", "watch", "create", "update", "delete"} {
		if !w.mayDo(account, w.ns, verb+" "+leases+" any") || w.mayDo(account, "default", verb+" "+leases+" any") {
			t.Errorf("%s: allowed %t, elsewhere %t", verb, w.mayDo(account, w.ns, verb+" "+leases+" any"), w.mayDo(account, "default", verb+" "+leases+" any"))
		}
	}
	if w.mayDo(account, w.ns, "deletecollection "+leases) || w.mayDo(account, w.ns, "patch "+leases+" any") {
		t.Error("it may do more")
	}
}

// TestRun_SaysWhoMayNotImpersonate: for a user without the right to impersonate the user
// of --as, the error has the missing rule. With that right, the module runs.
func TestRun_SaysWhoMayNotImpersonate(t *testing.T) {
	w := newWalled(t)
	devclustertest.Apply(t, w.cluster, w.rbac(e2e.Example(t, "configmapgenerator"), "-n", w.ns))
	as := "system:serviceaccount:" + w.ns + ":example"
	enginetest.Until(t, "the API server knows the roles", func() bool { return w.may(as) })
	run := func(rules ...rbacv1.PolicyRule) *e2e.Process {
		rc := devclustertest.Limited(t, w.cluster, w.ns, rules...)
		return e2e.Run(t, e2e.Example(t, "configmapgenerator"), "-n", w.ns, "--socket", "none", "--as", as, "--kubeconfig", e2e.WriteKubeconfig(t, rc))
	}
	refused := run()
	refused.WantExit(e2e.ExitDenied)
	for _, want := range []string{"user " + as, `resources: ["serviceaccounts"]`, `verbs: ["impersonate"]`, `resourceNames: ["example"]`, "in a Role in namespace " + w.ns} {
		if !strings.Contains(refused.Text(), want) {
			t.Errorf("no %q in\n%s", want, refused.Text())
		}
	}
	c := run(rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"serviceaccounts"}, ResourceNames: []string{"example"}, Verbs: []string{"impersonate"}})
	w.generate("a")
	c.WantLine(`"msg":"reconciled"`, w.ns+"/a")
	c.Signal(syscall.SIGTERM)
	c.WantExit(e2e.ExitOK)
}

// TestRBAC_RefusesWhatTheGrantLeavesOut: a watch that the module needs and the grant
// does not give is an error, as for wasmctl run.
func TestRBAC_RefusesWhatTheGrantLeavesOut(t *testing.T) {
	w := newWalled(t)
	file := w.grantFile(exampleGrant)
	code, out := e2e.Exec(t, nil, "rbac", e2e.Example(t, "configmapgenerator"), "--grant", file, "--kubeconfig", w.cluster.Kubeconfig())
	if code != e2e.ExitDenied || !strings.Contains(out, "list, watch configmaps") {
		t.Errorf("exit code %d: %s", code, out)
	}
}
