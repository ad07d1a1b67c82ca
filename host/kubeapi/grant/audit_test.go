// SPDX-License-Identifier: Apache-2.0

package grant

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/host/kubeapi"
	"github.com/wasmctl/wasmctl/host/kubeapi/kinds"
)

// TestAudit_LearnsTheLeast: exactly the used rights, including fields. Many siblings become their
// parent.
func TestAudit_LearnsTheLeast(t *testing.T) {
	a := NewAudit(nil)
	do := func(op abi.Op, ns string, sent map[string]any) bool {
		b, err := json.Marshal(sent)
		if err != nil {
			t.Fatal(err)
		}
		return a.Learn(&kubeapi.Exchange{Op: op, Kind: configMaps, Key: abi.Key{Namespace: ns, Name: "x"}, Sent: b})
	}
	object := func(data map[string]any) map[string]any {
		return map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "x", "labels": map[string]any{"l": "1"}}, "data": data}
	}
	if !do(abi.OpAPIGet, "a", nil) || do(abi.OpAPIGet, "a", nil) {
		t.Error("the second get is as the first")
	}
	do(abi.OpAPIApply, "a", object(map[string]any{"k": "secret value"}))
	want := []abi.Capability{
		{Resource: "configmaps", Verbs: []string{"get"}, Namespaces: []string{"a"}},
		{Resource: "configmaps", Verbs: []string{"create", "patch"}, Namespaces: []string{"a"}, Fields: []string{"data.k", "metadata.labels.l"}},
	}
	if diff := cmp.Diff(want, a.Rules()); diff != "" {
		t.Error(diff)
	}
	many := map[string]any{}
	for i := range 20 {
		many[fmt.Sprint("k", i)] = "x"
	}
	do(abi.OpAPIApply, "b", object(many))
	want[1].Fields, want[1].Namespaces = []string{"data", "metadata.labels.l"}, []string{"a", "b"}
	if diff := cmp.Diff(want, a.Rules()); diff != "" {
		t.Error(diff)
	}
	for i := range 20 {
		do(abi.OpAPIGet, fmt.Sprint("ns", i), nil)
	}
	if got := a.Rules()[0].Namespaces; got != nil {
		t.Errorf("namespaces: %v", got)
	}
}

// TestAudit_LearnsNamesThatTheManifestNames: a Secret that the manifest asks for
// by name is learned by name, as long as no other is used; other objects are not.
func TestAudit_LearnsNamesThatTheManifestNames(t *testing.T) {
	secrets := kinds.Kind{Version: "v1", Kind: "Secret", Resource: "secrets", Namespaced: true}
	a := NewAudit([]abi.Capability{
		{Resource: "secrets", Verbs: []string{"*"}, Names: []string{"creds", "more"}},
		{Resource: "configmaps", Verbs: []string{"get"}, Names: []string{"x"}},
		{Resource: "configmaps", Verbs: []string{"get"}, Namespaces: []string{"a"}},
	})
	get := func(kind kinds.Kind, name string) bool {
		return a.Learn(&kubeapi.Exchange{Op: abi.OpAPIGet, Kind: kind, Key: abi.Key{Namespace: "a", Name: name}})
	}
	get(secrets, "creds")
	if get(secrets, "creds") || !get(secrets, "more") || !get(configMaps, "x") || get(configMaps, "y") {
		t.Error("a name that is known is news, or one that is not is none")
	}
	rule := func(resource string, names ...string) abi.Capability {
		return abi.Capability{Resource: resource, Verbs: []string{"get"}, Namespaces: []string{"a"}, Names: names}
	}
	if diff := cmp.Diff([]abi.Capability{rule("configmaps"), rule("secrets", "creds", "more")}, a.Rules()); diff != "" {
		t.Error(diff)
	}
	get(secrets, "other") // the audit lets it
	if diff := cmp.Diff([]abi.Capability{rule("configmaps"), rule("secrets")}, a.Rules()); diff != "" {
		t.Error(diff)
	}
}
