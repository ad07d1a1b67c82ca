// SPDX-License-Identifier: Apache-2.0

package kinds

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// testSnapshot has the kinds that these tests need, in the order of a real
// server.
func testSnapshot() *snapshot {
	group := func(name string, versions ...string) *metav1.APIGroup {
		g := &metav1.APIGroup{Name: name}
		for _, v := range versions {
			gv := schema.GroupVersion{Group: name, Version: v}
			g.Versions = append(g.Versions, metav1.GroupVersionForDiscovery{GroupVersion: gv.String(), Version: v})
		}
		g.PreferredVersion = g.Versions[0]
		return g
	}
	res := func(name, kind, shorts string, namespaced bool) metav1.APIResource {
		return metav1.APIResource{Name: name, Kind: kind, ShortNames: strings.Fields(shorts), Namespaced: namespaced, Verbs: metav1.Verbs{"get", "list", "watch"}}
	}
	list := func(gv string, resources ...metav1.APIResource) *metav1.APIResourceList {
		return &metav1.APIResourceList{GroupVersion: gv, APIResources: resources}
	}
	scale := metav1.APIResource{Name: "deployments/scale", Kind: "Scale", Group: "autoscaling", Version: "v1", Namespaced: true}
	groups := []*metav1.APIGroup{
		group("", "v1"), group("apps", "v1", "v1beta1"), group("events.k8s.io", "v1"), group("storage.k8s.io", "v1"), group("networking.k8s.io", "v1"),
		group("cluster.x-k8s.io", "v1"), group("management.example.io", "v3"), group("examples.wasmctl.dev", "v1"),
	}
	lists := []*metav1.APIResourceList{
		list("v1", res("configmaps", "ConfigMap", "cm", true), res("pods", "Pod", "po", true), res("nodes", "Node", "no", false), res("events", "Event", "ev", true)),
		list("apps/v1", res("deployments", "Deployment", "deploy", true), scale, metav1.APIResource{Name: "deployments/status", Kind: "Deployment", Namespaced: true}),
		list("apps/v1beta1", res("deployments", "Deployment", "deploy", true), res("oldies", "Oldie", "", true)),
		list("events.k8s.io/v1", res("events", "Event", "ev", true)),
		list("storage.k8s.io/v1", res("storageclasses", "StorageClass", "sc", false)),
		list("networking.k8s.io/v1", res("ingresses", "Ingress", "ing", true)),
		list("cluster.x-k8s.io/v1", res("clusters", "Cluster", "cl", true)),
		list("management.example.io/v3", res("clusters", "Cluster", "cl mc", false)),
		list("examples.wasmctl.dev/v1", res("configmapgenerators", "ConfigMapGenerator", "cmg", true)),
	}
	return newSnapshot(groups, lists, nil, nil)
}

func TestLookup_TakesWhatKubectlTakes(t *testing.T) {
	tests := map[string]string{
		"cm": "v1/configmaps", "configmap": "v1/configmaps", "configmaps": "v1/configmaps", "ConfigMap": "v1/configmaps",
		"CONFIGMAPS": "v1/configmaps", "configmaps.v1.": "v1/configmaps", "v1/ConfigMap": "v1/configmaps", "v1/cm": "v1/configmaps",
		"events": "v1/events", "events.events.k8s.io": "events.k8s.io/v1/events", "ev.events": "events.k8s.io/v1/events",
		"deploy": "apps/v1/deployments", "deployments.apps": "apps/v1/deployments", "Deployment.apps": "apps/v1/deployments",
		"deployments.v1.apps": "apps/v1/deployments", "Deployment.v1beta1.apps": "apps/v1beta1/deployments",
		"apps/v1/deployments": "apps/v1/deployments", "apps/v1beta1/Deployment": "apps/v1beta1/deployments",
		"oldies": "apps/v1beta1/oldies", "storageclass.storage": "storage.k8s.io/v1/storageclasses", "sc.storage": "storage.k8s.io/v1/storageclasses",
		"clusters.cluster": "cluster.x-k8s.io/v1/clusters", "clusters.management.example.io": "management.example.io/v3/clusters",
		"mc": "management.example.io/v3/clusters", "cmg": "examples.wasmctl.dev/v1/configmapgenerators",
		"configmapgenerators.examples.wasmctl.dev":     "examples.wasmctl.dev/v1/configmapgenerators",
		"configmapgenerators.v1.examples.wasmctl.dev":  "examples.wasmctl.dev/v1/configmapgenerators",
		"examples.wasmctl.dev/v1/ConfigMapGenerator":   "examples.wasmctl.dev/v1/configmapgenerators",
		"examples.wasmctl.dev/v1/configmapgenerators":  "examples.wasmctl.dev/v1/configmapgenerators",
		"ConfigMapGenerator.examples.wasmctl.dev":      "examples.wasmctl.dev/v1/configmapgenerators",
		"configmapgenerator.v1.examples.wasmctl.dev":   "examples.wasmctl.dev/v1/configmapgenerators",
		"configmapgenerators.examples":                 "examples.wasmctl.dev/v1/configmapgenerators",
		"configmapgenerators.examples.wasmctl.dev.":    "examples.wasmctl.dev/v1/configmapgenerators",
		"CONFIGMAPGENERATORS.v1.examples.wasmctl.dev":  "examples.wasmctl.dev/v1/configmapgenerators",
		"examples.wasmctl.dev/v1/configmapgenerator":   "examples.wasmctl.dev/v1/configmapgenerators",
		"examples.wasmctl.dev/v1/CONFIGMAPGENERATORS":  "examples.wasmctl.dev/v1/configmapgenerators",
		"examples.wasmctl.dev/v1/cmg":                  "examples.wasmctl.dev/v1/configmapgenerators",
		"configmapgenerators.v1.examples.wasmctl.dev.": "",
	}
	s := testSnapshot()
	for name, want := range tests {
		got, err := s.lookup(name)
		switch {
		case want == "" && !errors.Is(err, ErrUnknown):
			t.Errorf("%s: got %v, %v, want an unknown kind", name, got, err)
		case want != "" && (err != nil || got.String() != want):
			t.Errorf("%s: got %v, %v, want %s", name, got, err, want)
		}
	}
}

