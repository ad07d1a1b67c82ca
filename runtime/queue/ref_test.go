// SPDX-License-Identifier: Apache-2.0

package queue_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/wasmctl/wasmctl/runtime/queue"
	"github.com/wasmctl/wasmctl/runtime/reflector"
)

// Rule 1: an object has a unique reference.
func TestParseRef_OneSpelling(t *testing.T) {
	in := queue.Scope{Namespace: "own"}
	for text, c := range map[string]struct {
		scope queue.Scope
		want  reflector.ObjectRef
	}{
		"a":           {in, ref("own", "a")},
		"ns/a":        {in, ref("ns", "a")},
		"other/a":     {queue.Scope{}, ref("other", "a")},
		"n":           {queue.Scope{ClusterScoped: true, Namespace: "own"}, ref("", "n")},
		"system:node": {queue.Scope{ClusterScoped: true}, ref("", "system:node")},
	} {
		if got, err := queue.ParseRef(text, c.scope); err != nil || got != c.want {
			t.Errorf("%s: got %v, %v; want %v", text, got, err, c.want)
		}
	}
}

func TestParseRef_RefusesWhatIsNoName(t *testing.T) {
	for text, scope := range map[string]queue.Scope{
		"": {Namespace: "ns"}, "/": {}, "ns/": {}, "/a": {}, "a/b/c": {}, "..": {Namespace: "ns"}, "a%2f": {Namespace: "ns"},
		"a b": {Namespace: "ns"}, "a\x00": {Namespace: "ns"}, "ä": {Namespace: "ns"}, strings.Repeat("a", 254): {Namespace: "ns"},
	} {
		if got, err := queue.ParseRef(text, scope); err == nil {
			t.Errorf("%q: got %v, want an error", text, got)
		}
	}
	if _, err := queue.ParseRef("a", queue.Scope{}); !errors.Is(err, queue.ErrNoNamespace) {
		t.Errorf("no namespace: %v", err)
	}
	if _, err := queue.ParseRef("ns/a", queue.Scope{ClusterScoped: true}); !errors.Is(err, queue.ErrNamespace) {
		t.Errorf("a namespace too many: %v", err)
	}
}

func FuzzParseRef(f *testing.F) {
	for _, s := range []string{"a", "ns/a", "a/b/c", "/", "..", "ns/..", "%", "\xff"} {
		f.Add(s, "ns", false)
		f.Add(s, "", true)
	}
	f.Fuzz(func(t *testing.T, text, namespace string, clusterScoped bool) {
		got, err := queue.ParseRef(text, queue.Scope{ClusterScoped: clusterScoped, Namespace: namespace})
		if err != nil {
			return
		}
		if got.Name == "" || (got.Namespace == "") != clusterScoped || strings.ContainsAny(got.Name, "/% \n") {
			t.Fatalf("%q: got %#v", text, got)
		}
		again, err := queue.ParseRef(got.String(), queue.Scope{ClusterScoped: clusterScoped})
		if strings.ContainsAny(namespace, "/") {
			return // not a namespace: the caller's fault
		}
		if namespace == got.Namespace && !strings.Contains(text, "/") {
			return // the default was taken as it is
		}
		if err != nil || again != got {
			t.Fatalf("%v: read again as %v, %v", got, again, err)
		}
	})
}
