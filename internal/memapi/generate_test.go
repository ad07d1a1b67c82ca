// SPDX-License-Identifier: Apache-2.0

package memapi

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/url"
	"strings"
	"testing"

	sigsyaml "sigs.k8s.io/yaml"
)

const (
	configMapsPath  = "/api/v1/namespaces/$NS/configmaps"
	gadgetsPath     = "/apis/memapi.wasmctl.dev/v1/namespaces/$NS/gadgets"
	reconcilersPath = "/apis/wasmctl.dev/v1alpha1/namespaces/$NS/reconcilers"
)

// request is one request. $NS, $NEXT, ${uid:PATH}, ${rv:PATH} and ${old:PATH} stand for
// values that differ between the servers.
type request struct{ method, path, contentType, body string }

// watched are the watches; the body is the last object of each.
var watched = []request{
	{http.MethodPost, configMapsPath + "?watch=true", "application/json", `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"last","labels":{"tier":"none"}}}`},
	{http.MethodPost, gadgetsPath + "?watch=true&labelSelector=tier%3Dweb", "application/json", `{"apiVersion":"memapi.wasmctl.dev/v1","kind":"Gadget","metadata":{"name":"last","labels":{"tier":"web"}}}`},
}

func kindsOf(t *testing.T, content []byte) (kinds []Kind) {
	t.Helper()
	for doc := range strings.SplitSeq(string(content), "\n---") {
		js, err := sigsyaml.YAMLToJSON([]byte(doc))
		if err != nil {
			t.Fatal(err)
		}
		if string(js) == "null" {
			continue
		}
		list, err := ParseCRD(js)
		if err != nil {
			t.Fatal(err)
		}
		kinds = append(kinds, list...)
	}
	return kinds
}

// drawn are the values that requests are drawn from.
type drawn struct{ *rand.Rand }

func generate(seed uint64, n int) []request {
	d := drawn{rand.New(rand.NewPCG(seed, 0))}
	script := make([]request, n)
	for i := range script {
		script[i] = d.request()
	}
	return script
}

func (d drawn) chance(p float64) bool { return d.Float64() < p }

func one[T any](d drawn, of ...T) T { return of[d.IntN(len(of))] }

// kind draws a path, and the identity of its objects.
func (d drawn) kind() (path string, object map[string]any) {
	switch d.IntN(5) {
	case 0, 1:
		return configMapsPath, map[string]any{"apiVersion": "v1", "kind": "ConfigMap"}
	case 2:
		return reconcilersPath, map[string]any{"apiVersion": "wasmctl.dev/v1alpha1", "kind": "Reconciler"}
	}
	return gadgetsPath, map[string]any{"apiVersion": "memapi.wasmctl.dev/v1", "kind": "Gadget"}
}

func (d drawn) request() request {
	path, object := d.kind()
	name := one(d, "a", "b", "c")
	if d.chance(0.03) {
		name = one(d, "Upper", "x..y", "-x", "under_score", strings.Repeat("x", 254), "a.b")
	}
	query := url.Values{"fieldManager": {one(d, "m", "n")}}
	if d.chance(0.1) {
		query.Set("dryRun", "All")
	}
	sub := ""
	if path != configMapsPath && d.chance(0.25) {
		sub = "/status"
	}
	at := path + "/" + name
	with := func(q url.Values) string { return "?" + q.Encode() }
	switch d.IntN(20) {
	case 0, 1, 2, 3:
		d.fill(object, at, name)
		return request{http.MethodPost, path + with(query), "application/json", string(encode(object))}
	case 4, 5, 6:
		d.fill(object, at, name)
		return request{http.MethodPut, at + sub + with(query), "application/json", string(encode(object))}
	case 7, 8, 9:
		d.fill(object, at, name)
		delete(object, "apiVersion")
		delete(object, "kind")
		return request{http.MethodPatch, at + sub + with(query), "application/merge-patch+json", string(encode(object))}
	case 10, 11:
		return request{http.MethodPatch, at + sub + with(query), "application/json-patch+json", d.operations(path, at)}
	case 12, 13, 14:
		d.fill(object, at, name)
		if d.chance(0.4) {
			query.Set("force", "true")
		}
		meta := object["metadata"].(map[string]any)
		maps.DeleteFunc(meta, func(_ string, v any) bool { return v == nil })
		return request{http.MethodPatch, at + sub + with(query), "application/apply-patch+yaml", string(encode(object))}
	case 15, 16:
		query.Del("fieldManager")
		return request{http.MethodDelete, at + with(query), "application/json", d.deleteOptions(at)}
	case 17:
		return request{http.MethodGet, at + sub, "", ""}
	}
	return request{http.MethodGet, path + d.list(), "", ""}
}

