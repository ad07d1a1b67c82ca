// SPDX-License-Identifier: Apache-2.0

package wasmctl

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/wasmctl/wasmctl/abi"
)

// putObject creates a ConfigMap with a label and a text.
func (r *running) putObject(namespace, name, tier, text string) {
	r.t.Helper()
	err := r.api.Put(map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap", "data": map[string]any{"text": text},
		"metadata": map[string]any{"name": name, "namespace": namespace, "uid": namespace + name, "labels": map[string]any{"tier": tier}},
	})
	if err != nil {
		r.t.Fatal(err)
	}
}

func namesOf(objects []*unstructured.Unstructured) []string {
	names := []string{}
	for _, o := range objects {
		names = append(names, o.GetNamespace()+"/"+o.GetName())
	}
	return names
}

func TestStore_ReadsWhatTheWatchHasSeen(t *testing.T) {
	virtually(t, func(t *testing.T, r *running) {
		r.putObject("shop", "a", "front", "x")
		r.putObject("shop", "b", "back", "y")
		r.putObject("web", "a", "front", "y")
		store := r.add(&counted{name: "a"}).Store()
		if err := store.WaitReady(t.Context()); err != nil {
			t.Fatal(err)
		}
		object, err := store.Get(abi.Key{Namespace: "shop", Name: "b"})
		if text, _, _ := unstructured.NestedString(object.Object, "data", "text"); err != nil || text != "y" || object.GetKind() != "ConfigMap" {
			t.Errorf("got %v, %v", object, err)
		}
		if object, err = store.Get(abi.Key{Namespace: "shop", Name: "none"}); object != nil || err != nil {
			t.Errorf("got %v, %v", object, err)
		}
		front := labels.SelectorFromSet(labels.Set{"tier": "front"})
		for _, c := range []struct {
			name string
			list func() ([]*unstructured.Unstructured, error)
			want []string
		}{
			{"all", func() ([]*unstructured.Unstructured, error) { return store.List(ListOptions{}) }, []string{"shop/a", "shop/b", "shop/o0", "web/a"}},
			{"by namespace", func() ([]*unstructured.Unstructured, error) { return store.List(ListOptions{Namespace: "web"}) }, []string{"web/a"}},
			{"by label", func() ([]*unstructured.Unstructured, error) { return store.List(ListOptions{Selector: front}) }, []string{"shop/a", "web/a"}},
			{"by field", func() ([]*unstructured.Unstructured, error) { return store.ByIndex("data.text", "y") }, []string{"shop/b", "web/a"}},
			{"by a field without objects", func() ([]*unstructured.Unstructured, error) { return store.ByIndex("data.none", "y") }, []string{}},
		} {
			objects, err := c.list()
			if diff := cmp.Diff(c.want, namesOf(objects)); diff != "" || err != nil {
				t.Errorf("%s: %v\n%s", c.name, err, diff)
			}
		}
		r.putObject("shop", "a", "front", "y") // an index follows changes
		passes(time.Second)
		objects, err := store.ByIndex("data.text", "y")
		if diff := cmp.Diff([]string{"shop/a", "shop/b", "web/a"}, namesOf(objects)); diff != "" || err != nil {
			t.Error(err, diff)
		}
	})
}

// A store can be used before the controller runs. It survives a restart, and ends with the
// controller.
func TestStore_BeforeAndAfterTheStart(t *testing.T) {
	virtually(t, func(t *testing.T, _ *running) {
		r := newIdle(t)
		defer func() { r.stop() }()
		c := r.add(&counted{name: "a"})
		store := c.Store()
		if _, err := store.List(ListOptions{}); !errors.Is(err, ErrNotSynced) {
			t.Errorf("before the start: %v", err)
		}
		soon, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := store.WaitReady(soon); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("waited before the start: %v", err)
		}
		r.start()
		for range 2 {
			if err := store.WaitReady(t.Context()); err != nil {
				t.Fatal(err)
			}
			if object, err := store.Get(abi.Key{Namespace: "shop", Name: "o0"}); object == nil || err != nil {
				t.Errorf("got %v, %v", object, err)
			}
			c.Restart()
			passes(time.Second)
		}
		if err := c.Stop(t.Context()); err != nil {
			t.Error(err)
		}
		if err := store.WaitReady(t.Context()); !errors.Is(err, ErrStopping) {
			t.Errorf("waited after the end: %v", err)
		}
	})
}
