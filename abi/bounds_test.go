// SPDX-License-Identifier: Apache-2.0

package abi

import (
	"errors"
	"fmt"
	"maps"
	"reflect"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/vmihailenco/msgpack/v5"
)

// entryOf returns the i-th entry of a valid list that has the path.
func entryOf(path string, i int) any {
	number := strconv.Itoa(i)
	switch path {
	case "for", "owns", "watches":
		return map[string]any{"group": "g", "kind": "K", "map": "owner"}
	case "capabilities":
		return map[string]any{"resource": "r", "verbs": []any{"get"}}
	case "webhooks":
		return map[string]any{"type": "validate", "path": "/p" + number}
	case "webhooks.rules":
		return map[string]any{"apiGroups": []any{"g"}, "apiVersions": []any{"v1"}, "resources": []any{"r"}, "operations": []any{"CREATE"}}
	case "webhooks.rules.operations":
		return "CREATE"
	case "webhooks.matchConditions":
		return map[string]any{"name": "n" + number, "expression": "true"}
	case "conversions":
		return map[string]any{"group": "g", "kind": "K" + number}
	}
	return "x" + number
}

// listOf returns a manifest, as a map, with n entries in the list of a bound.
func listOf(name string, n int) map[string]any {
	if name == "config" {
		settings := map[string]any{}
		for i := range n {
			settings["k"+strconv.Itoa(i)] = "v"
		}
		return map[string]any{name: settings}
	}
	list := make([]any, n)
	for i := range list {
		list[i] = entryOf(name, i)
	}
	value := any(list)
	for cut := strings.LastIndexByte(name, '.'); cut >= 0; cut = strings.LastIndexByte(name, '.') {
		outer := entryOf(name[:cut], 0).(map[string]any)
		outer[name[cut+1:]] = value
		if name, value = name[:cut], any(outer); name != "for" {
			value = []any{outer}
		}
	}
	return map[string]any{name: value}
}

func decodeMap(t *testing.T, m map[string]any) error {
	t.Helper()
	b, err := msgpack.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	_, _, err = DecodeManifest(b)
	return err
}

// TestBounds_EachListAtItsEdge: a list of the maximum length is accepted, and a longer one is rejected with its name
// and limit.
func TestBounds_EachListAtItsEdge(t *testing.T) {
	for _, bound := range ManifestBounds {
		if err := decodeMap(t, listOf(bound.Name, bound.Max)); err != nil {
			t.Errorf("%s: %d entries: %v", bound.Name, bound.Max, err)
		}
		err := decodeMap(t, listOf(bound.Name, bound.Max+1))
		if want := fmt.Sprintf("the limit is %d", bound.Max); err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), strings.Split(bound.Name, ".")[0]) {
			t.Errorf("%s: one more entry: %v, want %s", bound.Name, err, want)
		}
	}
}

// TestBounds_EachListOfAManifestHasOne: no list or map can be added to the messages without a bound.
func TestBounds_EachListOfAManifestHasOne(t *testing.T) {
	want := map[string]bool{}
	for _, key := range []string{"for", "owns", "watches"} {
		want[key+".namespaces"], want[key+".predicates"] = true, true
	}
	for key := range map[string]bool{"owns": true, "watches": true, "capabilities": true, "config": true, "requires": true, "wants": true, "hooks": true} {
		want[key] = true
	}
	for _, key := range []string{"", ".rules", ".rules.apiGroups", ".rules.apiVersions", ".rules.resources", ".rules.operations", ".matchConditions"} {
		want["webhooks"+key] = true
	}
	want["conversions"], want["conversions.versions"] = true, true
	for _, key := range []string{"subresources", "verbs", "namespaces", "names", "fields"} {
		want["capabilities."+key] = true
	}
	listed := map[string]bool{}
	for _, b := range ManifestBounds {
		listed[b.Name] = b.Max > 0
	}
	if !maps.Equal(want, listed) {
		t.Errorf("bounds %v, want %v", slices.Sorted(maps.Keys(listed)), slices.Sorted(maps.Keys(want)))
	}
	if got, want := listFields(), len(want); got != want {
		t.Errorf("a manifest has %d lists and maps, and %d have a bound", got, want)
	}
}

