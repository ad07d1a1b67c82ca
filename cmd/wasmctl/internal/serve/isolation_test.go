// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/wasmctl/wasmctl/api/v1alpha1"
)

func TestIsolation_TenantsShareNoProcess(t *testing.T) {
	of := func(kind, namespace, account string) *reconciler {
		r := &reconciler{kind: kind, meta: metav1.ObjectMeta{Namespace: namespace, Name: "web"}}
		r.spec.ServiceAccountNamespace = account
		return r
	}
	shop, bank := of(v1alpha1.KindNamespaced, "shop", ""), of(v1alpha1.KindNamespaced, "bank", "")
	cluster := of(v1alpha1.KindCluster, "", "shop")
	const alone = v1alpha1.IsolateAlone
	for _, tc := range []struct {
		is   Isolation
		want [3]string
	}{
		{Isolation{}, [3]string{"", "", ""}},
		{Isolation{By: ByController}, [3]string{alone, alone, alone}},
		{Isolation{By: ByTenant}, [3]string{"shop", "bank", alone}},
		{Isolation{By: ByTenant, Namespaces: []string{"bank"}}, [3]string{"", "bank", ""}},
		{Isolation{By: ByController, Namespaces: []string{"shop", "other"}}, [3]string{alone, "", alone}},
	} {
		if got := [3]string{tc.is.class(shop), tc.is.class(bank), tc.is.class(cluster)}; got != tc.want {
			t.Errorf("%+v: got %q, want %q", tc.is, got, tc.want)
		}
	}
}

func TestIsolation_FlagsThatContradict(t *testing.T) {
	for _, tc := range []struct {
		is        Isolation
		supported bool
		valid     bool
	}{
		{Isolation{}, false, true},
		{Isolation{By: ByTenant, Namespaces: []string{"a"}}, true, true},
		{Isolation{By: ByTenant}, false, false},
		{Isolation{By: "team-a"}, true, false},
		{Isolation{Namespaces: []string{"a"}}, true, false},
	} {
		if err := tc.is.Validate(tc.supported); (err == nil) != tc.valid {
			t.Errorf("%+v: %v", tc.is, err)
		}
	}
}
