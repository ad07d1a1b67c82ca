// SPDX-License-Identifier: Apache-2.0

// Package chart_test renders the chart of wasmctl with Helm's own code. It is a Go module of its own,
// because Helm has many dependencies.
package chart_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/engine"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/restmapper"
	"sigs.k8s.io/yaml"

	"github.com/wasmctl/wasmctl/devcluster/devclustertest"
)

func TestMain(m *testing.M) { devclustertest.Main(m) }

const image = "registry.example/wasmctl:1"

// wasmctl runs the binary that make build has made, or builds one.
func wasmctl(t *testing.T, args ...string) []byte {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", append([]string{"run", "./cmd/wasmctl"}, args...)...)
	if binary := os.Getenv("WASMCTL_BINARY"); binary != "" {
		cmd = exec.CommandContext(t.Context(), binary, args...)
	}
	cmd.Dir, cmd.Stderr = filepath.Join("..", ".."), t.Output()
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("wasmctl %q: %v", args, err)
	}
	return out
}

// chart writes a chart, and returns its directory.
func chart(t *testing.T, flags ...string) string {
	t.Helper()
	dir := t.TempDir()
	wasmctl(t, append([]string{"manifests", "--serve", "-o", "helm", "--output-dir", dir, "--image", image}, flags...)...)
	return dir
}

// objects are objects by kind and name.
type objects map[string]map[string]any

func decode(t *testing.T, docs []byte) objects {
	t.Helper()
	all := objects{}
	for doc := range bytes.SplitSeq(append([]byte("\n"), docs...), []byte("\n---\n")) {
		var o map[string]any
		if err := yaml.UnmarshalStrict(doc, &o); err != nil {
			t.Fatalf("%v:\n%s", err, doc)
		}
		if o != nil {
			name, _, err := unstructured.NestedString(o, "metadata", "name")
			if err != nil {
				t.Fatalf("%v:\n%s", err, doc)
			}
			all[fmt.Sprint(o["kind"], " ", name)] = o
		}
	}
	return all
}

// release is a release of a chart.
type release struct {
	name, namespace string
	values          string // YAML
}

// render renders a chart with Helm's engine, and returns the objects of the release, those of its hooks, and
// what helm install prints.
func (r release) render(t *testing.T, dir string) (installed, hooked objects, notes string, err error) {
	t.Helper()
	c, err := loader.LoadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	values, err := chartutil.ReadValues([]byte(r.values))
	if err != nil {
		t.Fatal(err)
	}
	all, err := chartutil.ToRenderValues(c, values, chartutil.ReleaseOptions{Name: r.name, Namespace: r.namespace, IsInstall: true}, chartutil.DefaultCapabilities)
	if err != nil {
		return nil, nil, "", err
	}
	files, err := engine.Engine{Strict: true}.Render(c, all)
	if err != nil {
		return nil, nil, "", err
	}
	var main, hooks bytes.Buffer
	for name, content := range files {
		switch {
		case path.Base(name) == "NOTES.txt":
			notes = content
		case strings.Contains(name, "/tests/"):
			hooks.WriteString("\n---\n" + content)
		default:
			main.WriteString("\n---\n" + content)
		}
	}
	return decode(t, main.Bytes()), decode(t, hooks.Bytes()), notes, nil
}

