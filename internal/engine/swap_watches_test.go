// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/internal/enginetest"
)

// sources returns the sources that the controller watches, by resource.
func (w *swapping) sources() string {
	var names []string
	for _, s := range w.engine.Runtime.Stats().Watches {
		names = append(names, s.Source.Resource.Resource)
	}
	return strings.Join(names, " ")
}

func watchOf(kind, mapBy string) abi.Watch {
	return abi.Watch{Version: "v1", Kind: kind, Map: mapBy}
}

// TestSwap_WatchesOfTheManifest: a watch that only the new module needs has synced before
// it is live; a watch that both need is not touched; a watch that only the old one needs
// ends when no rollback is possible. A rollback leaves the watches of the previous module
// as they were.
func TestSwap_WatchesOfTheManifest(t *testing.T) {
	opts := swapOptions()
	opts.Rollout.Probation, opts.Rollout.AllowMoreRights = "1h", new(true) // a watch is a right
	w := newSwapping(t, enginetest.WithManifest(t, enginetest.Good, &abi.Manifest{
		Version: "1", Watches: []abi.Watch{watchOf("ConfigMap", "label:swap"), watchOf("Secret", "label:swap")},
	}), opts)
	for i := range 4 {
		if err := w.put(t.Context(), i, 1); err != nil {
			t.Fatal(err)
		}
	}
	enginetest.Until(t, "all objects are reconciled", func() bool { return w.observer.behind() == 0 })
	if got := w.sources(); got != "swaps configmaps secrets" {
		t.Fatalf("watches %s", got)
	}
	client, err := kubernetes.NewForConfig(w.cluster.RESTConfig())
	if err != nil {
		t.Fatal(err)
	}
	_, err = client.CoreV1().ConfigMaps(w.ns).Create(t.Context(), &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: "cm", Labels: map[string]string{"swap": enginetest.ObjectName(2)}},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	enginetest.Until(t, "the object that the ConfigMap names is reconciled for it", func() bool { return len(w.observer.ranFor("configmaps")) == 1 })
	second := &abi.Manifest{Version: "2", Watches: []abi.Watch{watchOf("ConfigMap", "label:swap"), watchOf("ServiceAccount", "label:swap")}}
	w.mustSwap(enginetest.WithManifest(t, enginetest.Good, second))
	if got := w.sources(); got != "swaps configmaps secrets serviceaccounts" {
		t.Errorf("on probation: watches %s", got)
	}
	w.wantReady()
	enginetest.Until(t, "all objects are reconciled by the second module", func() bool {
		for i := range 4 {
			if w.observer.noted(w.key(i), 2) == 0 {
				return false
			}
		}
		return true
	})
	if got := w.observer.ranFor("configmaps"); len(got) != 1 {
		t.Errorf("the watch of ConfigMaps is not that of before: its objects led to runs of %v", got)
	}

	// An object of the new watch triggers by its label.
	_, err = client.CoreV1().ServiceAccounts(w.ns).Create(t.Context(), &corev1.ServiceAccount{
		ObjectMeta: metav1.ObjectMeta{Name: "sa", Labels: map[string]string{"swap": enginetest.ObjectName(3)}},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	enginetest.Until(t, "the object that the label names is reconciled for it", func() bool {
		return slices.Contains(w.observer.ranFor("serviceaccounts"), enginetest.ObjectName(3))
	})

	third := &abi.Manifest{Version: "3", Watches: []abi.Watch{watchOf("Secret", "label:swap")}}
	bad := w.mustSwap(enginetest.WithManifest(t, enginetest.Traps, third))
	if g := w.verdict(bad); g.State != "failed" {
		t.Errorf("revision %d: %s", bad, g.State)
	}
	enginetest.Until(t, "the first module is back, and its watches alone", func() bool {
		return w.engine.Module.Revision() == bad+1 && w.sources() == "swaps configmaps secrets"
	})
}

// TestSwap_RefusesWhatARunningControllerCannotGive: another kind, another finalizer, more
// rights. The error names the difference, and nothing changes.
func TestSwap_RefusesWhatARunningControllerCannotGive(t *testing.T) {
	granted := []abi.Capability{{Resource: "configmaps", Verbs: []string{"get", "list"}, Namespaces: []string{"a", "b"}}, {Group: "apps", Resource: "deployments", Verbs: []string{"*"}}}
	w := newSwapping(t, enginetest.WithManifest(t, enginetest.Good, &abi.Manifest{Version: "1", Capabilities: granted}), swapOptions())
	for name, c := range map[string]struct {
		manifest abi.Manifest
		want     []string
	}{
		"deletes":        {abi.Manifest{For: &abi.Watch{Kind: "x", Deletes: true}}, []string{"restart wasmctl", `"deletes":true`}},
		"a verb":         {abi.Manifest{Capabilities: []abi.Capability{{Resource: "configmaps", Verbs: []string{"get", "delete"}, Namespaces: []string{"a"}}}}, []string{"allowMoreRights", `"verbs":["delete"]`}},
		"all namespaces": {abi.Manifest{Capabilities: []abi.Capability{{Resource: "configmaps", Verbs: []string{"get"}}}}, []string{`"configmaps"`}},
		"every verb":     {abi.Manifest{Capabilities: []abi.Capability{{Resource: "configmaps", Verbs: []string{"*"}, Namespaces: []string{"a"}}}}, []string{`"verbs":["*"]`}},
		"a subresource":  {abi.Manifest{Capabilities: []abi.Capability{{Group: "apps", Resource: "deployments", Subresources: []string{"scale"}, Verbs: []string{"get"}}}}, []string{`"scale"`}},
		"a watch":        {abi.Manifest{Watches: []abi.Watch{watchOf("Secret", "label:swap")}}, []string{"allowMoreRights", `"resource":"secrets","verbs":["list","watch"]`}},
		"an owned kind":  {abi.Manifest{Owns: []abi.Watch{{Version: "v1", Kind: "Secret"}}}, []string{`"resource":"secrets","verbs":["list","watch"]`}},
		"a resource":     {abi.Manifest{Capabilities: []abi.Capability{{Resource: "secrets", Verbs: []string{"get"}}}}, []string{`"secrets"`}},
	} {
		_, err := w.swap(enginetest.WithManifest(t, enginetest.Good, &c.manifest))
		if err == nil || !enginetest.ContainsAll(err.Error(), c.want...) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
	if g := w.engine.Module.Revision(); g != 1 || w.sources() != "swaps" {
		t.Errorf("revision %d, watches %s", g, w.sources())
	}
	less := []abi.Capability{{Resource: "configmaps", Verbs: []string{"list"}, Namespaces: []string{"b"}}, {Group: "apps", Resource: "deployments", Verbs: []string{"get", "patch"}, Names: []string{"x"}}}
	w.mustSwap(enginetest.WithManifest(t, enginetest.Good, &abi.Manifest{Version: "2", Capabilities: less}))
	w.mustSwap(enginetest.WithManifest(t, enginetest.Good, &abi.Manifest{Version: "3", Capabilities: granted}))
}

// TestSwap_NewWatchAsksTheNewModule: a watch with the guest's own map syncs before its
// module is live, so that module maps its events, and no event fails; later events go to
// the live module.
func TestSwap_NewWatchAsksTheNewModule(t *testing.T) {
	opts := swapOptions()
	opts.Rollout.AllowMoreRights = new(true) // its map sees Secrets
	w := newSwapping(t, enginetest.WithManifest(t, enginetest.Good, &abi.Manifest{Version: "1", Hooks: abi.HookNames{}}), opts)
	if err := w.put(t.Context(), 0, 1); err != nil {
		t.Fatal(err)
	}
	client, err := kubernetes.NewForConfig(w.cluster.RESTConfig())
	if err != nil {
		t.Fatal(err)
	}
	create := func(name string) {
		if _, err := client.CoreV1().Secrets(w.ns).Create(t.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	create("before")
	second := &abi.Manifest{Version: "2", Hooks: abi.HookNames{abi.ExportMap}, Watches: []abi.Watch{watchOf("Secret", abi.MapFunc)}}
	w.mustSwap(enginetest.WithManifest(t, enginetest.Good, second))
	third := *second
	third.Version = "3"
	w.mustSwap(enginetest.WithManifest(t, enginetest.Good, &third)) // has the same watch
	create("after")
	enginetest.Until(t, "both have been mapped", func() bool {
		for _, s := range w.engine.Runtime.Stats().Watches {
			if s.Hook != nil && s.Hook.Handled >= 2 {
				return true
			}
		}
		return false
	})
	for _, s := range w.engine.Runtime.Stats().Watches {
		if s.Hook != nil && s.Hook.MapErrors > 0 {
			t.Errorf("%d events failed to map: %v", s.Hook.MapErrors, s.Hook.LastError)
		}
	}
	enginetest.Until(t, "the object that map names is reconciled for it", func() bool {
		return slices.Contains(w.observer.ranFor("secrets"), enginetest.ObjectName(0))
	})
}
