// SPDX-License-Identifier: Apache-2.0

package kubeapi

import (
	"cmp"
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/wasmctl/wasmctl/abi"
)

// packedCache is a cache of objects in the order of their keys.
type packedCache struct {
	owner   string // that was asked for, as index
	index   *abi.Index
	told    []abi.IndexEntry
	objects []map[string]any
	err     error
	asked   []int // the limits

	backwards uint64 // counts RanBackwards
}

func keyOf(o map[string]any) abi.Key {
	return abi.Key{Namespace: fmt.Sprint(at(o, "metadata", "namespace")), Name: fmt.Sprint(at(o, "metadata", "name"))}
}

func compareKeys(a, b abi.Key) int {
	return cmp.Or(strings.Compare(a.Namespace, b.Namespace), strings.Compare(a.Name, b.Name))
}

// cached returns a ConfigMap.
func cached(namespace, name string, size int) map[string]any {
	return map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap",
		"metadata": map[string]any{"namespace": namespace, "name": name, "labels": map[string]any{"first": name[:1]}},
		"data":     map[string]any{"k": strings.Repeat("x", size)},
	}
}

// add puts a ConfigMap into the cache.
func (p *packedCache) add(namespace, name string, size int) {
	p.objects = append(p.objects, cached(namespace, name, size))
	slices.SortFunc(p.objects, func(a, b map[string]any) int { return compareKeys(keyOf(a), keyOf(b)) })
}

// Get implements Cache.
func (p *packedCache) Get(_ schema.GroupVersionResource, key abi.Key) ([]byte, error) {
	for _, o := range p.objects {
		if keyOf(o) == key {
			return abi.AppendValue(nil, o)
		}
	}
	return nil, p.err
}

// List implements Cache.
func (p *packedCache) List(
	_ schema.GroupVersionResource, namespace, owner string, index *abi.Index, matches func(l labels.Labels, object []byte) bool, after abi.Key, limit int,
) (list [][]byte, more bool, last abi.Key, err error) {
	p.owner, p.index = owner, index
	p.asked = append(p.asked, limit)
	for _, o := range p.objects {
		key := keyOf(o)
		l := labels.Set{"first": key.Name[:1]}
		b, err := abi.AppendValue(nil, o)
		if err != nil {
			return nil, false, last, err
		}
		if compareKeys(key, after) <= 0 || namespace != "" && key.Namespace != namespace || !matches(l, b) {
			continue
		}
		if len(list) == limit {
			return list, true, last, p.err
		}
		list, last = append(list, b), key
	}
	return list, false, last, p.err
}

// Stored implements Cache.
func (p *packedCache) Stored(schema.GroupVersionResource, abi.Key) (abi.Stored, bool) {
	return nil, false
}

// Epoch implements Cache.
func (p *packedCache) Epoch() uint64 { return p.backwards }

// RanBackwards implements Cache.
func (p *packedCache) RanBackwards(schema.GroupVersionResource) { p.backwards++ }

// Learn implements Cache.
func (p *packedCache) Learn(_ schema.GroupVersionResource, _ *abi.Index, entries []abi.IndexEntry) {
	p.told = append(p.told, entries...)
}

// whyNot is an error of a cache.
type whyNot abi.Status

// Error implements error.
func (w whyNot) Error() string { return "no answer" }

// Status returns the reason.
func (w whyNot) Status() abi.Status { return abi.Status(w) }

func cachedSession(t *testing.T) (*session, *packedCache) {
	t.Helper()
	p := &packedCache{}
	s := &session{API: offlineAPI(t, everything()), t: t, ns: "a", log: &strings.Builder{}}
	s.cfg.Cache = p
	return s, p
}

