// SPDX-License-Identifier: Apache-2.0

package build_test

import (
	"strings"

	"k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/wasmctl/wasmctl/test/e2e/internal/e2e"
)

var sandboxes = schema.GroupVersionResource{Group: "agents.x-k8s.io", Version: "v1alpha1", Resource: "sandboxes"}

// agentSandbox makes a Pod, a Service and claims for each Sandbox. Its go.mod has
// controller-runtime 0.22.
var agentSandbox = published{
	module: "sigs.k8s.io/agent-sandbox@v0.1.0",
	pkg:    "cmd/agent-sandbox-controller",
	crds:   "k8s/crds/agents.x-k8s.io_sandboxes.yaml",
	native: []string{"-health-probe-bind-address=127.0.0.1:0"},
	size:   26_000_000,
	kinds:  []schema.GroupVersionResource{sandboxes, core("pods"), core("services"), core("persistentvolumeclaims")},
	steps: []publishedStep{
		{what: "a Sandbox", do: createSandbox, done: func(all map[string]any) bool { return len(all) == 4 }},
		{what: "no replicas", do: func(p *publishedTest) { p.patch(sandboxes, `{"spec":{"replicas":0}}`) }, done: func(all map[string]any) bool { return all["pods/a"] == nil }},
		{what: "a replica again", do: func(p *publishedTest) { p.patch(sandboxes, `{"spec":{"replicas":1}}`) }, done: func(all map[string]any) bool { return all["pods/a"] != nil }},
		{what: "a deleted Service", do: func(p *publishedTest) { p.delete(core("services")) }, done: func(all map[string]any) bool { return all["services/a"] != nil }},
		{what: "a time that is over", do: func(p *publishedTest) { p.patch(sandboxes, `{"spec":{"shutdownTime":"2020-01-01T00:00:00Z"}}`) }, done: func(all map[string]any) bool { return all["pods/a"] == nil && all["services/a"] == nil }},
	},
}

func createSandbox(p *publishedTest) {
	p.create(sandboxes, map[string]any{
		"apiVersion": "agents.x-k8s.io/v1alpha1", "kind": "Sandbox", "metadata": map[string]any{"name": "a"},
		"spec": map[string]any{
			"podTemplate": map[string]any{
				"metadata": map[string]any{"labels": map[string]any{"tier": "test"}},
				"spec": map[string]any{
					"automountServiceAccountToken": false, // its volume has a random name
					"containers":                   []any{map[string]any{"name": "main", "image": "busybox"}},
				},
			},
			"volumeClaimTemplates": []any{map[string]any{
				"metadata": map[string]any{"name": "data"},
				"spec": map[string]any{
					"accessModes": []any{"ReadWriteOnce"}, "resources": map[string]any{"requests": map[string]any{"storage": "1Gi"}},
				},
			}},
		},
	})
}

func solrKind(resource string) schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: "solr.apache.org", Version: "v1beta1", Resource: resource}
}

// solr has two controllers that work together: of databases (StatefulSet, Services,
// ConfigMap, disruption budget) and of their exporters (Deployment, Service). They
// find one another by indexes and map functions, and need client-go's rest.Config.
// Its go.mod has controller-runtime 0.19.
var solr = published{
	module: "github.com/apache/solr-operator@v0.9.1",
	pkg:    ".",
	crds:   "config/crd/bases/*.yaml",
	main:   []string{"--zk-operator=false"},
	native: []string{"--health-probe-bind-address=127.0.0.1:0", "--metrics-bind-address=0", "--leader-elect=false"},
	size:   40_500_000,
	kinds: []schema.GroupVersionResource{
		solrKind("solrclouds"), solrKind("solrprometheusexporters"), e2e.Deployments, core("services"), core("configmaps"),
		{Group: "apps", Version: "v1", Resource: "statefulsets"},
		{Group: "policy", Version: "v1", Resource: "poddisruptionbudgets"},
	},
	steps: []publishedStep{
		{what: "a SolrCloud and its exporter", do: createSolr, done: func(all map[string]any) bool {
			return all["statefulsets/a-solrcloud"] != nil && all["deployments/a-solr-metrics"] != nil && all["poddisruptionbudgets/a-solrcloud"] != nil && len(all) == 9
		}},
		{what: "another image", do: func(p *publishedTest) {
			p.patch(solrKind("solrclouds"), `{"spec":{"solrImage":{"tag":"9.9"}}}`)
		}, done: func(all map[string]any) bool {
			return imageOf(all["statefulsets/a-solrcloud"]) == "library/solr:9.9" && imageOf(all["deployments/a-solr-metrics"]) == "library/solr:9.9"
		}},
		{what: "other annotations", do: func(p *publishedTest) {
			p.patch(solrKind("solrprometheusexporters"), `{"spec":{"customKubeOptions":{"podOptions":{"annotations":{"k":"v"}}}}}`)
		}, done: func(all map[string]any) bool {
			return at(all["deployments/a-solr-metrics"], "spec", "template", "metadata", "annotations", "k") == "v"
		}},
		{what: "a deleted exporter", do: func(p *publishedTest) { p.delete(solrKind("solrprometheusexporters")) }, done: func(all map[string]any) bool {
			return all["deployments/a-solr-metrics"] == nil && all["services/a-solr-metrics"] == nil
		}},
	},
}