// TestChart_GivesTheObjectsOfManifests: a release of the chart has the objects that are printed for its name
// and values.
func TestChart_GivesTheObjectsOfManifests(t *testing.T) {
	for _, flags := range [][]string{nil, {"--shards"}, {"--shards", "--share", "objects"}, {"--shards", "--share", "objects", "--webhooks"}, {"--shards", "--max-replicas", "5"}} {
		dir := chart(t, append([]string{"--pod-monitor"}, flags...)...)
		for _, r := range []release{{name: "wasmctl", namespace: "wasmctl-system"}, {name: "1", namespace: "n42"}} {
			printed := wasmctl(t, append([]string{
				"manifests", "--serve", "--image", image, "--pod-monitor", "--replicas", "3", "--name", r.name, "--namespace", r.namespace,
			}, flags...)...)
			for _, replicas := range []string{"1", "3"} {
				r.values = "replicas: " + replicas
				got, _, notes, err := r.render(t, dir)
				if err != nil {
					t.Fatal(err)
				}
				if !strings.Contains(notes, "helm -n "+r.namespace+" test "+r.name) {
					t.Errorf("notes: %s", notes)
				}
				want := decode(t, printed)
				adjust(want, replicas == "1", !slices.Contains(flags, "--shards"))
				if diff := cmp.Diff(want, got); diff != "" {
					t.Errorf("%q: release %v: - printed + chart\n%s", flags, r, diff)
				}
			}
		}
	}
}

// TestChart_WebhooksHaveAllModules: with webhooks, the pods of any chart share the objects, so each has all modules.
func TestChart_WebhooksHaveAllModules(t *testing.T) {
	printed := wasmctl(t, "manifests", "--serve", "--image", image, "--replicas", "3", "--shards", "--share", "objects", "--webhooks")
	got, _, _, err := release{name: "wasmctl", namespace: "wasmctl-system", values: "replicas: 3\nwebhooks: {enabled: true}"}.render(t, chart(t))
	if err != nil {
		t.Fatal(err)
	}
	want := decode(t, printed)
	adjust(want, false, false)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("- printed + chart\n%s", diff)
	}
}

// adjust changes printed objects for 3 replicas to those of a chart.
func adjust(printed objects, single, leader bool) {
	for id, o := range printed {
		switch o["kind"] {
		case "Namespace":
			delete(printed, id)
		case "CustomResourceDefinition":
			_ = unstructured.SetNestedField(o, "keep", "metadata", "annotations", "helm.sh/resource-policy")
		case "PodDisruptionBudget":
			if single && leader {
				delete(printed, id)
			}
		case "Deployment", "HorizontalPodAutoscaler":
			for _, field := range []string{"replicas", "minReplicas"} {
				if _, ok, _ := unstructured.NestedFieldNoCopy(o, "spec", field); ok && single {
					_ = unstructured.SetNestedField(o, float64(1), "spec", field)
				}
			}
		}
	}
}

// TestChart_RefusesTypos: the schema refuses names that the chart does not have, and values of another type. It
// takes the values that Helm adds if another chart depends on this one.
func TestChart_RefusesTypos(t *testing.T) {
	dir := chart(t)
	for values, ok := range map[string]bool{
		"":                                      true,
		"global: {a: 1}\nenabled: true":         true,
		"resources: {limits: {cpu: 2}}":         true,
		"podSecurityContext: {runAsUser: null}": true,
		"replica: 2":                            false,
		"replicas: two":                         false,
		"image: {repository: wasmctl}":          false,
		"imagePullSecrets: regcred":             false,
		"imagePullSecrets: [regcred]":           false,
		"tolerations: {key: a}":                 false,
		"args: --shards":                        false,
		"podMonitor: true":                      false,
		"podMonitor: {enable: true}":            false,
		"serviceMonitor: {labels: {a: 1}}":      false,
		"resources: {limit: {memory: 1Gi}}":     false,
		"crds: {enabled: \"false\"}":            false,
		"webhooks: {enabled: true}":             true,
		"webhooks: true":                        false,
	} {
		if _, _, _, err := (release{name: "w", namespace: "ns", values: values}).render(t, dir); (err == nil) != ok {
			t.Errorf("%s: %v", values, err)
		}
	}
}