func TestCache_Get(t *testing.T) {
	s, p := cachedSession(t)
	p.add("a", "x", 10)
	if diff := gocmp.Diff(p.objects[0], s.ok(abi.OpCacheGet, s.ref("x"))); diff != "" {
		t.Error(diff)
	}
	gone := s.fails(404, `configmaps "none" not found`, abi.OpCacheGet, s.ref("none"))
	if gone["reason"] != "NotFound" || at(gone, "details", "name") != "none" || at(gone, "details", "kind") != "configmaps" {
		t.Errorf("status: %v", gone)
	}
	p.add("a", "big", abi.MaxBytes)
	s.fails(abi.StatusTooLarge, "the limit is", abi.OpCacheGet, s.ref("big"))
	s.fails(abi.StatusBadRequest, "name is needed", abi.OpCacheGet, map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "namespace": "a"})
	s.fails(abi.StatusBadRequest, "resourceVersion is not a key of cache_get", abi.OpCacheGet, with(s.ref("x"), "resourceVersion", "1"))
}

// TestCache_SaysWhyThereIsNoAnswer, and which watch to declare.
func TestCache_SaysWhyThereIsNoAnswer(t *testing.T) {
	s, p := cachedSession(t)
	list := map[string]any{"apiVersion": "apps/v1", "kind": "Deployment"}
	for err, want := range map[error]struct {
		status abi.Status
		text   string
	}{
		whyNot(abi.StatusNotSynced):                           {abi.StatusNotSynced, "no answer"},
		fmt.Errorf("around: %w", whyNot(abi.StatusNotSynced)): {abi.StatusNotSynced, "around: no answer"},
		whyNot(abi.StatusBadRequest):                          {abi.StatusBadRequest, `{"group":"apps","version":"v1","kind":"Deployment"}`},
		errors.New("broken"):                                  {abi.StatusInternal, "cache of deployments.apps: broken"},
	} {
		p.err = err
		s.fails(want.status, want.text, abi.OpCacheGet, with(list, "namespace", "a", "name", "none"))
		s.fails(want.status, want.text, abi.OpCacheList, list)
	}
	s.cfg.Cache = nil
	s.fails(abi.StatusUnsupported, "cache_list", abi.OpCacheList, list)
}

// TestCache_AsksThePolicyAsTheAPIDoes: a module sees nothing in the cache that it
// could not get.
func TestCache_AsksThePolicyAsTheAPIDoes(t *testing.T) {
	s, p := cachedSession(t)
	p.add("a", "x", 1)
	s.cfg.Policy = NewPolicy([]abi.Capability{{Resource: "configmaps", Verbs: []string{"get"}, Names: []string{"x"}, Namespaces: []string{"a"}}})
	all := map[string]any{"apiVersion": "v1", "kind": "ConfigMap"}
	s.ok(abi.OpCacheGet, s.ref("x"))
	s.fails(abi.StatusDenied, "may not get configmaps in namespace a", abi.OpCacheGet, s.ref("y"))
	s.fails(abi.StatusDenied, "may not list configmaps in namespace a", abi.OpCacheList, with(all, "namespace", "a"))
	s.cfg.Policy = NewPolicy([]abi.Capability{{Resource: "configmaps", Verbs: []string{"list"}, Namespaces: []string{"a"}}})
	s.ok(abi.OpCacheList, with(all, "namespace", "a"))
	s.fails(abi.StatusDenied, "may not list configmaps in all namespaces", abi.OpCacheList, all)
}

func TestCache_ListRefusesBadRequests(t *testing.T) {
	s, _ := cachedSession(t)
	list := map[string]any{"apiVersion": "v1", "kind": "ConfigMap"}
	for text, req := range map[string]map[string]any{
		"labelSelector":          with(list, "labelSelector", "a b c"),
		"is not from an answer":  with(list, "continue", "nonsense!"),
		`"MS9h" is not from`:     with(list, "continue", "MS9h"), // 1/a
		"limit: -1 is negative":  with(list, "limit", -1),
		"fieldSelector":          with(list, "fieldSelector", "a"),
		"name is not a key":      with(list, "name", "x"),
		"entries: need an index": with(list, "entries", []any{map[string]any{"name": "a", "uid": "u", "resourceVersion": "1"}}),
		"value: needs an index":  with(list, "value", "x"),
	} {
		s.fails(abi.StatusBadRequest, text, abi.OpCacheList, req)
	}
}

