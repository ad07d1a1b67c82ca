// SPDX-License-Identifier: Apache-2.0

package queue_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/wasmctl/wasmctl/runtime/queue"
	"github.com/wasmctl/wasmctl/runtime/reflector"
)

func TestParseMap_MakesTheMapper(t *testing.T) {
	o, err := reflector.Pack(map[string]any{"metadata": map[string]any{
		"name": "s", "namespace": "ns",
		"labels":          map[string]any{refKey: "by-label"},
		"annotations":     map[string]any{refKey: "other/by-annotation"},
		"ownerReferences": []any{owner("apps/v1", "Deployment", "by-owner", false), owner("apps/v1", "Deployment", "manager", true)},
	}}, reflector.Options{})
	if err != nil {
		t.Fatal(err)
	}
	rel := queue.Relation{Group: "apps", Kind: "Deployment", Resource: "secrets"}
	only := rel
	only.ControllerOnly = true
	for _, c := range []struct {
		spec string
		rel  queue.Relation
		want []string
	}{
		{"owner", rel, []string{"ns/by-owner", "ns/manager"}},
		{"owner", only, []string{"ns/manager"}},
		{"label:" + refKey, rel, []string{"ns/by-label"}},
		{"annotation:" + refKey, rel, []string{"other/by-annotation"}},
	} {
		m, err := queue.ParseMap(c.spec, c.rel)
		if err != nil {
			t.Fatalf("%s: %v", c.spec, err)
		}
		if diff := cmp.Diff(c.want, names(m, reflector.Event{Type: reflector.Applied, New: o})); diff != "" {
			t.Errorf("%s: %s", c.spec, diff)
		}
	}
	if m, err := queue.ParseMap("func", rel); m != nil || err != nil {
		t.Errorf("func: %v, %v; want neither", m != nil, err)
	}
}

func TestParseMap_ErrorSaysWhatToWrite(t *testing.T) {
	for spec, want := range map[string]string{
		"":                   `"owner", "label:KEY"`,
		"owners":             `did you mean "owner"?`,
		"Label:x":            `did you mean "label"?`,
		"anotation:x":        `did you mean "annotation"?`,
		"self":               `want one of`,
		"label":              `write "label:example.com/owner"`,
		"label:":             `write "label:example.com/owner"`,
		"annotation:a b":     `key: `,
		"annotation:a/b/c":   `key: `,
		"owner:x":            `takes no key`,
		"func:map":           `takes no key`,
		"\xff\x00annotation": `want one of`,
	} {
		if m, err := queue.ParseMap(spec, queue.Relation{}); m != nil || err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %v, want an error with %s", spec, err, want)
		}
	}
	fromCluster := queue.Relation{Resource: "nodes", WatchedClusterScoped: true}
	for spec, want := range map[string]string{"owner": "nodes have no namespace", "label:a": "use annotation:KEY"} {
		if _, err := queue.ParseMap(spec, fromCluster); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q from a cluster-scoped kind: got %v, want an error with %s", spec, err, want)
		}
	}
	if _, err := queue.ParseMap("annotation:a", fromCluster); err != nil {
		t.Error(err)
	}
}

// A cluster-scoped object cannot have an owner in a namespace, whatever its references contain: the garbage collector
// treats such an owner as absent, too.
func TestOwners_ClusterScopedObjectHasNoNamespacedOwner(t *testing.T) {
	ev := reflector.Event{Type: reflector.Applied, New: object(t, "", "pv", owner("apps/v1", "Deployment", "a", true))}
	if got := names(queue.Owners{Group: "apps", Kind: "Deployment"}.Map, ev); got != nil {
		t.Errorf("requests %v, want none", got)
	}
}
