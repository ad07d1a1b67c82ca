// SPDX-License-Identifier: Apache-2.0

package watcher_test

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/yaml"

	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/devcluster/devclustertest"
	"github.com/wasmctl/wasmctl/runtime/reflector"
	"github.com/wasmctl/wasmctl/runtime/watcher"
)

// The test of this file runs on a real API server.

// rich are objects with fields of many types.
var rich = map[string]string{
	"pods": `
apiVersion: v1
kind: Pod
metadata: {name: rich, labels: {a: b}, annotations: {text: "ä\n<&>"}, finalizers: [example.com/stays]}
spec:
  nodeName: none
  terminationGracePeriodSeconds: 0
  securityContext: {runAsUser: 0, fsGroup: 7, sysctls: [{name: a.b, value: "1"}]}
  tolerations: [{operator: Exists, effect: NoExecute, tolerationSeconds: 5}]
  containers:
  - name: c
    image: i
    command: [""]
    ports: [{containerPort: 80}]
    env: [{name: A}, {name: B, valueFrom: {fieldRef: {fieldPath: metadata.name}}}]
    resources: {limits: {cpu: 1500m, memory: 1Gi}, requests: {cpu: "0.1"}}
    livenessProbe: {httpGet: {port: http, path: /}}
    readinessProbe: {tcpSocket: {port: 80}}
    volumeMounts: [{name: e, mountPath: /e}]
  volumes:
  - name: e
    emptyDir: {sizeLimit: 1Mi}
  - name: p
    projected: {sources: [{serviceAccountToken: {path: t}}, {configMap: {name: x, optional: true}}]}`,
	"statefulsets": `
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: rich}
spec:
  serviceName: s
  selector: {matchLabels: {a: b}}
  template: {metadata: {labels: {a: b}}, spec: {containers: [{name: c, image: i}]}}
  volumeClaimTemplates:
  - metadata: {name: data}
    spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}`,
	"deployments": `
apiVersion: apps/v1
kind: Deployment
metadata: {name: rich}
spec:
  replicas: 0
  strategy: {rollingUpdate: {maxSurge: 30%, maxUnavailable: 0}}
  selector: {matchExpressions: [{key: a, operator: Exists}]}
  template: {metadata: {labels: {a: b}}, spec: {containers: [{name: c, image: i}]}}`,
	"secrets": `
apiVersion: v1
kind: Secret
metadata: {name: rich}
data: {a: AAEC/w==, empty: ""}`,
	"services": `
apiVersion: v1
kind: Service
metadata: {name: rich}
spec: {selector: {a: b}, ports: [{name: a, port: 80, targetPort: http}, {name: b, port: 81, targetPort: 8080}]}`,
	"cronjobs": `
apiVersion: batch/v1
kind: CronJob
metadata: {name: rich}
spec:
  schedule: "* * * * *"
  suspend: true
  jobTemplate: {spec: {template: {spec: {restartPolicy: Never, containers: [{name: c, image: i}]}}}}`,
	"networkpolicies": `
apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata: {name: rich}
spec: {podSelector: {}, ingress: [{from: [{namespaceSelector: {}}], ports: [{port: 80, endPort: 90}]}]}`,
	"horizontalpodautoscalers": `
apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
metadata: {name: rich}
spec:
  maxReplicas: 3
  scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: rich}
  metrics: [{type: Resource, resource: {name: cpu, target: {type: Utilization, averageUtilization: 50}}}]`,
	"leases": `
apiVersion: coordination.k8s.io/v1
kind: Lease
metadata: {name: rich}
spec: {leaseDurationSeconds: 3, acquireTime: "2026-01-02T03:04:05.000006Z"}`,
	"controllerrevisions": `
apiVersion: apps/v1
kind: ControllerRevision
metadata: {name: rich}
revision: 3
data: {any: [1, null, {b: 1.5}]}`,
}

// Rule 12, for all kinds of the API server: the store's objects, from the list and from events, equal their JSON.
func TestReal_ObjectsAreTheirJSONWhateverTheyComeIn(t *testing.T) {
	c := devclustertest.Own(t)
	client, err := dynamic.NewForConfig(c.RESTConfig())
	if err != nil {
		t.Fatal(err)
	}
	found, err := discovery.NewDiscoveryClientForConfigOrDie(c.RESTConfig()).ServerPreferredResources()
	if err != nil {
		t.Fatal(err)
	}
	watched := map[schema.GroupVersionResource]*witness{}
	for _, group := range found {
		gv, err := schema.ParseGroupVersion(group.GroupVersion)
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range group.APIResources {
			if !slices.Contains(r.Verbs, "watch") || r.Name == "events" || r.Name == "leases" && gv.Group == "" {
				continue
			}
			w := observe(t, c.RESTConfig(), watcher.Source{Resource: gv.WithResource(r.Name)})
			w.synced()
			watched[gv.WithResource(r.Name)] = w
		}
	}
	tried := 0
	for gvr, w := range watched {
		text, ok := rich[gvr.Resource]
		if !ok {
			continue
		}
		u := &unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte(text), &u.Object); err != nil {
			t.Fatal(err)
		}
		in := things{t, client.Resource(gvr).Namespace("default"), u.GetAPIVersion(), u.GetKind()}
		in.make(u)
		in.label("rich", "yes")
		listed := observe(t, c.RESTConfig(), watcher.Source{Resource: gvr, Namespace: "default", LabelSelector: "l=yes", ManagedFields: true})
		listed.synced()
		in.same(w, "rich", false)
		in.same(listed, "rich", true)
		tried++
	}
	if tried < len(rich) {
		t.Errorf("%d of %d kinds were tried", tried, len(rich))
	}
	for gvr, w := range watched {
		list, err := client.Resource(gvr).List(t.Context(), metav1.ListOptions{})
		if err != nil {
			t.Fatal(err)
		}
		for i := range list.Items {
			in := things{t, client.Resource(gvr).Namespace(list.Items[i].GetNamespace()), "", ""}
			in.same(w, list.Items[i].GetName(), false)
		}
	}
}

// same waits until the object in the store of w equals that of the API in JSON.
func (c things) same(w *witness, name string, managed bool) {
	c.Helper()
	var diff string
	defer func() {
		if c.Failed() {
			c.Log(diff)
		}
	}()
	eventually(w.T, c.kind+" "+name, func() bool {
		u, err := c.Get(c.Context(), name, metav1.GetOptions{})
		if err != nil {
			c.Fatal(err)
		}
		o := w.sub.Store().Get(reflector.ObjectRef{Namespace: u.GetNamespace(), Name: name})
		if o == nil {
			return false
		}
		got, err := abi.DecodeObject(o.Msgpack())
		if err != nil {
			c.Fatal(err)
		}
		if !managed {
			u.SetManagedFields(nil)
		}
		diff = cmp.Diff(u.Object, got)
		return diff == ""
	})
}