// TestCacheList_IndexesAreOfOneModule: a module's index entries do not reach another revision or
// another controller.
func TestCacheList_IndexesAreOfOneModule(t *testing.T) {
	cache := &packedCache{}
	cache.add("a", "x", 1)
	api := offlineAPI(t, everything())
	api.cfg.Cache = cache
	list := map[string]any{"apiVersion": "v1", "kind": "ConfigMap"}
	type index struct {
		scope any
		name  string
	}
	ask := func(api *API, key string, value any) index {
		t.Helper()
		if got := api.Call(t.Context(), abi.OpCacheList, msg(t, with(list, key, value))); got.Status != abi.StatusOK || cache.index == nil {
			t.Fatalf("%v %s, index %v", got.Status, got.Body, cache.index)
		}
		return index{cache.index.Scope, cache.index.Name}
	}
	next, same := api.WithPolicy(everything()), api.WithObserver(nil)
	if one := ask(api, "index", "owner"); one != ask(same, "index", "owner") || one == ask(next, "index", "owner") || one == ask(api, "index", "other") {
		t.Errorf("indexes are mixed up: %v", one)
	}
	if one := ask(api, "fieldSelector", "a!=1,data.k=x"); one != ask(same, "fieldSelector", "data.k=y") || one == ask(next, "fieldSelector", "data.k=x") || one == ask(api, "fieldSelector", "data.l=y") || one.name != "data.k" {
		t.Errorf("indexes of fields: %v", one)
	}
	entry := map[string]any{"namespace": "a", "name": "x", "uid": "u", "resourceVersion": "1", "values": []any{"v"}}
	api.Call(t.Context(), abi.OpCacheList, msg(t, with(list, "index", "owner", "value", "w", "entries", []any{entry})))
	want := []abi.IndexEntry{{Namespace: "a", Name: "x", UID: "u", ResourceVersion: "1", Values: []string{"v"}}}
	if !reflect.DeepEqual(cache.told, want) || cache.index.Value != "w" {
		t.Errorf("told %v, value %q", cache.told, cache.index.Value)
	}
}

func (s *session) listed(req map[string]any) (keys []abi.Key, token string) {
	s.t.Helper()
	got := s.ok(abi.OpCacheList, req)
	if got["apiVersion"] != "v1" || got["kind"] != "ConfigMapList" {
		s.t.Errorf("list: %v", got["kind"])
	}
	for _, o := range got["items"].([]any) {
		keys = append(keys, keyOf(o.(map[string]any)))
	}
	token, _ = at(got, "metadata", "continue").(string)
	return keys, token
}

// TestCache_ListPagesAreTheWholeList for random objects, selectors and limits,
// with objects that come and go between the pages.
func TestCache_ListPagesAreTheWholeList(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 100 {
		s, p := cachedSession(t)
		for i := range r.IntN(40) {
			p.add([]string{"a", "b", "c"}[r.IntN(3)], fmt.Sprintf("%c-%d", 'x'+rune(r.IntN(3)), i), 1)
		}
		req := map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "limit": 1 + r.IntN(7)}
		if r.IntN(2) == 0 {
			req["namespace"] = "b"
		}
		if r.IntN(2) == 0 {
			req["labelSelector"] = "first in (x,y)"
		}
		var want []abi.Key // what is there all the time
		for _, o := range p.objects {
			key := keyOf(o)
			if (req["namespace"] == nil || key.Namespace == "b") && (req["labelSelector"] == nil || key.Name[0] != 'z') {
				want = append(want, key)
			}
		}
		var got []abi.Key
		for page, token := req, "first"; token != ""; page = with(req, "continue", token) {
			var keys []abi.Key
			keys, token = s.listed(page)
			if len(keys) > req["limit"].(int) || token != "" && len(keys) < req["limit"].(int) {
				t.Fatalf("a page of %d, limit %v, continue %q", len(keys), req["limit"], token)
			}
			got = append(got, keys...)
			if token != "" { // the object that the token stands on goes, and one comes behind it
				gone := keys[len(keys)-1]
				p.objects = slices.DeleteFunc(p.objects, func(o map[string]any) bool { return keyOf(o) == gone })
				p.add("a", "0", 1)
			}
		}
		got = slices.DeleteFunc(got, func(k abi.Key) bool { return k.Name == "0" })
		if diff := gocmp.Diff(want, got); diff != "" {
			t.Fatalf("%v:\n%s", req, diff)
		}
	}
}

