// SPDX-License-Identifier: Apache-2.0

package conformance

import (
	"fmt"
	"maps"
	"strings"

	"github.com/wasmctl/wasmctl/abi"
)

// configMap identifies a ConfigMap in a request.
func configMap(name string) object {
	return object{"apiVersion": "v1", "kind": "ConfigMap", "namespace": "default", "name": name}
}

// getA requests a ConfigMap.
var getA = do("op", "op", "api_get", "request", configMap("a"))

// and returns a with more keys.
func and(a object, more ...any) object {
	out := maps.Clone(a)
	for i := 0; i < len(more); i += 2 {
		out[more[i].(string)] = more[i+1] //nolint:forcetypeassert // a mistake in a case
	}
	return out
}

// operationRequest is a request of an operation.
type operationRequest struct {
	id  string
	op  abi.Op
	req object
}

// operationRequests returns the requests of each operation: one with the required keys, and others
// with all permitted ones.
func operationRequests() []operationRequest {
	cm, all, obj := configMap("a"), configMap("a"), child("größe")
	delete(all, "name")
	scale := object{"apiVersion": "apps/v1", "kind": "Deployment", "namespace": "default", "name": "web", "subresource": "scale"}
	write := []any{"dryRun", true, "fieldManager", "me", "fieldValidation", "Strict"}
	both := object{"uid": "5c2f1f3e", "resourceVersion": "4711"}
	jsonPatch := list{
		object{"op": "test", "path": "/a", "value": nil},
		object{"op": "add", "path": "/größe", "value": object{"n": 1}},
		object{"op": "move", "from": "/a", "path": "/b"},
		object{"op": "copy", "from": "/a", "path": "/c"},
		object{"op": "replace", "path": "/d/0", "value": "x"},
		object{"op": "remove", "path": "/e"},
	}
	merge := object{"data": object{"a": nil, "b": "x"}, "n": int64(1) << 60}
	return []operationRequest{
		{"plain", abi.OpAPIGet, cm},
		{"cluster-scoped", abi.OpAPIGet, object{"apiVersion": "v1", "kind": "Namespace", "name": "größe"}},
		{"options", abi.OpAPIGet, and(scale, "resourceVersion", "0")},
		{"plain", abi.OpAPIList, all},
		{"all-namespaces", abi.OpAPIList, object{"apiVersion": "v1", "kind": "ConfigMap"}},
		{"options", abi.OpAPIList, and(all, "labelSelector", "a=b,c!=d", "fieldSelector", "metadata.name=a", "limit", 500, "continue", "abc==", "resourceVersion", "0", "resourceVersionMatch", "NotOlderThan")},
		{"plain", abi.OpAPICreate, object{"object": obj}},
		{"options", abi.OpAPICreate, object{"object": obj, "dryRun": true, "fieldManager": "me", "fieldValidation": "Strict"}},
		{"subresource", abi.OpAPICreate, object{"apiVersion": "v1", "kind": "Pod", "namespace": "default", "name": "p", "subresource": "eviction", "object": object{"kind": "Eviction"}}},
		{"plain", abi.OpAPIUpdate, object{"object": obj}},
		{"options", abi.OpAPIUpdate, and(object{"object": obj, "subresource": "status", "preconditions": both}, write...)},
		{"subresource", abi.OpAPIUpdate, and(scale, "object", object{"kind": "Scale", "spec": object{"replicas": 3}})},
		{"json", abi.OpAPIPatch, and(cm, "patchType", "json", "patch", jsonPatch)},
		{"merge", abi.OpAPIPatch, and(cm, "patchType", "merge", "patch", merge)},
		{"strategic", abi.OpAPIPatch, and(cm, "patchType", "strategic", "patch", merge)},
		{"options", abi.OpAPIPatch, and(and(cm, "patchType", "merge", "patch", merge, "subresource", "status", "preconditions", object{"uid": "u"}), write...)},
		{"plain", abi.OpAPIApply, object{"object": obj}},
		{"options", abi.OpAPIApply, and(object{"object": obj, "force": true, "subresource": "status", "preconditions": object{"resourceVersion": "1"}}, write...)},
		{"subresource", abi.OpAPIApply, and(scale, "object", object{"kind": "Scale"}, "force", true)},
		{"plain", abi.OpAPIDelete, cm},
		{"options", abi.OpAPIDelete, and(cm, "dryRun", true, "propagationPolicy", "Foreground", "gracePeriodSeconds", 30, "preconditions", both)},
		{"no-grace", abi.OpAPIDelete, and(cm, "gracePeriodSeconds", 0)},
		{"plain", abi.OpCacheGet, cm},
		{"plain", abi.OpCacheList, all},
		{"options", abi.OpCacheList, and(all, "labelSelector", "a in (b, c)", "fieldSelector", "spec.a=b", "owner", "5c2f", "limit", 2, "continue", "größe")},
		{"plain", abi.OpEventRecord, object{"reason": "Created"}},
		{"options", abi.OpEventRecord, object{
			"type": "Warning", "reason": "NotOwned", "action": "Apply", "note": "größe: " + strings.Repeat("x", 1000),
			"regarding": and(cm, "uid", "5c2f1f3e"), "related": object{"apiVersion": "example.com/v1", "kind": "Color", "name": "blue"},
		}},
	}
}