func (d drawn) list() string {
	q := url.Values{}
	if d.chance(0.5) {
		q.Set("labelSelector", one(d, "tier=web", "tier!=web", "tier in (web,db)", "tier notin (web)", "tier", "!tier", "tier in", "a=b=c", "x/y/z=1", "tier=web,zone", "n>1", "tier=-bad-"))
	}
	if d.chance(0.3) {
		q.Set("fieldSelector", one(d, "metadata.name=a", "metadata.name!=a", "metadata.namespace=none", "spec.size=1", "metadata.name", "metadata.name==b,metadata.namespace!=none"))
	}
	if d.chance(0.4) {
		q.Set("limit", one(d, "1", "2"))
	}
	return "?" + q.Encode()
}

func (d drawn) deleteOptions(at string) string {
	if d.chance(0.4) {
		return ""
	}
	options, pre := map[string]any{"apiVersion": "v1", "kind": "DeleteOptions"}, map[string]any{}
	if d.chance(0.4) {
		pre["uid"] = one(d, "${uid:"+at+"}", "other")
	}
	if d.chance(0.4) {
		pre["resourceVersion"] = one(d, "${rv:"+at+"}", "${old:"+at+"}", "1")
	}
	if len(pre) > 0 {
		options["preconditions"] = pre
	}
	if d.chance(0.3) {
		options["propagationPolicy"] = one(d, "Background", "Nonsense")
	}
	return string(encode(options))
}

// operations draws a JSON patch.
func (d drawn) operations(path, at string) string {
	var ops []any
	op := func(kind, path string, value any) {
		o := map[string]any{"op": kind, "path": path}
		if kind != "remove" {
			o["value"] = value
		}
		ops = append(ops, o)
	}
	for range 1 + d.IntN(2) {
		switch d.IntN(7) {
		case 0:
			op("test", "/metadata/uid", one(d, "${uid:"+at+"}", "other"))
		case 1:
			op("test", "/metadata/resourceVersion", one(d, "${rv:"+at+"}", "${old:"+at+"}"))
		case 2:
			op(one(d, "add", "replace"), "/metadata/finalizers", d.finalizers())
		case 3:
			op(one(d, "remove", "test"), "/metadata/labels/tier", one(d, "web", "db"))
		case 4:
			op("add", "/metadata/labels", map[string]any{"tier": one(d, "web", "db")})
		case 5:
			op(one(d, "remove", "replace"), one(d, "/metadata/finalizers/0", "/nothing", "/metadata/name", "/metadata/generation"), one[any](d, "x.dev/f", "a", 7))
		default:
			if path == configMapsPath {
				op("add", "/data", map[string]any{"k": one(d, "1", "2")})
			} else {
				op("add", one(d, "/spec", "/status"), d.spec(path))
			}
		}
	}
	return string(encode(ops))
}

func (d drawn) finalizers() any {
	return one[any](d, []any{"x.dev/f"}, []any{"x.dev/f", "x.dev/g"}, []any{}, nil, []any{"bare"}, []any{"x.dev/f", "x.dev/f"})
}