// TestBounds_TotalsAtTheirEdges checks the bounds for several lists together.
func TestBounds_TotalsAtTheirEdges(t *testing.T) {
	watches := func(owns, watches int) *Manifest {
		return &Manifest{Owns: make([]Watch, owns), Watches: make([]Watch, watches)}
	}
	words := func(n int) []string { return slices.Repeat([]string{"x"}, n) }
	rule := func(names, namespaces int) Capability {
		return Capability{Resource: "r", Verbs: words(1), Names: words(names), Namespaces: words(namespaces)}
	}
	fields := func(n int) (rules []Capability) {
		for ; n > 0; n -= 100 {
			rules = append(rules, Capability{Resource: "r", Verbs: words(1), Fields: words(min(n, 100))})
		}
		return rules
	}
	for name, c := range map[string]struct {
		at, beyond *Manifest
		want       string
	}{
		"watches": {watches(20, 30), watches(20, 31), "the limit is 50"},
		"rights": {
			&Manifest{Capabilities: []Capability{rule(50, 50), rule(50, 50)}},
			&Manifest{Capabilities: []Capability{rule(50, 50), rule(50, 50), rule(1, 1)}}, "name 5001 rights together, the limit is 5000",
		},
		"every verb": {
			&Manifest{Capabilities: []Capability{{Resource: "r", Verbs: []string{"*"}, Names: words(7), Namespaces: words(100)}}},
			&Manifest{Capabilities: []Capability{{Resource: "r", Verbs: []string{"*"}, Names: words(8), Namespaces: words(100)}}}, "name 5600 rights",
		},
		"fields": {&Manifest{Capabilities: fields(500)}, &Manifest{Capabilities: fields(501)}, "have 501 fields together, the limit is 500"},
		"pattern": {
			&Manifest{Capabilities: []Capability{{Resource: "r", Verbs: words(1), Fields: []string{strings.Repeat("f", 512)}}}},
			&Manifest{Capabilities: []Capability{{Resource: "r", Verbs: words(1), Fields: []string{strings.Repeat("f", 513)}}}}, "513 bytes long, the limit is 512",
		},
	} {
		if err := c.at.checkTotals(); err != nil {
			t.Errorf("%s: at its bound: %v", name, err)
		}
		if err := c.beyond.checkTotals(); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %s", name, err, c.want)
		}
	}
}

// TestBounds_TextsAndKeys: texts and the keys of a map are bounded too.
func TestBounds_TextsAndKeys(t *testing.T) {
	x := func(n int) string { return strings.Repeat("x", n) }
	many := map[string]any{}
	for i := range maxKeys + 1 {
		many[fmt.Sprint(i)] = 1
	}
	for want, m := range map[string]map[string]any{
		"":                              {"version": x(MaxText), "config": map[string]any{"k": x(MaxSetting)}},
		"version: is 4097 bytes long":   {"version": x(MaxText + 1)},
		"config.k: is 65537 bytes long": {"config": map[string]any{"k": x(MaxSetting + 1)}},
		"watches[0].labelSelector: is":  {"watches": []any{map[string]any{"labelSelector": x(MaxText + 1)}}},
		"capabilities[0].names[1]: is":  {"capabilities": []any{map[string]any{"names": []any{"a", x(MaxText + 1)}}}},
		"has 101 keys":                  many,
		"a key is 254 bytes long":       {x(254): 1},
	} {
		if err := decodeMap(t, m); (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}

// TestBounds_RefuseBeforeTheyBuild: a manifest of 4 MiB of empty watches, or of nested lists, allocates nothing beyond
// its bytes.
func TestBounds_RefuseBeforeTheyBuild(t *testing.T) {
	head := []byte{0x81, 0xa7, 'w', 'a', 't', 'c', 'h', 'e', 's'}
	n := MaxBytes - 64
	empty := append(slices.Clone(head), 0xdd, byte(n>>24), byte(n>>16), byte(n>>8), byte(n))
	nested := slices.Clone(head)
	for range n {
		empty, nested = append(empty, 0x80), append(nested, 0x91)
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	if _, _, err := DecodeManifest(empty); err == nil || !strings.Contains(err.Error(), "watches: has 4194240 entries, the limit is 50") {
		t.Error(err)
	}
	if _, _, err := DecodeManifest(nested); !errors.Is(err, ErrTooDeep) {
		t.Error(err)
	}
	runtime.ReadMemStats(&after)
	if used := after.TotalAlloc - before.TotalAlloc; used > 1<<20 {
		t.Errorf("allocated %d bytes", used)
	}
}

// listFields counts the lists and maps of a Manifest, counting those of its watches for each of the three keys.
func listFields() (n int) {
	var count func(reflect.Type) int
	count = func(t reflect.Type) (n int) {
		for f := range t.Fields() {
			of := f.Type
			for of.Kind() == reflect.Slice || of.Kind() == reflect.Map || of.Kind() == reflect.Pointer {
				if of.Kind() != reflect.Pointer {
					n++
				}
				of = of.Elem()
			}
			if of.Kind() == reflect.Struct {
				n += count(of)
			}
		}
		return n
	}
	return count(reflect.TypeFor[Manifest]())
}
