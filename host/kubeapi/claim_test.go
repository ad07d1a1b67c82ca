// SPDX-License-Identifier: Apache-2.0

package kubeapi

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/wasmctl/wasmctl/abi"
)

// unwatched is a cache without the children: their kind is not watched.
type unwatched struct{ *cacheOf }

// Stored implements Cache.
func (c unwatched) Stored(gvr schema.GroupVersionResource, key abi.Key) (abi.Stored, bool) {
	if gvr == configMaps {
		return nil, false
	}
	return c.cacheOf.Stored(gvr, key)
}

// sibling makes another object of the same kind, and returns its run and the object as an owner.
func (w *ofRuns) sibling(name string) (context.Context, Owner) {
	w.t.Helper()
	w.put(map[string]any{
		"apiVersion": "kubeapi.wasmctl.dev/v1", "kind": "Sprocket", "metadata": map[string]any{"name": name, "namespace": "a"}, "spec": map[string]any{"size": int64(1)},
	})
	o, err := w.server.Get(sprocketKind, abi.Key{Namespace: "a", Name: name})
	if err != nil {
		w.t.Fatal(err)
	}
	object := msg(w.t, o.Object)
	run := &abi.Run{ID: name, Key: abi.Key{Namespace: "a", Name: name}, Object: object, Wrote: func(abi.Write) {}}
	return abi.WithRun(w.t.Context(), run), Owner{Kind: w.cfg.Reconciled, Object: object}
}

