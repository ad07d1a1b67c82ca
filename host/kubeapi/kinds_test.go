// SPDX-License-Identifier: Apache-2.0

package kubeapi

import (
	"context"
	"log/slog"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/wasmctl/wasmctl/host/kubeapi/kinds"
)

// fewKinds is a source of the kinds that tests without an API server need.
type fewKinds struct{}

// Discover implements kinds.Source.
func (fewKinds) Discover(context.Context) (groups []*metav1.APIGroup, lists []*metav1.APIResourceList, err error) {
	resource := func(name, kind string, namespaced bool) metav1.APIResource {
		return metav1.APIResource{Name: name, Kind: kind, Namespaced: namespaced, Verbs: metav1.Verbs{"get", "list", "watch"}}
	}
	add := func(gv string, resources ...metav1.APIResource) {
		group, version, ok := strings.Cut(gv, "/")
		if !ok {
			group, version = "", gv
		}
		v := metav1.GroupVersionForDiscovery{GroupVersion: gv, Version: version}
		groups = append(groups, &metav1.APIGroup{Name: group, PreferredVersion: v, Versions: []metav1.GroupVersionForDiscovery{v}})
		lists = append(lists, &metav1.APIResourceList{GroupVersion: gv, APIResources: resources})
	}
	scale := resource("deployments/scale", "Scale", true)
	scale.Group, scale.Version = "autoscaling", "v1"
	add("v1", resource("configmaps", "ConfigMap", true), resource("pods", "Pod", true), resource("nodes", "Node", false), resource("events", "Event", true))
	add("apps/v1", resource("deployments", "Deployment", true), scale, resource("deployments/status", "Deployment", true))
	add("events.k8s.io/v1", resource("events", "Event", true))
	add("examples.wasmctl.dev/v1", resource("configmapgenerators", "ConfigMapGenerator", true))
	return groups, lists, nil
}

func newClient(tb testing.TB, config *rest.Config) *Client {
	tb.Helper()
	client, err := NewClient(config)
	if err != nil {
		tb.Fatal(err)
	}
	return client
}

func newResolver(source kinds.Source) *kinds.Resolver {
	return kinds.NewResolver(source, slog.New(slog.DiscardHandler))
}

func resolve(tb testing.TB, r *kinds.Resolver, name string) kinds.Kind {
	tb.Helper()
	k, err := r.Resolve(tb.Context(), name)
	if err != nil {
		tb.Fatal(err)
	}
	return k
}