func createSolr(p *publishedTest) {
	p.create(solrKind("solrclouds"), map[string]any{
		"apiVersion": "solr.apache.org/v1beta1", "kind": "SolrCloud", "metadata": map[string]any{"name": "a"},
		"spec": map[string]any{
			"replicas": int64(2), "solrImage": map[string]any{"tag": "9.8"},
			"zookeeperRef": map[string]any{"connectionInfo": map[string]any{"internalConnectionString": "zk:2181"}},
		},
	})
	p.create(solrKind("solrprometheusexporters"), map[string]any{
		"apiVersion": "solr.apache.org/v1beta1", "kind": "SolrPrometheusExporter", "metadata": map[string]any{"name": "a"},
		"spec": map[string]any{"solrReference": map[string]any{"cloud": map[string]any{"name": "a"}}},
	})
}

var rabbits = schema.GroupVersionResource{Group: "rabbitmq.com", Version: "v1beta1", Resource: "rabbitmqclusters"}

// rabbitMQ makes a StatefulSet, Services, ConfigMaps, Secrets and rights for each
// RabbitmqCluster, and has a finalizer. It reads its settings from the environment, and its
// cache has only objects with a label. Its go.mod has controller-runtime 0.21.
var rabbitMQ = published{
	module: "github.com/rabbitmq/cluster-operator/v2@v2.16.0",
	pkg:    ".",
	crds:   "config/crd/bases/*.yaml",
	native: []string{"--metrics-bind-address=0"},
	env:    map[string]string{"OPERATOR_NAMESPACE": "default"},
	size:   42_000_000,
	kinds: []schema.GroupVersionResource{
		rabbits, core("services"), core("configmaps"), core("secrets"), core("serviceaccounts"),
		{Group: "apps", Version: "v1", Resource: "statefulsets"},
		{Group: "rbac.authorization.k8s.io", Version: "v1", Resource: "roles"},
		{Group: "rbac.authorization.k8s.io", Version: "v1", Resource: "rolebindings"},
	},
	// It keeps the error until all pods are ready: never, here.
	raced: map[string]any{"type": "ReconcileSuccess", "status": "Unknown", "reason": "Initialising"},
	steps: []publishedStep{
		{what: "a RabbitmqCluster", do: func(p *publishedTest) {
			p.create(rabbits, map[string]any{
				"apiVersion": "rabbitmq.com/v1beta1", "kind": "RabbitmqCluster", "metadata": map[string]any{"name": "a"},
				"spec": map[string]any{"replicas": int64(3), "image": "rabbitmq:4.0"},
			})
		}, done: func(all map[string]any) bool {
			return at(all["rabbitmqclusters/a"], "status", "conditions") != nil && imageOf(all["statefulsets/a-server"]) == "rabbitmq:4.0"
		}},
		{what: "another image", do: func(p *publishedTest) { p.patch(rabbits, `{"spec":{"image":"rabbitmq:4.1"}}`) }, done: func(all map[string]any) bool { return imageOf(all["statefulsets/a-server"]) == "rabbitmq:4.1" }},
		{what: "other settings", do: func(p *publishedTest) {
			p.patch(rabbits, `{"spec":{"rabbitmq":{"additionalConfig":"channel_max = 1050"}}}`)
		}, done: func(all map[string]any) bool {
			text, _ := at(all["configmaps/a-server-conf"], "data", "userDefinedConfiguration.conf").(string)
			return strings.Contains(text, "1050")
		}},
		{what: "a deleted Service", do: func(p *publishedTest) { p.delete(core("services")) }, done: func(all map[string]any) bool { return all["services/a"] != nil }},
		{what: "a deleted RabbitmqCluster", do: func(p *publishedTest) { p.delete(rabbits) }, done: func(all map[string]any) bool { return all["rabbitmqclusters/a"] == nil }, again: deleteAgain},
	},
}

// at returns the value at a path of an object; nil if there is none.
func at(v any, path ...string) any {
	for _, key := range path {
		m, _ := v.(map[string]any)
		v = m[key]
	}
	return v
}

// imageOf returns the image of the first container of a workload.
func imageOf(workload any) any {
	list, _ := at(workload, "spec", "template", "spec", "containers").([]any)
	if len(list) == 0 {
		return nil
	}
	return at(list[0], "image")
}

// deleteAgain deletes a RabbitmqCluster that the operator has created after its deletion.
// To remove its finalizer, the operator calls CreateOrUpdate. A run that still finds the
// deleted object in the cache when it begins, and no longer when it makes that call,
// creates an empty one, with all of its children.
func deleteAgain(p *publishedTest) {
	p.Helper()
	obj := p.get(rabbits)
	if obj.GetUID() == "" || obj.GetDeletionTimestamp() != nil {
		return
	}
	p.Logf("the operator has created the deleted RabbitmqCluster again")
	if err := p.of(rabbits).Delete(p.Context(), "a", metav1.DeleteOptions{}); err != nil && !errors.IsNotFound(err) {
		p.Fatal(err)
	}
}