func TestLookup_KindNamesItselfUniquely(t *testing.T) {
	s := testSnapshot()
	for _, k := range s.kinds {
		if got, err := s.lookup(k.String()); err != nil || got.GVR() != k.GVR() {
			t.Errorf("%s: got %v, %v", k, got, err)
		}
		if got, err := s.lookup(k.Name()); err != nil || got.GVR().GroupResource() != k.GVR().GroupResource() {
			t.Errorf("%s: got %v, %v", k.Name(), got, err)
		}
	}
}

func TestLookup_UnknownKindNamesNearOnes(t *testing.T) {
	tests := []struct {
		name      string
		near      []string
		mayArrive bool
	}{
		{"deploymnets", []string{"deployments.apps"}, false},
		{"confgmap", []string{"configmaps"}, false},
		{"CM", []string{"configmaps"}, false},
		{"deployments.extensions", []string{"deployments.apps"}, false},
		{"deployments.v2.apps", []string{"apps/v1/deployments"}, false},
		{"apps/v2/Deployment", []string{"apps/v1/deployments"}, false},
		{"clusterz", []string{"clusters.cluster.x-k8s.io", "clusters.management.example.io"}, false},
		{"sprockets", nil, false},
		{"sprockets.example.com", nil, true},
		{"sprockets.v1.example.com", nil, true},
		{"example.com/v1/Sprocket", nil, true},
		{"gateways.gateway.networking.k8s.io", nil, true},
		{"ingresss.networking.k8s.io", []string{"ingresses.networking.k8s.io"}, false},
		{"ingresses.networkin.k8s.io", []string{"ingresses.networking.k8s.io"}, false},
		{"configmapgeneratorz.examples.wasmctl.dev", []string{"configmapgenerators.examples.wasmctl.dev"}, true},
	}
	s := testSnapshot()
	for _, tt := range tests {
		_, err := s.lookup(tt.name)
		var unknown *UnknownError
		if !errors.As(err, &unknown) || !errors.Is(err, ErrUnknown) {
			t.Errorf("%s: got %v, want an UnknownError", tt.name, err)
			continue
		}
		if diff := cmp.Diff(tt.near, unknown.Near); diff != "" && (len(tt.near) > 0 || len(unknown.Near) > 0) {
			t.Errorf("%s: near matches (-want +got):\n%s", tt.name, diff)
		}
		if unknown.MayArrive != tt.mayArrive {
			t.Errorf("%s: may arrive = %v", tt.name, unknown.MayArrive)
		}
	}
	_, err := s.lookup("deploymnets")
	if want := "kind[deploymnets]: the API server does not know this kind; did you mean deployments.apps?"; err.Error() != want {
		t.Errorf("got  %v\nwant %s", err, want)
	}
}

// A kind of a user's is not hidden by one of Kubernetes' own of the same name, but
// one of the core group, which has no other name, is taken.
func TestLookup_AKindOfTheUsersIsNotHidden(t *testing.T) {
	list := func(group, plural, kind string) (*metav1.APIGroup, *metav1.APIResourceList) {
		gv := metav1.GroupVersionForDiscovery{GroupVersion: strings.TrimPrefix(group+"/v1", "/"), Version: "v1"}
		return &metav1.APIGroup{Name: group, Versions: []metav1.GroupVersionForDiscovery{gv}, PreferredVersion: gv},
			&metav1.APIResourceList{GroupVersion: gv.GroupVersion, APIResources: []metav1.APIResource{{
				Name: plural, Kind: kind, Namespaced: true, Verbs: metav1.Verbs{"get", "list", "watch"},
			}}}
	}
	var groups []*metav1.APIGroup
	var lists []*metav1.APIResourceList
	for _, r := range [][3]string{{"", "services", "Service"}, {"batch", "cronjobs", "CronJob"}, {"serving.knative.dev", "services", "Service"}, {"batch.example.io", "cronjobs", "CronJob"}} {
		g, l := list(r[0], r[1], r[2])
		groups, lists = append(groups, g), append(lists, l)
	}
	s := newSnapshot(groups, lists, nil, nil)
	_, err := s.lookup("CronJob")
	ambiguous, ok := errors.AsType[*AmbiguousError](err)
	if !ok || !slices.Equal(ambiguous.Choices, []string{"cronjobs.batch", "cronjobs.batch.example.io"}) {
		t.Errorf("CronJob: %v", err)
	}
	if k, err := s.lookup("services"); err != nil || k.Group != "" {
		t.Errorf("services: %v, %v", k, err)
	}
}