// shared returns the data and the owners of the ConfigMap that several objects declare.
func (w *ofRuns) shared() string {
	w.t.Helper()
	kind, _ := w.server.Kind(schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"})
	o, err := w.server.Get(kind, abi.Key{Namespace: "a", Name: "shared"})
	if err != nil {
		w.t.Fatal(err)
	}
	var owners []string
	for _, r := range o.GetOwnerReferences() {
		owners = append(owners, r.Name+" "+string(r.UID))
	}
	return fmt.Sprint(o.Object["data"], owners)
}

func (w *ofRuns) declares(value string) *abi.Declared {
	return &abi.Declared{Apply: [][]byte{msg(w.t, configMap("shared", value))}, Force: true}
}

// Of two objects that declare the same child, the second is refused, whatever the cache has of the child,
// and the child stays as the first has declared it. The first may still change it.
func TestDeclare_TakesNoChildOfAnotherObject(t *testing.T) {
	for name, tt := range map[string]struct {
		cache  func(w *ofRuns) Cache
		reason string
	}{
		"cached":                    {func(w *ofRuns) Cache { w.objects.refresh(); return w.objects }, ReasonForeignController},
		"cached without content":    {func(w *ofRuns) Cache { w.objects.refresh(); w.objects.partial = true; return w.objects }, ReasonForeignController},
		"the cache is behind":       {func(w *ofRuns) Cache { return w.objects }, string(metav1.StatusReasonConflict)},
		"the kind is not watched":   {func(w *ofRuns) Cache { w.objects.refresh(); return unwatched{w.objects} }, ReasonForeignController},
		"the owner is not selected": {func(w *ofRuns) Cache { w.objects.refresh(); return unselected{w.objects} }, ReasonForeignController},
	} {
		t.Run(name, func(t *testing.T) {
			w := newOfRuns(t)
			first, owner := w.create()
			second, other := w.sibling("t")
			w.objects.refresh()
			if err := w.Declare(first, owner, w.declares("first")); err != nil {
				t.Fatal(err)
			}
			before := w.shared()
			w.cfg.Cache = tt.cache(w)
			text := ""
			if tt.reason == ReasonForeignController {
				text = "it is controlled by Sprocket s (uid "
			}
			for range 3 {
				failsAs(t, w.Declare(second, other, w.declares("second")), abi.ErrorConflict, tt.reason, text)
			}
			if after := w.shared(); after != before {
				t.Errorf("the child was changed:\n%s\n%s", before, after)
			}
			if tt.reason == ReasonForeignController {
				key := abi.Key{Namespace: "a", Name: "shared"}
				waiting, again := w.Released(configMaps.GroupResource(), key), w.Released(configMaps.GroupResource(), key)
				if want := []abi.Key{{Namespace: "a", Name: "t"}}; !slices.Equal(waiting, want) || again != nil {
					t.Errorf("once the child is deleted, %v run, and then %v", waiting, again)
				}
			}
			if err := w.Declare(first, owner, w.declares("changed")); err != nil || !strings.Contains(w.shared(), "changed") {
				t.Errorf("%v, %s", err, w.shared())
			}
		})
	}
}

// unselected is a cache that has only the first object: the others may exist, but are not selected.
type unselected struct{ *cacheOf }

// Stored implements Cache.
func (c unselected) Stored(gvr schema.GroupVersionResource, key abi.Key) (abi.Stored, bool) {
	if gvr != configMaps {
		return nil, false
	}
	return c.cacheOf.Stored(gvr, key)
}

// The child of an object that is gone is taken over at once: by its successor of the same name, and by
// another object that declares it.
func TestDeclare_TakesTheChildOfAGoneObject(t *testing.T) {
	for _, successor := range []bool{true, false} {
		w := newOfRuns(t)
		_, owner := w.create()
		gone := must(owner.read())
		if _, err := w.server.Delete(sprocketKind, sprocketKey, ""); err != nil {
			t.Fatal(err)
		}
		w.objects.refresh()
		if err := w.Declare(t.Context(), owner, w.declares("first")); err != nil { // it is not garbage-collected yet
			t.Fatal(err)
		}
		name := "t"
		if successor {
			name = "s"
		}
		second, other := w.sibling(name)
		w.objects.refresh()
		w.sent = nil
		err := w.Declare(second, other, w.declares("second"))
		if err == nil && strings.Contains(w.shared(), gone.uid) {
			err = errors.New("the reference to the old owner is still there")
		}
		if err != nil || !strings.Contains(w.shared(), "second") || !strings.Contains(w.shared(), must(other.read()).uid) || len(w.sent) != 1 {
			t.Errorf("successor=%v: %v, %s after %v", successor, err, w.shared(), w.sent)
		}
	}
}

// An object without a controller is adopted, also if the fields of former managers are taken over, which
// changes its version in between.
func TestDeclare_AdoptsWhatTheCacheHas(t *testing.T) {
	for _, value := range []string{"same", "changed"} {
		for _, limited := range []bool{false, true} {
			w := newOfRuns(t)
			run, owner := w.create()
			create := map[string]any{
				"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "shared", "namespace": "a"}, "data": map[string]any{"k": "same", "old": "x"},
			}
			if got := w.Call(run, abi.OpAPICreate, msg(t, map[string]any{"object": create, "fieldManager": "operator"})); got.Status != abi.StatusOK {
				t.Fatalf("%v: %s", got.Status, got.Body)
			}
			w.objects.refresh()
			if limited {
				w.API = w.WithPolicy(NewPolicy([]abi.Capability{
					{Resource: "configmaps", Verbs: []string{"get", "create"}}, {Resource: "configmaps", Verbs: []string{"patch"}, Fields: []string{"data"}},
				}))
			}
			w.cfg.FormerManagers = []string{"operator"}
			d := w.declares(value)
			d.Force = false
			if err := w.Declare(run, owner, d); err != nil {
				t.Errorf("%s, limited=%v: %v", value, limited, err)
				continue
			}
			if got := w.shared(); !strings.HasPrefix(got, fmt.Sprintf("map[k:%s] [s ", value)) {
				t.Errorf("%s, limited=%v: %s", value, limited, got)
			}
		}
	}
}

// The observer of an apply gets the state of a child that is not in the cache, as far as the host has read it.
func TestDeclare_HasTheStateOfAnUnwatchedChild(t *testing.T) {
	w := newOfRuns(t)
	run, owner := w.create()
	w.cfg.Cache = unwatched{w.objects}
	if err := w.Declare(run, owner, w.declares("v")); err != nil || w.told[0].Before.JSON != nil {
		t.Errorf("%v, before: %s", err, w.told[0].Before.JSON)
	}
	before := w.shared()
	w.memory, w.told = memory{}, nil // as after a restart
	if err := w.Declare(run, owner, w.declares("v")); err != nil || !strings.Contains(string(w.told[0].Before.JSON), `"k":"v"`) || w.shared() != before {
		t.Errorf("%v, before: %s", err, w.told[0].Before.JSON)
	}
}

// A module that may not get the child is not told who controls it.
func TestDeclare_ConcealsTheOtherController(t *testing.T) {
	w := newOfRuns(t)
	first, owner := w.create()
	second, other := w.sibling("t")
	if err := w.Declare(first, owner, w.declares("first")); err != nil {
		t.Fatal(err)
	}
	w.objects.refresh()
	w.API = w.WithPolicy(NewPolicy([]abi.Capability{{Resource: "configmaps", Verbs: []string{"create", "patch"}}}))
	err := w.Declare(second, other, w.declares("second"))
	result, ok := errors.AsType[*abi.ResultError](err)
	if !ok || result.Reason != ReasonForeignController || strings.Contains(result.Message, "Sprocket s") || !strings.Contains(err.Error(), "Sprocket s") {
		t.Errorf("%v\n%+v", err, result)
	}
}

// Objects that all declare the same child at once, with caches that are behind, agree on its controller:
// once it has one, it has no other.
func TestDeclare_HammerGivesAChildOneController(t *testing.T) {
	for name, blind := range map[string]bool{"the cache is behind": false, "the kind is not watched": true} {
		t.Run(name, func(t *testing.T) {
			w := newOfRuns(t)
			w.create()
			runs, owners := make([]context.Context, 8), make([]Owner, 8)
			for i := range runs {
				runs[i], owners[i] = w.sibling(fmt.Sprint("o", i))
			}
			w.objects.refresh()
			if blind {
				w.cfg.Cache = unwatched{w.objects}
			}
			w.cfg.Observer, w.cfg.Client.rest.Client.Transport = nil, w.server
			var wg sync.WaitGroup
			var mu sync.Mutex
			succeeded := map[int]bool{} // guarded by mu
			for i := range runs {
				wg.Go(func() {
					for n := range 10 {
						err := w.Declare(runs[i], owners[i], w.declares(fmt.Sprint(i, " ", n)))
						var e *WriteError
						switch {
						case err == nil:
							mu.Lock()
							succeeded[i] = true
							mu.Unlock()
						case !errors.As(err, &e) || e.Class != abi.ErrorConflict:
							t.Error(err)
						}
					}
				})
			}
			wg.Wait()
			if len(succeeded) != 1 {
				t.Errorf("%d objects have had the child: %s", len(succeeded), w.shared())
			}
		})
	}
}

// A former manager whose fields no child has is named once, with the managers of the child: it may be misspelled. One that was found
// before is not.
func TestDeclare_NamesAFormerManagerThatIsNotFound(t *testing.T) {
	w := newOfRuns(t)
	run, owner := w.create()
	var log strings.Builder
	w.cfg.Logger = slog.New(slog.NewTextHandler(&log, nil))
	w.cfg.FormerManagers = []string{"operator", "manger"}
	for _, name := range []string{"a", "b", "c"} {
		object := map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": name, "namespace": "a"}, "data": map[string]any{"old": "x"}}
		manager := map[string]string{"a": "operator", "b": "manager", "c": "manager"}[name]
		if got := w.Call(run, abi.OpAPICreate, msg(t, map[string]any{"object": object, "fieldManager": manager})); got.Status != abi.StatusOK {
			t.Fatalf("%v: %s", got.Status, got.Body)
		}
	}
	w.objects.refresh()
	for _, name := range []string{"new", "a", "b", "c"} {
		if err := w.Declare(run, owner, &abi.Declared{Apply: [][]byte{msg(t, configMap(name, "v"))}}); err != nil {
			t.Fatal(err)
		}
	}
	if lines := strings.Split(strings.TrimSpace(log.String()), "\n"); len(lines) != 1 || !strings.Contains(lines[0], "manager=manger") || !strings.Contains(lines[0], "managers=[manager]") {
		t.Errorf("log:\n%s", log.String())
	}
}
