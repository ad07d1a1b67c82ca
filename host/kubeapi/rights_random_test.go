// SPDX-License-Identifier: Apache-2.0

package kubeapi

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/wasmctl/wasmctl/abi"
)

// secretWord is in values that the module may not see without get.
const secretWord = "unseen-"

var dangling = []any{map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "name": "none", "uid": "00000000-0000-4000-8000-000000000000"}}

// metaLeaves are those of every kind.
var metaLeaves = []leaf{
	{"metadata.labels.l", []any{"1", "2"}},
	{"metadata.annotations.a", []any{"1", "2"}},
	{"metadata.ownerReferences", []any{dangling}},
	{"metadata.generateName", []any{"g-"}},
	{"metadata.deletionGracePeriodSeconds", []any{int64(7)}},
}

var metaPatterns = []string{"metadata", "metadata.labels", "metadata.labels.l", "metadata.annotations.a", "metadata.ownerReferences"}

func modelKinds() []*modelKind {
	kind := func(group, version, name, resource string, subs, patterns []string, leaves ...leaf) *modelKind {
		return &modelKind{
			gvk: schema.GroupVersionKind{Group: group, Version: version, Kind: name}, resource: resource, versions: []string{version},
			subs: subs, leaves: append(leaves, metaLeaves...), patterns: append(patterns, metaPatterns...),
		}
	}
	const template = "spec.template.spec."
	container := func(name, image string) any { return map[string]any{"name": name, "image": image} }
	port := func(n int64) any {
		return map[string]any{"name": fmt.Sprint("p", n), "port": n, "protocol": "TCP", "targetPort": n}
	}
	kinds := []*modelKind{
		kind("", "v1", "ConfigMap", "configmaps", nil, []string{"data", "data.mine", "binaryData"},
			leaf{"data.mine", []any{"1", "2"}}, leaf{"data.theirs", []any{"3"}}, leaf{"binaryData.b", []any{"eA=="}}, leaf{"immutable", []any{false}}),
		kind("", "v1", "Secret", "secrets", nil, []string{"data", "data.mine", "stringData"},
			leaf{"data.mine", []any{"eA==", "eQ=="}}, leaf{"stringData.theirs", []any{"z"}}, leaf{"type", []any{"Opaque"}}),
		kind("", "v1", "Service", "services", []string{"status"}, []string{"spec", "spec.selector", "spec.selector.app", "spec.ports", "spec.type", "spec.ports[name=p80].targetPort", "status"},
			leaf{"spec.selector.app", []any{"1", "2"}}, leaf{"spec.ports", []any{[]any{port(80)}, []any{port(80), port(81)}}}, leaf{"spec.type", []any{"ClusterIP", "NodePort"}},
			leaf{"spec.sessionAffinity", []any{"None", "ClientIP"}}, leaf{"status.conditions", []any{[]any{}}}),
		kind("apps", "v1", "Deployment", "deployments", []string{"status", "scale"}, []string{"spec", "spec.replicas", template + "containers[name=app].image", template + "nodeSelector.a", "status"},
			leaf{"spec.replicas", []any{int64(0), int64(1)}}, leaf{template + "nodeSelector.a", []any{"1", "2"}},
			leaf{template + "containers", []any{[]any{container("app", "1")}, []any{container("app", "2")}, []any{container("side", "1")}}},
			leaf{"spec.paused", []any{true}}, leaf{"status.observedGeneration", []any{int64(1), int64(2)}}),
		kind("coordination.k8s.io", "v1", "Lease", "leases", nil, []string{"spec", "spec.holderIdentity"},
			leaf{"spec.holderIdentity", []any{"1", "2"}}, leaf{"spec.leaseDurationSeconds", []any{int64(9)}}),
		kind("autoscaling", "v2", "HorizontalPodAutoscaler", "horizontalpodautoscalers", []string{"status"}, []string{"spec.minReplicas", "spec.targetCPUUtilizationPercentage", "metadata.annotations", "status"},
			leaf{"spec.minReplicas", []any{int64(1), int64(2)}}, leaf{"spec.maxReplicas", []any{int64(5)}}, leaf{"spec.targetCPUUtilizationPercentage", []any{int64(50)}},
			leaf{"status.currentReplicas", []any{int64(1)}}),
		kind("rbac.authorization.k8s.io", "v1", "RoleBinding", "rolebindings", nil, []string{"subjects", "roleRef"},
			leaf{"subjects", []any{[]any{map[string]any{"kind": "User", "name": "u", "apiGroup": "rbac.authorization.k8s.io"}}}}),
		kind("kubeapi.wasmctl.dev", "v1", "Sprocket", "sprockets", []string{"status", "scale"}, []string{"spec", "spec.size", "status", "status.size"},
			leaf{"spec.size", []any{int64(1), int64(2)}}, leaf{"spec.share", []any{0.5}}, leaf{"status.size", []any{int64(1), int64(2)}}),
		kind("", "v1", "Namespace", "namespaces", []string{"status"}, []string{"status"},
			leaf{"status.phase", []any{"Active"}}, leaf{"spec.finalizers", []any{[]any{"kubernetes"}}}),
	}
	kinds[3].scaledPath, kinds[7].scaledPath = "spec.replicas", "spec.size"
	kinds[5].versions = []string{"v1", "v2"}
	kinds[8].cluster = true
	return kinds
}