func TestLookup_AmbiguousKindNamesTheChoices(t *testing.T) {
	s := testSnapshot()
	for _, name := range []string{"clusters", "Cluster", "cl"} {
		_, err := s.lookup(name)
		var ambiguous *AmbiguousError
		if !errors.As(err, &ambiguous) || !errors.Is(err, ErrAmbiguous) {
			t.Fatalf("%s: got %v, want an AmbiguousError", name, err)
		}
		if diff := cmp.Diff([]string{"clusters.cluster.x-k8s.io", "clusters.management.example.io"}, ambiguous.Choices); diff != "" {
			t.Error(diff)
		}
		for _, choice := range ambiguous.Choices {
			if k, err := s.lookup(choice); err != nil || k.Name() != choice {
				t.Errorf("choice %s: %v, %v", choice, k, err)
			}
		}
	}
}

func TestLookup_BadNamesSayWhatIsWanted(t *testing.T) {
	for _, name := range []string{"", ".", "..", "/", "a/b", "deployments/web", "/v1/pods", "a/v1/b/c", "apps/v1/", ".apps", "apps/Deployment"} {
		if _, err := testSnapshot().lookup(name); !errors.Is(err, ErrBadName) || !strings.Contains(err.Error(), "v1/ConfigMap") {
			t.Errorf("%q: got %v", name, err)
		}
	}
}

func TestParseGVK_WantsTheFullName(t *testing.T) {
	for name, want := range map[string]string{
		"apps/v1/Deployment": "apps/v1, Kind=Deployment", "v1/ConfigMap": "/v1, Kind=ConfigMap", "Deployment.v1.apps": "apps/v1, Kind=Deployment",
		"a.example.dev/v1beta1/Foo": "a.example.dev/v1beta1, Kind=Foo",
		"":                          "", "foos": "", "Foo": "", "Foo.example.dev": "", "foos.v1.example.dev": "", "apps/v1/deployments": "", "a/b/Foo": "",
	} {
		if gvk, ok := ParseGVK(name); ok != (want != "") || ok && gvk.String() != want {
			t.Errorf("%q: %v, %v", name, gvk, ok)
		}
	}
}

func TestLookupGVK_WantsTheExactName(t *testing.T) {
	s := testSnapshot()
	tests := []struct{ group, version, kind, want string }{
		{"", "v1", "ConfigMap", "v1/configmaps"},
		{"apps", "", "Deployment", "apps/v1/deployments"},
		{"apps", "", "Oldie", "apps/v1beta1/oldies"},
		{"events.k8s.io", "", "Event", "events.k8s.io/v1/events"},
		{"", "v1", "configmap", ""},
		{"", "", "Deployment", ""},
		{"apps", "v7", "Deployment", ""},
	}
	for _, tt := range tests {
		got, err := s.lookupGVK(schema.GroupVersionKind{Group: tt.group, Version: tt.version, Kind: tt.kind})
		if tt.want == "" && !errors.Is(err, ErrUnknown) || tt.want != "" && (err != nil || got.String() != tt.want) {
			t.Errorf("%+v: got %v, %v", tt, got, err)
		}
	}
}

// TestSnapshot_KeepsKindsOfFailedGroups: an aggregated API that is down does not lose its kinds.
func TestSnapshot_KeepsKindsOfFailedGroups(t *testing.T) {
	old := testSnapshot()
	failed := map[schema.GroupVersion]error{{Group: "management.example.io", Version: "v3"}: errors.New("stale")}
	s := newSnapshot(nil, nil, old, failed)
	if len(s.kinds) != 1 || s.kinds[0].Name() != "clusters.management.example.io" {
		t.Errorf("kinds: %v", s.kinds)
	}
}

// FuzzLookup: no name of a user or a guest causes a panic, and the found kind has the version of
// the name.
func FuzzLookup(f *testing.F) {
	for _, name := range []string{"cm", "deployments.v1.apps", "apps/v1/Deployment", "v1/", "..", "\xff.\xff", "clusterz"} {
		f.Add(name, "apps", "v1")
	}
	s := testSnapshot()
	f.Fuzz(func(t *testing.T, name, group, version string) {
		if k, err := s.lookup(name); err == nil && k.Resource == "" {
			t.Errorf("%q: an empty kind", name)
		} else if err != nil && err.Error() == "" {
			t.Errorf("%q: an empty error", name)
		}
		k, err := s.lookupGVK(schema.GroupVersionKind{Group: group, Version: version, Kind: name})
		if err == nil && (k.Kind != name || k.Group != group || version != "" && k.Version != version) {
			t.Errorf("%s/%s %s: got %v", group, version, name, k)
		}
	})
}
