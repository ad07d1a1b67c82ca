// SPDX-License-Identifier: Apache-2.0

package kubeapi

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/devcluster/devclustertest"
	"github.com/wasmctl/wasmctl/host/kubeapi/kinds"
)

// TestCheckAccess_NamesWhatIsMissing for watches of several namespaces,
// finalizers, declared children and events, and for rights to some names.
func TestCheckAccess_NamesWhatIsMissing(t *testing.T) {
	c := devclustertest.Shared(t)
	devclustertest.Apply(t, c, []byte(sprocketCRD))
	ns, other := devclustertest.Namespace(t, c), devclustertest.Namespace(t, c)
	client := newClient(t, devclustertest.Limited(t, c, ns,
		rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"list", "watch", "patch"}},
		rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"secrets"}, ResourceNames: []string{"a"}, Verbs: []string{"get", "list", "watch"}},
		rbacv1.PolicyRule{APIGroups: []string{"kubeapi.wasmctl.dev"}, Resources: []string{"sprockets/status"}, Verbs: []string{"patch"}}))
	r := newResolver(client)
	cm, sprocket, secrets := resolve(t, r, "configmaps"), resolve(t, r, "sprockets.kubeapi.wasmctl.dev"), resolve(t, r, "secrets")
	needs := []Access{
		WatchAccess(WatchedKind{Kind: secrets, Namespaces: []string{ns}, Name: "a"}),
		WatchAccess(WatchedKind{Kind: cm, Namespaces: []string{ns, other}}), FinalizerAccess(sprocket, []string{ns}), WatchAccess(WatchedKind{Kind: cm, Namespaces: []string{ns}}),
	}
	for _, capability := range []abi.Capability{
		{Resource: "configmaps", Verbs: []string{"patch", "create"}, Namespaces: []string{ns}, Names: []string{"a"}},
		{Resource: "configmaps", Verbs: []string{"delete"}, Namespaces: []string{ns}},
		{Group: "kubeapi.wasmctl.dev", Resource: "sprockets", Subresources: []string{"status", "scale"}, Verbs: []string{"patch"}, Namespaces: []string{ns}},
		{Group: "events.k8s.io", Resource: "events", Verbs: []string{"create", "patch"}},
		{Resource: "secrets", Verbs: []string{"get", "create"}, Namespaces: []string{ns}, Names: []string{"a", "b"}},
	} {
		needs = append(needs, CapabilityAccess(&capability)...)
	}
	missing := client.CheckAccess(t.Context(), needs...)
	want := fmt.Sprintf(`# in a Role in namespace %[2]s
- apiGroups: [""]
  resources: ["configmaps"]
  verbs: ["list", "watch"]
# in a Role in namespace %[1]s
- apiGroups: ["kubeapi.wasmctl.dev"]
  resources: ["sprockets"]
  verbs: ["patch"]
# in a Role in namespace %[1]s
- apiGroups: [""]
  resources: ["configmaps"]
  verbs: ["create", "delete"]
# in a Role in namespace %[1]s
- apiGroups: ["kubeapi.wasmctl.dev"]
  resources: ["sprockets/scale"]
  verbs: ["patch"]
# in a ClusterRole
- apiGroups: ["events.k8s.io"]
  resources: ["events"]
  verbs: ["create", "patch"]
# in a Role in namespace %[1]s
- apiGroups: [""]
  resources: ["secrets"]
  verbs: ["create"]
# in a Role in namespace %[1]s
- apiGroups: [""]
  resources: ["secrets"]
  verbs: ["get"]
  resourceNames: ["b"]
`, ns, other)
	if diff := cmp.Diff(want, RBACRules(missing)); diff != "" {
		t.Error(diff)
	}
	if got := missing[3].String(); got != "patch sprockets.kubeapi.wasmctl.dev/scale in namespace "+ns {
		t.Error(got)
	}
}

func TestCapabilityAccess_SpellsOutTheStar(t *testing.T) {
	got := CapabilityAccess(&abi.Capability{Resource: "secrets", Verbs: []string{"*"}, Namespaces: []string{"a"}})
	want := []Access{{Resource: "secrets", Namespaces: []string{"a"}, Verbs: []string{"get", "list", "watch", "create", "update", "patch", "delete"}}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if node := FinalizerAccess(kinds.Kind{Resource: "nodes"}, []string{"a"}); node.Namespaces != nil {
		t.Errorf("a cluster-scoped kind in namespaces %v", node.Namespaces)
	}
}