// operationCases are about each operation with each of its request keys.
func operationCases() []Case {
	var cases []Case
	for _, r := range operationRequests() {
		about := fmt.Sprintf("%s sends each key as it is meant, and reads the answer", r.op)
		cases = append(cases, Case{string(r.op) + "." + r.id, 6, about, func(p *probe) error { return p.operation(r.op, r.req) }})
	}
	return append(
		cases,
		configCase("set", object{"key": "greeting"}, "hello"),
		configCase("unicode", object{"key": "größe"}, "klein"),
		configCase("unset", object{"key": "no such key"}, ""),
		configCase("all", object{}, object{"greeting": "hello", "größe": "klein"}),
		Case{
			"import.unknown", 9, "an import that no host has is UNSUPPORTED",
			refuses(do("op", "op", "teleport", "request", object{}), abi.StatusUnsupported),
		},
	)
}

func configCase(id string, req object, want any) Case {
	return Case{"config_get." + id, 6, "config_get serves the settings", answered(do("op", "op", "config_get", "request", req), object{"body": want})}
}

// answerObject is the object in the cluster's answer.
func answerObject() object {
	o := child("answer")
	o["metadata"].(object)["managedFields"] = list{object{"manager": "größe"}} //nolint:forcetypeassert // made above
	return o
}

// operation carries out an operation, and compares the cluster's request and the guest's answer.
func (p *probe) operation(op abi.Op, req object) error {
	body := any(answerObject())
	if op == abi.OpAPIList || op == abi.OpCacheList {
		body = object{"apiVersion": "v1", "kind": "ConfigMapList", "metadata": object{"continue": "more", "resourceVersion": "9"}, "items": list{child("a"), child("b")}}
	}
	p.rig.api.set(abi.Response{Body: encode(body)})
	s, err := p.step(do("op", "op", string(op), "request", req))
	if err != nil {
		return err
	}
	want := object{"body": body}
	if op == abi.OpAPIDelete || op == abi.OpEventRecord {
		want = object{}
		delete(s, "body") // an SDK may pass it on
	}
	return first(p.asked(asked{op, encode(req)}), alike("answer", s, want))
}

// asked compares the requests to the cluster, by value.
func (p *probe) asked(want ...asked) error {
	got := p.rig.api.requests()
	if len(got) != len(want) {
		return fmt.Errorf("operations: got %d, want %d", len(got), len(want))
	}
	for i, g := range got {
		if g.op != want[i].op {
			return fmt.Errorf("operation %d: got %s, want %s", i, g.op, want[i].op)
		}
		a, err := abi.DecodeObject(g.req)
		if err != nil {
			return fmt.Errorf("%s: request: %w", g.op, err)
		}
		b, err := abi.DecodeObject(want[i].req)
		if err = first(err, same(string(g.op)+": request", a, b)); err != nil {
			return err
		}
	}
	return nil
}

// answerCases are about answers of all sizes, and about the time for which they are valid.
func answerCases() []Case {
	var cases []Case
	for _, n := range []int{1, 100, 1000, 8000, 8192, 9000, 65536, 1 << 20, 3 << 20} {
		cases = append(cases, Case{fmt.Sprintf("answer.%d", n), 5, fmt.Sprintf("an answer of some %d bytes is read, and asked for once", n), func(p *probe) error {
			return p.answers(n)
		}})
	}
	return append(
		cases,
		Case{"answer.sequence", 5, "large and small answers after each other", func(p *probe) error { return p.answers(500_000, 10, 900_000, 1, 20_000, 20_000) }},
		Case{"answer.too-large", 6, "an answer over 4 MiB is TOO_LARGE", func(p *probe) error {
			p.rig.api.set(abi.Response{Body: encode(object{"data": strings.Repeat("x", abi.MaxBytes)})})
			err := refuses(getA, abi.StatusTooLarge)(p)
			return first(err, p.asked(asked{abi.OpAPIGet, encode(configMap("a"))}))
		}},
		Case{"answer.nil", 6, "an answer that is nil", func(p *probe) error {
			p.rig.api.set(abi.Response{Body: encode(nil)})
			return answered(do("op", "op", "event_record", "request", object{"reason": "Seen"}), object{})(p)
		}},
		Case{"answer.empty", 6, "an answer without a body", func(p *probe) error {
			p.rig.api.set(abi.Response{})
			s, err := p.step(do("op", "op", "api_delete", "request", configMap("a")))
			return first(err, same("status", orZero(s["status"]), 0))
		}},
	)
}

// answers makes the guest request answers of these sizes in one run.
func (p *probe) answers(sizes ...int) error {
	var script []abi.Response
	var steps list
	var want []asked
	for i, n := range sizes {
		script = append(script, abi.Response{Body: encode(object{"n": i, "data": strings.Repeat("größe ", n/8+1)})})
		req := configMap(fmt.Sprint("a", i))
		steps = append(steps, do("op", "op", "api_get", "request", req))
		want = append(want, asked{abi.OpAPIGet, encode(req)})
	}
	p.rig.api.set(script...)
	got, err := p.steps(steps...)
	if err != nil {
		return err
	}
	for i, n := range sizes {
		if err := same("answer", got[i]["body"], object{"n": i, "data": strings.Repeat("größe ", n/8+1)}); err != nil {
			return err
		}
	}
	return p.asked(want...)
}