// TestCache_ListEndsAPageBeforeItIsTooLarge, and asks for no more than a page of
// the cache at a time.
func TestCache_ListEndsAPageBeforeItIsTooLarge(t *testing.T) {
	s, p := cachedSession(t)
	req := map[string]any{"apiVersion": "v1", "kind": "ConfigMap"}
	for i := range 9 {
		p.add("a", fmt.Sprintf("b%d", i), 1_000_000)
	}
	var sizes []int
	for page, token := req, "first"; token != ""; page = with(req, "continue", token) {
		var keys []abi.Key
		keys, token = s.listed(page)
		sizes = append(sizes, len(keys))
	}
	if diff := gocmp.Diff([]int{4, 4, 1}, sizes); diff != "" {
		t.Error(diff)
	}
	p.add("a", "a", abi.MaxBytes)
	s.fails(abi.StatusTooLarge, "first object", abi.OpCacheList, req)
	p.objects, p.asked = nil, nil
	for i := range 1203 {
		p.add("a", fmt.Sprintf("b%04d", i), 1)
	}
	if keys, token := s.listed(req); len(keys) != 500 || token == "" {
		t.Errorf("%d objects without a limit, continue %q", len(keys), token)
	}
	if keys, token := s.listed(with(req, "limit", 5000)); len(keys) != 1203 || token != "" {
		t.Errorf("%d objects, continue %q", len(keys), token)
	}
	if slices.Max(p.asked) > defaultPage {
		t.Errorf("asked for %v", p.asked)
	}
}

func FuzzParseContinue(f *testing.F) {
	f.Add(formatContinue(abi.Key{Namespace: "a", Name: "b"}))
	f.Add("")
	f.Fuzz(func(t *testing.T, token string) {
		key, err := parseContinue(token)
		if err == nil && token != "" && key.Name == "" {
			t.Errorf("%q: %v", token, key)
		}
		if again, err2 := parseContinue(formatContinue(key)); err == nil && key.Name != "" && (err2 != nil || again != key) {
			t.Errorf("%q: %v, %v", token, again, err2)
		}
	})
}

// TestCache_ListSelectsByFieldAndOwner: a term is about the text at a path of the
// object, numbers and bools too; the owner goes to the cache, which has an index.
func TestCache_ListSelectsByFieldAndOwner(t *testing.T) {
	s, p := cachedSession(t)
	for i, name := range []string{"x", "y", "z"} {
		p.add("a", name, 1)
		p.objects[i]["spec"] = map[string]any{"n": int64(i), "on": i == 1, "list": []any{"x"}, "deep": map[string]any{"name": name + "=,"}}
	}
	all := map[string]any{"apiVersion": "v1", "kind": "ConfigMap"}
	for selector, want := range map[string]string{
		"metadata.name=y": "y", "metadata.name!=y": "xz", "spec.n=2": "z", "spec.on=true": "y", "spec.on!=true,metadata.name!=x": "z",
		`spec.deep.name=x\=\,`: "x", "spec.none=": "xyz", "spec.none!=": "", "spec.list=x": "", "spec.deep=": "xyz", "": "xyz",
	} {
		var got string
		keys, _ := s.listed(with(all, "fieldSelector", selector))
		for _, k := range keys {
			got += k.Name
		}
		if got != want {
			t.Errorf("%q selects %q, want %q", selector, got, want)
		}
	}
	s.listed(with(all, "owner", "u-1"))
	if p.owner != "u-1" {
		t.Errorf("the cache was asked for objects of %q", p.owner)
	}
	s.fails(abi.StatusBadRequest, "owner is not a key of api_list", abi.OpAPIList, with(all, "owner", "u-1"))
	s.fails(abi.StatusBadRequest, "requirements, the limit is", abi.OpCacheList, with(all, "fieldSelector", strings.Repeat("a=b,", 1100)+"a=b"))
}