// fill draws the content of an object.
func (d drawn) fill(object map[string]any, at, name string) {
	meta := map[string]any{"name": name}
	if d.chance(0.05) {
		delete(meta, "name")
	}
	if d.chance(0.06) {
		delete(meta, "name")
		meta["generateName"] = one(d, "gen-", "gen-", "Gen_")
	}
	if d.chance(0.4) {
		meta["labels"] = map[string]any{one(d, "tier", "tier", "zone", "n"): one(d, "web", "db", "3", "")}
	}
	if d.chance(0.05) {
		meta["labels"] = one[any](d, map[string]any{"bad key": "x"}, map[string]any{"tier": "bad value"}, map[string]any{"tier": strings.Repeat("x", 64)}, map[string]any{"a/b/c": "x"}, map[string]any{"tier": 7}, nil)
	}
	if d.chance(0.15) {
		meta["annotations"] = map[string]any{one(d, "note", "x.dev/note", "bad key"): one(d, "1", "2")}
	}
	if d.chance(0.2) {
		meta["finalizers"] = d.finalizers()
	}
	if d.chance(0.3) {
		meta["resourceVersion"] = one(d, "${rv:"+at+"}", "${rv:"+at+"}", "${old:"+at+"}", "1", "x")
	}
	if d.chance(0.12) {
		meta["uid"] = one(d, "${uid:"+at+"}", "other")
	}
	if d.chance(0.04) {
		meta["namespace"] = one(d, "$NS", "other")
	}
	if d.chance(0.08) {
		owner := map[string]any{"apiVersion": "none.wasmctl.dev/v1", "kind": "Pod", "name": "p", "uid": one(d, "1", "2"), "controller": d.chance(0.7)}
		meta["ownerReferences"] = one(d, []any{owner}, []any{owner, map[string]any{"apiVersion": "none.wasmctl.dev/v1", "kind": "Pod", "name": "q", "uid": "3", "controller": true}}, []any{map[string]any{"kind": "Pod"}})
	}
	if d.chance(0.03) {
		meta[one(d, "generation", "unknown")] = one[any](d, 7, "2020-01-01T00:00:00Z")
	}
	if d.chance(0.03) {
		meta[one(d, "creationTimestamp", "deletionTimestamp")] = "2020-01-01T00:00:00Z"
	}
	object["metadata"] = meta
	if d.chance(0.02) {
		object["kind"] = one(d, "Other", "")
	}
	if d.chance(0.02) {
		object["unknown"] = 1
	}
	path := at[:strings.LastIndex(at, "/")]
	if path == configMapsPath {
		if d.chance(0.8) {
			object["data"] = one[any](d, map[string]any{"k": fmt.Sprint(d.IntN(3))}, map[string]any{"k": "1", "l": "2"}, nil, map[string]any{"k": nil, "m": "1"})
		}
		if d.chance(0.03) {
			object["data"] = one[any](d, map[string]any{"k": 7}, map[string]any{"k": true}, []any{}, map[string]any{"bad key": "x"})
		}
		return
	}
	if d.chance(0.9) {
		object["spec"] = d.spec(path)
	}
	if d.chance(0.3) {
		object["status"] = one[any](d, map[string]any{"ready": true}, map[string]any{"observedGeneration": 1 + d.IntN(2)}, map[string]any{"ready": "no"}, nil)
	}
}

// spec draws the spec of a custom resource.
func (d drawn) spec(path string) map[string]any {
	if path == reconcilersPath {
		spec := map[string]any{"module": map[string]any{"image": one(d, "x.dev/a:1", "x.dev/b:1")}}
		for _, f := range []struct {
			key   string
			value any
		}{
			{"mode", one[any](d, "DryRun", "Enforce", "nonsense", nil)},
			{"rollout", one[any](d, map[string]any{}, map[string]any{"reconcile": "none"}, map[string]any{"autoRollback": false, "canary": map[string]any{"percent": 5}})},
			{"concurrency", one[any](d, 1, 5, 0, 1001, "2", 1.5)},
			{"resync", one(d, "5m", "nonsense")},
			{"serviceAccountName", one(d, "a", "A")},
		} {
			if d.chance(0.2) {
				spec[f.key] = f.value
			}
		}
		return spec
	}
	spec := map[string]any{}
	for _, field := range []string{"size", "level", "limit", "code", "parts", "tags", "words", "anything", "unknown", "box"} {
		if !d.chance(0.25) {
			continue
		}
		switch field {
		case "size":
			spec[field] = one[any](d, 1, 2, 2, 1.5, "2", nil)
		case "level":
			spec[field] = one[any](d, "low", "high", "high", "other", nil)
		case "limit":
			spec[field] = one[any](d, 1, 10, 0, 11)
		case "code":
			spec[field] = one(d, "ab", "abc", "abcd", "A")
		case "parts":
			spec[field] = one(d, []any{map[string]any{"name": "x", "count": 1}}, []any{map[string]any{"name": "y"}, map[string]any{"name": "x"}}, []any{}, []any{map[string]any{"count": 1}}, []any{map[string]any{"name": "x"}, map[string]any{"name": "x"}})
		case "tags":
			spec[field] = one(d, []any{"t"}, []any{"u", "t"}, []any{"t", "t"}, []any{})
		case "words":
			spec[field] = one(d, []any{"a"}, []any{"b", "a"}, []any{})
		case "anything":
			spec[field] = map[string]any{"x": map[string]any{"y": 1}}
		case "box":
			spec[field] = one[any](d, map[string]any{}, map[string]any{"color": "blue"}, nil)
		default:
			spec[field] = 1
		}
	}
	return spec
}