// base is an object of a kind that the API server takes.
func (k *modelKind) base(ns, name, word string) map[string]any {
	meta := map[string]any{"name": name, "annotations": map[string]any{"word": word}}
	if !k.cluster {
		meta["namespace"] = ns
	}
	o := map[string]any{"apiVersion": k.apiVersion(), "kind": k.gvk.Kind, "metadata": meta}
	labels := map[string]any{"app": "x"}
	switch k.gvk.Kind {
	case "ConfigMap":
		o["data"] = map[string]any{"theirs": word, "mine": "0"}
	case "Secret":
		o["stringData"] = map[string]any{"theirs": word, "mine": "0"}
	case "Service":
		o["spec"] = map[string]any{"selector": map[string]any{"app": "x", "tier": "front"}, "ports": []any{map[string]any{"name": "p80", "port": 80, "protocol": "TCP"}}}
	case "Deployment":
		o["spec"] = map[string]any{
			"replicas": 0, "selector": map[string]any{"matchLabels": labels},
			"template": map[string]any{"metadata": map[string]any{"labels": labels}, "spec": map[string]any{
				"nodeSelector": map[string]any{"theirs": "1"}, "containers": []any{map[string]any{"name": "app", "image": "0"}, map[string]any{"name": "side", "image": "0"}},
			}},
		}
	case "Lease":
		o["spec"] = map[string]any{"holderIdentity": word}
	case "HorizontalPodAutoscaler":
		o["spec"] = map[string]any{"maxReplicas": 3, "scaleTargetRef": map[string]any{"apiVersion": "apps/v1", "kind": "Deployment", "name": word}}
	case "RoleBinding":
		o["roleRef"] = map[string]any{"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "view"}
	case "Sprocket":
		o["spec"] = map[string]any{"size": 1}
	}
	return o
}

func pick[T any](r *rand.Rand, list []T) T { return list[r.IntN(len(list))] }

// rulesAbout are rules about a kind that allow some of a write, or all of it: a
// model test that is always refused finds nothing.
func rulesAbout(r *rand.Rand, k *modelKind, op abi.Op, req map[string]any) []abi.Capability {
	sub, _ := req["subresource"].(string)
	var rules []abi.Capability
	for i := range 1 + r.IntN(3) {
		c := abi.Capability{Group: k.gvk.Group, Resource: k.resource}
		for _, verb := range []string{"get", "create", "update", "patch", "delete"} {
			if r.IntN(3) == 0 && (verb != "delete" || !k.cluster) {
				c.Verbs = append(c.Verbs, verb)
			}
		}
		if i == 0 || len(c.Verbs) == 0 {
			c.Verbs = append(c.Verbs, verbs[op])
		}
		if r.IntN(5) > 0 {
			for range 1 + r.IntN(3) {
				c.Fields = append(c.Fields, pick(r, k.patterns))
			}
			for _, l := range k.leaves {
				if strings.Contains(string(msgOf(req)), l.path[strings.LastIndex(l.path, ".")+1:]) && r.IntN(4) > 0 && !strings.Contains(l.path, "ownerReferences") {
					c.Fields = append(c.Fields, l.path)
				}
			}
		}
		if sub != "" && r.IntN(4) > 0 {
			c.Subresources = []string{sub}
		} else if len(k.subs) > 0 && r.IntN(6) == 0 {
			c.Subresources = []string{pick(r, k.subs)}
		}
		if r.IntN(8) == 0 {
			c.Names = []string{"a"}
		}
		rules = append(rules, c)
	}
	if r.IntN(3) == 0 && len(k.subs) > 0 { // those of every module
		rules = append(rules, abi.Capability{Group: k.gvk.Group, Resource: k.resource, Subresources: []string{"status"}, Verbs: []string{"get", "update", "patch"}, Fields: []string{"status"}})
	}
	return rules
}

func msgOf(req map[string]any) []byte { return []byte(fmt.Sprint(req["object"], req["patch"])) }

// put sets a field by its dotted path.
func put(o map[string]any, path string, value any) {
	keys := strings.Split(path, ".")
	for _, key := range keys[:len(keys)-1] {
		next, ok := o[key].(map[string]any)
		if !ok {
			next = map[string]any{}
			o[key] = next
		}
		o = next
	}
	o[keys[len(keys)-1]] = copied(value)
}

func drop(o map[string]any, path string) {
	keys := strings.Split(path, ".")
	for _, key := range keys[:len(keys)-1] {
		o, _ = o[key].(map[string]any)
	}
	delete(o, keys[len(keys)-1])
}

// randomWrite returns a write of one object. current is its state, or nil.
func randomWrite(r *rand.Rand, k *modelKind, ns, name string, current map[string]any) (abi.Op, map[string]any) {
	req := map[string]any{"apiVersion": k.apiVersion(), "kind": k.gvk.Kind, "name": name}
	if !k.cluster {
		req["namespace"] = ns
	}
	version := pick(r, k.versions)
	req["apiVersion"] = strings.TrimPrefix(k.gvk.Group+"/"+version, "/")
	if len(k.subs) > 0 && r.IntN(3) == 0 {
		req["subresource"] = pick(r, k.subs)
	}
	if r.IntN(6) == 0 {
		req["fieldManager"] = pick(r, []string{"they", "wasmctl/tester/2"})
	}
	if r.IntN(8) == 0 {
		req["dryRun"] = true
	}
	op := pick(r, []abi.Op{abi.OpAPICreate, abi.OpAPIUpdate, abi.OpAPIUpdate, abi.OpAPIApply, abi.OpAPIApply, abi.OpAPIPatch, abi.OpAPIPatch, abi.OpAPIPatch, abi.OpAPIDelete})
	switch op {
	case abi.OpAPIDelete:
		delete(req, "subresource")
		delete(req, "fieldManager")
		if r.IntN(2) == 0 {
			req["propagationPolicy"] = pick(r, []string{"Background", "Orphan", "Foreground"})
		}
	case abi.OpAPIPatch:
		randomPatch(r, k, req)
	default:
		if op == abi.OpAPICreate {
			delete(req, "subresource")
		}
		req["object"] = randomBody(r, k, req, op, ns, name, current)
		if op == abi.OpAPIApply && r.IntN(2) == 0 {
			req["force"] = true
		}
	}
	return op, req
}

func randomBody(r *rand.Rand, k *modelKind, req map[string]any, op abi.Op, ns, name string, current map[string]any) map[string]any {
	var o map[string]any
	switch {
	case req["subresource"] == "scale":
		o = map[string]any{"apiVersion": "autoscaling/v1", "kind": "Scale", "metadata": map[string]any{"name": name, "namespace": ns}, "spec": map[string]any{"replicas": r.IntN(3)}}
		return o
	case op == abi.OpAPIUpdate && current != nil && r.IntN(5) > 0:
		o = copied(current).(map[string]any)
		if r.IntN(2) == 0 {
			drop(o, "metadata.resourceVersion")
		}
		if r.IntN(3) == 0 {
			drop(o, "metadata.uid")
		}
		if r.IntN(3) == 0 {
			drop(o, "metadata.managedFields")
		}
	case op == abi.OpAPIApply || r.IntN(3) == 0:
		o = map[string]any{"metadata": map[string]any{"name": name}}
		if !k.cluster {
			put(o, "metadata.namespace", ns)
		}
		if r.IntN(2) == 0 {
			o = k.base(ns, name, "mine")
		}
	default:
		o = k.base(ns, name, "mine")
	}
	o["apiVersion"], o["kind"] = req["apiVersion"], k.gvk.Kind
	for range r.IntN(4) {
		l := pick(r, k.leaves)
		if r.IntN(4) == 0 {
			drop(o, l.path)
		} else {
			put(o, l.path, pick(r, l.values))
		}
	}
	return o
}

// randomPatch fills in a patch.
func randomPatch(r *rand.Rand, k *modelKind, req map[string]any) {
	req["patchType"] = pick(r, []string{"json", "merge", "strategic"})
	patch := map[string]any{}
	var ops []any
	for range 1 + r.IntN(2) {
		l := pick(r, k.leaves)
		if req["subresource"] == "scale" {
			l = leaf{"spec.replicas", []any{int64(0), int64(1), int64(2)}}
		}
		value := pick(r, l.values)
		put(patch, l.path, value)
		pointer := "/" + strings.ReplaceAll(l.path, ".", "/")
		op := operation(pick(r, []string{"add", "add", "replace", "test", "copy", "move"}), pointer, value)
		if op["op"] == "copy" || op["op"] == "move" {
			op["from"] = "/" + strings.ReplaceAll(pick(r, k.leaves).path, ".", "/")
		}
		switch r.IntN(6) {
		case 0:
			put(patch, l.path, nil)
			op = operation("remove", pointer, nil)
		case 1:
			put(patch, "metadata.managedFields", []any{})
			op = operation("replace", pick(r, []string{"metadata/managedFields", "/metadata/managedFields", "/metadata/managedFields/0", "/metadata", ""}), pick(r, []any{[]any{}, map[string]any{}, nil}))
		case 2:
			parent := l.path[:strings.LastIndex("."+l.path, ".")]
			parent = strings.TrimSuffix(parent, ".")
			if parent != "" && req["patchType"] == "strategic" {
				put(patch, parent+".$patch", pick(r, []any{"replace", "delete"}))
			} else if parent != "" {
				put(patch, parent, nil)
				op = operation("remove", "/"+strings.ReplaceAll(parent, ".", "/"), nil)
			}
		case 3:
			patch["apiVersion"] = strings.TrimPrefix(k.gvk.Group+"/"+pick(r, k.versions), "/")
		}
		ops = append(ops, op)
	}
	if req["patch"] = patch; req["patchType"] == "json" {
		req["patch"] = ops
	}
	maps.DeleteFunc(req, func(_ string, v any) bool { return v == nil })
}