// everything has a value for each name of the chart.
const everything = `
imagePullPolicy: Always
imagePullSecrets: [{name: regcred}]
replicas: 4
resources: {limits: {memory: 2Gi}, requests: {cpu: 1, memory: 1Gi}}
registryAllow: [ghcr.io/acme, "*.example.com"]
args: [--log-level, debug, --registry-ca, /ca/ca.crt]
env: [{name: HTTPS_PROXY, value: "http://proxy:3128"}]
envFrom: [{secretRef: {name: more}}]
volumes: [{name: ca, configMap: {name: ca}}]
volumeMounts: [{name: ca, mountPath: /ca, readOnly: true}]
initContainers: [&sidecar {name: first, image: a, securityContext: {allowPrivilegeEscalation: false, capabilities: {drop: [ALL]}}}]
extraContainers: [{<<: *sidecar, name: beside}]
nodeSelector: {disk: ssd}
tolerations: [{key: dedicated, operator: Exists}]
affinity: {nodeAffinity: {preferredDuringSchedulingIgnoredDuringExecution: [{weight: 1, preference: {matchExpressions: [{key: a, operator: Exists}]}}]}}
topologySpreadConstraints: [{maxSkew: 1, topologyKey: zone, whenUnsatisfiable: ScheduleAnyway, labelSelector: {matchLabels: {a: b}}}]
priorityClassName: system-cluster-critical
terminationGracePeriodSeconds: 600
podSecurityContext: {runAsUser: null, runAsGroup: null, fsGroup: 7}
securityContext: {runAsUser: 12}
podLabels: {team: "1"}
podAnnotations: {note: "true"}
deploymentLabels: {team: "2"}
deploymentAnnotations: {note: "2"}
serviceAccountAnnotations: {role: arn}
crds: {enabled: true}
networkPolicy: {enabled: false, egress: [{ports: [{port: 8444}]}]}
podDisruptionBudget: {enabled: false}
webhooks: {enabled: true}
podMonitor: {enabled: true, labels: {release: prometheus}, endpoint: {interval: 30s}}
serviceMonitor: {enabled: true, labels: {release: prometheus}, endpoint: {interval: 30s}}
`

// TestChart_IsAdmitted: an API server that validates strictly accepts the objects and the pod of helm test, without
// values and with all of them, also in a namespace of the strictest Pod Security Standard.
func TestChart_IsAdmitted(t *testing.T) {
	cluster, dir := devclustertest.Shared(t), chart(t)
	ns := devclustertest.Namespace(t, cluster)
	client := kubernetes.NewForConfigOrDie(cluster.RESTConfig())
	restricted := []byte(`{"metadata": {"labels": {"pod-security.kubernetes.io/enforce": "restricted"}}}`)
	if _, err := client.CoreV1().Namespaces().Patch(t.Context(), ns, types.MergePatchType, restricted, metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	a := admission{dynamic: dynamic.NewForConfigOrDie(cluster.RESTConfig()), mapper: restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(client.Discovery()))}
	for _, values := range []string{"", everything} {
		installed, hooked, _, err := release{name: "w", namespace: ns, values: values}.render(t, dir)
		if err != nil {
			t.Fatal(err)
		}
		deployment := installed["Deployment w"]
		spec, _, _ := unstructured.NestedMap(deployment, "spec", "template", "spec")
		labels, _, _ := unstructured.NestedMap(deployment, "spec", "template", "metadata", "labels")
		pod := map[string]any{"apiVersion": "v1", "kind": "Pod", "metadata": map[string]any{"name": "w", "namespace": ns, "labels": labels}, "spec": spec}
		for _, o := range []map[string]any{pod, hooked["Pod w-test"]} {
			delete(o["spec"].(map[string]any), "serviceAccountName") //nolint:forcetypeassert // it does not exist
			delete(o["spec"].(map[string]any), "priorityClassName")  //nolint:forcetypeassert // another namespace has it
			a.admits(t, o)
		}
		for id, o := range installed {
			if strings.HasSuffix(fmt.Sprint(o["kind"]), "Monitor") {
				continue // the kinds are those of the Prometheus operator
			}
			if got := a.admits(t, o); id == "Deployment w" && values != "" {
				wantEverything(t, got)
			}
		}
		for _, kind := range []string{"NetworkPolicy", "PodDisruptionBudget", "PodMonitor", "ServiceMonitor"} {
			_, has := installed[kind+" w"]
			if monitor := strings.HasSuffix(kind, "Monitor"); has != (monitor == (values != "")) && (kind != "PodDisruptionBudget" || has) {
				t.Errorf("%s: installed: %t, with the values %q", kind, has, values)
			}
		}
	}
}

