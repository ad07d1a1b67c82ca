// SPDX-License-Identifier: Apache-2.0

package wasmctl

import (
	"errors"
	"strings"
	"testing"

	"github.com/wasmctl/wasmctl/guest-sdk/go/internal/wire"
)

func reconcileNothing(*Context, Object) (Action, error) { return AwaitChange(), nil }

func TestReconciler_ThatCannotRunIsRefused(t *testing.T) {
	mapper := func(*Context, WatchEvent) ([]ObjectKey, error) { return nil, nil }
	finalize := reconcileNothing
	cases := map[string]Reconciler{
		"Reconcile is nil": {},
		"needs a name":     {Reconcile: reconcileNothing, Finalize: finalize},
		"never go":         {Reconcile: reconcileNothing, Manifest: Manifest{Finalizer: "a/b"}},
		"neither":          {Reconcile: reconcileNothing, Manifest: Manifest{Watches: []Watch{{Kind: "A"}}}},
		"and Map owner":    {Reconcile: reconcileNothing, Manifest: Manifest{Watches: []Watch{{Kind: "A", Mapper: mapper, Map: "owner"}}}},
		"two watches": {Reconcile: reconcileNothing, Manifest: Manifest{Watches: []Watch{
			{Kind: "A", Mapper: mapper}, {Kind: "A", Group: "g", Mapper: mapper}, {Kind: "A", Mapper: mapper},
		}}},
		"": {Reconcile: reconcileNothing, Finalize: finalize, Manifest: Manifest{Finalizer: "a/b", Watches: []Watch{
			{Kind: "A", Mapper: mapper, Map: "func"}, {Kind: "A", Map: "label:x"}, {Kind: "B", Mapper: mapper},
		}}},
	}
	for want, r := range cases {
		if got := r.problem(); (want == "") != (got == "") || !strings.Contains(got, want) {
			t.Errorf("want %q, got %q", want, got)
		}
	}
}

// TestWatch_FilterIsOneOfAllPredicates: the filter is called for events that
// the other predicates accept.
func TestWatch_FilterIsOneOfAllPredicates(t *testing.T) {
	filter := func(*Context, WatchEvent) bool { return true }
	cases := map[string][]string{
		"":                           {"func"},
		"generation":                 {"all(any(generation), func)"},
		"generation;ttl=30m;labels":  {"ttl=30m", "all(any(generation, labels), func)"},
		"any(generation, func);ttl=": {"any(generation, func)", "ttl="},
	}
	for in, want := range cases {
		w := Watch{Kind: "A", Filter: filter}
		if in != "" {
			w.Predicates = strings.Split(in, ";")
		}
		r := Reconciler{Manifest: Manifest{For: &w, Owns: []Watch{w}, Watches: []Watch{w}}}
		m := Value{describe(&r)}
		equal(t, m.Strings("for", "predicates"), want)
		for _, list := range []string{"owns", "watches"} {
			for _, v := range m.Elements(list) {
				equal(t, v.Strings("predicates"), want)
			}
		}
		equal(t, m.Strings("hooks"), []string{"filter"})
	}
	plain := Reconciler{Manifest: Manifest{For: &Watch{Kind: "A", Predicates: []string{"labels"}}}}
	equal(t, (Value{describe(&plain)}).Strings("for", "predicates"), []string{"labels"})
}

func TestFilter_KeepsWhatNobodyHides(t *testing.T) {
	no := func(*Context, WatchEvent) bool { return false }
	event := func(kind string) []byte {
		return must(t, Map{"v": 1, "watch": Map{"group": "", "version": "v1", "kind": kind}, "type": "Updated", "key": Map{"name": "a"}})
	}
	g := &guest{host: &scriptHost{}, reconciler: &Reconciler{Manifest: Manifest{
		For: &Watch{Kind: "A", Filter: no}, Owns: []Watch{{Kind: "B", Filter: no}, {Kind: "B"}}, Watches: []Watch{{Kind: "C", Filter: no}},
	}}}
	equal(t, []bool{g.keep(event("A")), g.keep(event("B")), g.keep(event("C")), g.keep(event("D")), g.keep([]byte{0xc1}), (&guest{}).keep(event("A"))},
		[]bool{false, true, false, true, true, true})
}

func TestCall_FunctionsThatAreMissingAreErrors(t *testing.T) {
	g := &guest{host: &scriptHost{}, reconciler: &Reconciler{Reconcile: reconcileNothing}}
	for _, name := range []string{"finalize", "error_policy", "map"} {
		v := Value{g.call(name, golden(t, "event-listed"))}
		if !strings.Contains(v.String("error", "message"), "no function") {
			t.Errorf("%s: %x", name, v.Raw())
		}
	}
	equal(t, len(g.call("configure", golden(t, "settings-two"))), 0)
	g.reconciler.Configure = func(*Context, map[string]string) error { return WithReason(errors.New("no"), "Bad") }
	got := Value{g.call("configure", golden(t, "settings-two"))}
	equal(t, []string{got.String("error", "message"), got.String("error", "reason")}, []string{"no", "Bad"})
}

func TestMap_KeysThatNoObjectCanHaveAreLeftOut(t *testing.T) {
	long := strings.Repeat("x", 254)
	g := &guest{host: &scriptHost{}, reconciler: &Reconciler{Manifest: Manifest{Watches: []Watch{{
		Kind: "ConfigMap", Mapper: func(*Context, WatchEvent) ([]ObjectKey, error) {
			return []ObjectKey{{"a", ""}, {"a", "\xff"}, {"\xff", "b"}, {"a", long}, {long, "b"}, {"a", "b"}}, nil
		},
	}}}}}
	v := Value{g.call("map", golden(t, "event-listed"))}
	equal(t, []any{v.Len("keys"), v.Exists("error")}, []any{1, false})
}

func TestErrorPolicy_ThatDeclaresIsAnError(t *testing.T) {
	g := &guest{host: &scriptHost{}, reconciler: &Reconciler{ErrorPolicy: func(*Context, Object, Failure) Action { return Apply() }}}
	v := Value{g.call("error_policy", golden(t, "failure-trap"))}
	equal(t, []any{v.Exists("error", "message"), v.Exists("apply")}, []any{true, false})
}

func TestMap_TooManyKeysAreAnError(t *testing.T) {
	many := make([]ObjectKey, maxKeys+1)
	for i := range many {
		many[i].Name = "a"
	}
	for _, keys := range [][]ObjectKey{many} {
		g := &guest{host: &scriptHost{}, reconciler: &Reconciler{Manifest: Manifest{Watches: []Watch{{
			Kind: "ConfigMap", Mapper: func(*Context, WatchEvent) ([]ObjectKey, error) { return keys, nil },
		}}}}}
		v, err := wire.Decode(g.call("map", golden(t, "event-listed")))
		m, _ := v.(map[string]any)
		if err != nil || m["error"] == nil || m["keys"] != nil {
			t.Errorf("%d keys: %v, %v", len(keys), v, err)
		}
	}
}