// admission asks an API server to accept objects.
type admission struct {
	dynamic dynamic.Interface
	mapper  *restmapper.DeferredDiscoveryRESTMapper
}

// admits returns the object as the API server would store it.
func (a admission) admits(t *testing.T, object map[string]any) *unstructured.Unstructured {
	t.Helper()
	o := &unstructured.Unstructured{Object: object}
	gvk := o.GroupVersionKind()
	mapping, err := a.mapper.RESTMapping(gvk.GroupKind(), gvk.Version)
	if err != nil {
		t.Fatal(err)
	}
	b, err := o.MarshalJSON()
	if err != nil {
		t.Fatal(err)
	}
	got, err := a.dynamic.Resource(mapping.Resource).Namespace(o.GetNamespace()).Patch(context.WithoutCancel(t.Context()), o.GetName(), types.ApplyPatchType, b,
		metav1.PatchOptions{FieldManager: "helm", Force: new(true), DryRun: []string{metav1.DryRunAll}, FieldValidation: metav1.FieldValidationStrict})
	if err != nil {
		t.Errorf("%s %s: %v", o.GetKind(), o.GetName(), err)
	}
	return got
}

// wantEverything checks the Deployment of everything.
func wantEverything(t *testing.T, deployment *unstructured.Unstructured) {
	t.Helper()
	if deployment == nil {
		return
	}
	pod, _, _ := unstructured.NestedMap(deployment.Object, "spec", "template")
	var template corev1.PodTemplateSpec
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(pod, &template); err != nil {
		t.Fatal(err)
	}
	spec, c := template.Spec, template.Spec.Containers[0]
	for what, ok := range map[string]bool{
		"pull policy":    c.ImagePullPolicy == corev1.PullAlways && spec.ImagePullSecrets[0].Name == "regcred",
		"replicas":       strings.Contains(fmt.Sprint(deployment.Object["spec"]), "replicas:4"),
		"resources":      c.Resources.Limits.Memory().String() == "2Gi" && c.Resources.Requests.Cpu().String() == "1",
		"arguments":      c.Args[0] == "serve" && c.Args[len(c.Args)-1] == "/ca/ca.crt",
		"registries":     slices.Contains(c.Args, "--registry-allow=ghcr.io/acme") && slices.Contains(c.Args, "--registry-allow=*.example.com"),
		"environment":    len(c.Env) == 5 && c.EnvFrom[0].SecretRef.Name == "more",
		"volumes":        spec.Volumes[2].Name == "ca" && c.VolumeMounts[2].MountPath == "/ca",
		"containers":     spec.Containers[1].Name == "beside" && spec.InitContainers[0].Name == "first",
		"scheduling":     spec.NodeSelector["disk"] == "ssd" && spec.Tolerations[0].Key == "dedicated" && spec.Affinity.NodeAffinity != nil && spec.TopologySpreadConstraints[0].TopologyKey == "zone",
		"priority":       spec.PriorityClassName == "system-cluster-critical",
		"time to end":    *spec.TerminationGracePeriodSeconds == 600,
		"security":       spec.SecurityContext.RunAsUser == nil && *spec.SecurityContext.FSGroup == 7 && *spec.SecurityContext.RunAsNonRoot && *c.SecurityContext.RunAsUser == 12 && *c.SecurityContext.ReadOnlyRootFilesystem,
		"pod's metadata": template.Labels["team"] == "1" && template.Labels["app.kubernetes.io/instance"] == "w" && template.Annotations["note"] == "true",
		"its own":        deployment.GetLabels()["team"] == "2" && deployment.GetAnnotations()["note"] == "2",
	} {
		if !ok {
			t.Errorf("the %s of the values are not in the Deployment: %+v", what, deployment.Object)
		}
	}
}
