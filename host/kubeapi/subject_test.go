// SPDX-License-Identifier: Apache-2.0

package kubeapi

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/host/kubeapi/kinds"
	"github.com/wasmctl/wasmctl/internal/memapi"
)

// sprocketKind is the kind of the objects that the runs of these tests are about.
var sprocketKind = memapi.Kind{
	GroupVersionKind: schema.GroupVersionKind{Group: "kubeapi.wasmctl.dev", Version: "v1", Kind: "Sprocket"},
	Resource:         "sprockets", Namespaced: true, Status: true,
}

var sprocketKey = abi.Key{Namespace: "a", Name: "s"}

// storedObject is an object in the cache.
type storedObject struct {
	unstructured.Unstructured

	t testing.TB
}

// UID implements abi.Stored.
func (o *storedObject) UID() string { return string(o.GetUID()) }

// ResourceVersion implements abi.Stored.
func (o *storedObject) ResourceVersion() string { return o.GetResourceVersion() }

// Applied implements abi.Stored: a cache without managedFields.
func (o *storedObject) Applied() string { return "" }

// Msgpack implements abi.Stored.
func (o *storedObject) Msgpack() []byte { return msg(o.t, o.Object) }

// cacheOf is a cache with the states of a server at the last call of refresh.
type cacheOf struct {
	packedCache

	t       testing.TB
	server  *memapi.Server
	stored  map[string]*storedObject // by resource and key
	partial bool
}

func storedName(resource string, key abi.Key) string { return resource + " " + key.String() }

// Stored implements Cache.
func (c *cacheOf) Stored(gvr schema.GroupVersionResource, key abi.Key) (abi.Stored, bool) {
	if o := c.stored[storedName(gvr.Resource, key)]; o != nil {
		return o, !c.partial
	}
	return nil, true
}

func (c *cacheOf) refresh() {
	c.stored = map[string]*storedObject{}
	for _, object := range c.server.Objects() {
		o := &storedObject{*(&unstructured.Unstructured{Object: object}).DeepCopy(), c.t}
		o.SetManagedFields(nil)
		kind, _ := c.server.Kind(o.GroupVersionKind())
		c.stored[storedName(kind.Resource, abi.Key{Namespace: o.GetNamespace(), Name: o.GetName()})] = o
	}
}

// ofRuns is an API whose runs are about a Sprocket, on an API server in memory.
type ofRuns struct {
	*API
	t       *testing.T
	server  *memapi.Server
	objects *cacheOf
	sent    []string // methods of the sent requests
	told    []*Exchange
	noGet   bool // the API server forbids to get objects
}

func newOfRuns(t *testing.T) *ofRuns {
	t.Helper()
	w := &ofRuns{t: t, server: memapi.New(memapi.Config{Kinds: []memapi.Kind{sprocketKind}})}
	w.objects = &cacheOf{t: t, server: w.server}
	transport := roundTripper(func(r *http.Request) (*http.Response, error) {
		if strings.Contains(r.URL.Path, "/namespaces/") {
			w.sent = append(w.sent, r.Method)
			if w.noGet && r.Method == http.MethodGet {
				answer := httptest.NewRecorder()
				status(http.StatusForbidden, string(metav1.StatusReasonForbidden), "")(answer, r)
				return answer.Result(), nil
			}
		}
		return w.server.RoundTrip(r)
	})
	client, err := NewClient(&rest.Config{Host: "http://in-memory", Transport: transport})
	if err != nil {
		t.Fatal(err)
	}
	resolver := kinds.NewResolver(client, slog.New(slog.DiscardHandler))
	kind, err := resolver.ResolveGVK(t.Context(), sprocketKind.GroupVersionKind)
	if err != nil {
		t.Fatal(err)
	}
	w.API, err = New(Config{
		Client: client, Resolver: resolver, Controller: "tester", Policy: everything(), Cache: w.objects, Reconciled: kind, Logger: slog.New(slog.DiscardHandler),
		Observer: func(_ context.Context, e *Exchange) { w.told = append(w.told, e) },
	})
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// create makes the object, and returns the context of a run about it, and the object as an owner.
func (w *ofRuns) create() (context.Context, Owner) {
	w.t.Helper()
	w.put(map[string]any{
		"apiVersion": "kubeapi.wasmctl.dev/v1", "kind": "Sprocket", "metadata": map[string]any{"name": "s", "namespace": "a"}, "spec": map[string]any{"size": int64(1)},
	})
	w.objects.refresh()
	seen := w.objects.stored[storedName("sprockets", sprocketKey)]
	run := &abi.Run{ID: "r", Key: sprocketKey, Object: seen.Msgpack(), Wrote: func(abi.Write) {}}
	return abi.WithRun(w.t.Context(), run), Owner{Kind: w.cfg.Reconciled, Object: seen.Msgpack()}
}

func (w *ofRuns) put(object map[string]any) {
	w.t.Helper()
	if err := w.server.Put(object); err != nil {
		w.t.Fatal(err)
	}
}

// replace deletes the object and creates another one of the same name.
func (w *ofRuns) replace() {
	w.t.Helper()
	if _, err := w.server.Delete(sprocketKind, sprocketKey, ""); err != nil {
		w.t.Fatal(err)
	}
	cached := w.objects.stored
	w.create()
	w.objects.stored = cached
}

// now returns the object of the name that exists now, in JSON.
func (w *ofRuns) now() string {
	w.t.Helper()
	o, err := w.server.Get(sprocketKind, sprocketKey)
	if err != nil {
		w.t.Fatal(err)
	}
	return string(must(o.MarshalJSON()))
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// byName are the writes of a run to its own object by name.
func byName() map[string]struct {
	op  abi.Op
	req map[string]any
} {
	type call = struct {
		op  abi.Op
		req map[string]any
	}
	ref := map[string]any{"apiVersion": "kubeapi.wasmctl.dev/v1", "kind": "Sprocket", "namespace": "a", "name": "s"}
	on := func(op abi.Op, kv ...any) call { return call{op, with(ref, kv...)} }
	object, status := map[string]any{"spec": map[string]any{"size": int64(7)}}, map[string]any{"status": map[string]any{"size": int64(7)}}
	ops := []any{map[string]any{"op": "add", "path": "/spec/size", "value": int64(7)}}
	statusOps := []any{map[string]any{"op": "add", "path": "/status", "value": map[string]any{"size": int64(7)}}}
	return map[string]call{
		"apply":        on(abi.OpAPIApply, "object", object, "force", true),
		"merge":        on(abi.OpAPIPatch, "patchType", "merge", "patch", object),
		"json":         on(abi.OpAPIPatch, "patchType", "json", "patch", ops),
		"delete":       on(abi.OpAPIDelete),
		"apply status": on(abi.OpAPIApply, "subresource", "status", "object", status),
		"merge status": on(abi.OpAPIPatch, "subresource", "status", "patchType", "merge", "patch", status),
		"json status":  on(abi.OpAPIPatch, "subresource", "status", "patchType", "json", "patch", statusOps),
	}
}

// A run never writes to the successor of its object, be it known to the cache or not. Otherwise the same
// writes succeed, even if another client changes the object meanwhile.
func TestCall_WritesOnlyToTheObjectOfItsRun(t *testing.T) {
	for name, write := range byName() {
		for _, known := range []bool{false, true} {
			t.Run(fmt.Sprint(name, " known=", known), func(t *testing.T) {
				w := newOfRuns(t)
				run, _ := w.create()
				w.replace()
				if known {
					w.objects.refresh()
				}
				before := w.now()
				w.sent = nil
				if got := w.Call(run, write.op, msg(t, write.req)); got.Status != http.StatusConflict {
					t.Errorf("%v: %s", got.Status, got.Body)
				}
				if after := w.now(); after != before {
					t.Errorf("the successor was changed:\n%s\n%s", before, after)
				}
				if known && len(w.sent) > 0 && w.sent[0] != http.MethodGet {
					t.Errorf("sent %v, although the cache knows the successor", w.sent)
				}
			})
		}
		t.Run(name+" of the same object", func(t *testing.T) {
			w := newOfRuns(t)
			run, _ := w.create()
			if _, err := w.server.Change(sprocketKind, sprocketKey, false, func(o *unstructured.Unstructured) error {
				o.SetAnnotations(map[string]string{"by": "another"})
				return nil
			}); err != nil {
				t.Fatal(err)
			}
			if got := w.Call(run, write.op, msg(t, write.req)); got.Status != abi.StatusOK {
				t.Errorf("%v: %s", got.Status, got.Body)
			}
			if write.op != abi.OpAPIDelete && !strings.Contains(w.now(), `"size":7`) {
				t.Errorf("not written: %s", w.now())
			}
		})
	}
}

// The status of a deleted object's run is not written to its successor.
func TestDeclare_WritesNoStatusToASuccessor(t *testing.T) {
	for _, known := range []bool{false, true} {
		w := newOfRuns(t)
		run, owner := w.create()
		w.replace()
		if known {
			w.objects.refresh()
		}
		err := w.Declare(run, owner, &abi.Declared{Status: msg(t, map[string]any{"size": int64(7)})})
		failsAs(t, err, abi.ErrorConflict, ReasonLostRace, "")
		if strings.Contains(w.now(), `"size":7`) {
			t.Errorf("known=%v: the successor has the status of its predecessor: %s", known, w.now())
		}
	}
}

// Other changes of the object do not prevent the status, and cost a read only then.
func TestDeclare_WritesTheStatusOfAChangedObject(t *testing.T) {
	w := newOfRuns(t)
	run, owner := w.create()
	status := func(size int64) *abi.Declared { return &abi.Declared{Status: msg(t, map[string]any{"size": size})} }
	w.sent = nil
	if err := w.Declare(run, owner, status(7)); err != nil || len(w.sent) != 1 {
		t.Errorf("%v after %v", err, w.sent)
	}
	w.sent = nil // the owner is now an older version
	if err := w.Declare(run, owner, status(8)); err != nil || fmt.Sprint(w.sent) != "[PATCH GET PATCH]" {
		t.Errorf("%v after %v", err, w.sent)
	}
	if !strings.Contains(w.now(), `"size":8`) {
		t.Error(w.now())
	}
}

// Without the right to get a changed object, its status is a conflict as any other: nobody knows that the
// object was recreated.
func TestDeclare_StatusOfAChangedObjectWithoutGet(t *testing.T) {
	w := newOfRuns(t)
	run, owner := w.create()
	status := func(size int64) *abi.Declared { return &abi.Declared{Status: msg(t, map[string]any{"size": size})} }
	if err := w.Declare(run, owner, status(7)); err != nil {
		t.Fatal(err)
	}
	w.noGet = true
	failsAs(t, w.Declare(run, owner, status(8)), abi.ErrorConflict, string(metav1.StatusReasonConflict), "without the right to get it")
}

// A run whose object is gone creates no children of it, which would be garbage, and one whose object was
// replaced writes nothing at all: also if it saw no object.
func TestCall_NothingIsWrittenForAReplacedObject(t *testing.T) {
	w := newOfRuns(t)
	run, owner := w.create()
	reference := map[string]any{"apiVersion": "kubeapi.wasmctl.dev/v1", "kind": "Sprocket", "name": "s", "uid": versionIn(abi.RunFrom(run).Object).UID}
	child := func(name string, owners ...any) []byte {
		meta := map[string]any{"name": name, "namespace": "a"}
		if owners != nil {
			meta["ownerReferences"] = owners
		}
		return msg(t, map[string]any{"object": map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta}})
	}
	status := func(ctx context.Context, req []byte) abi.Status { return w.Call(ctx, abi.OpAPICreate, req).Status }
	if got := status(run, child("mine", reference)); got != abi.StatusOK {
		t.Errorf("a child: %v", got)
	}
	if _, err := w.server.Delete(sprocketKind, sprocketKey, ""); err != nil {
		t.Fatal(err)
	}
	w.objects.refresh()
	if got := status(run, child("orphan", reference)); got != http.StatusConflict {
		t.Errorf("a child of a deleted object: %v", got)
	}
	failsAs(t, w.Declare(run, owner, &abi.Declared{Apply: [][]byte{msg(t, configMap("orphan", "v"))}}), abi.ErrorConflict, ReasonLostRace, "was deleted")
	if got := status(run, child("other")); got != abi.StatusOK {
		t.Errorf("an object of its own: %v", got)
	}
	w.create()
	gone := abi.WithRun(t.Context(), &abi.Run{ID: "g", Key: sprocketKey})
	for _, ctx := range []context.Context{run, gone} {
		if got := status(ctx, child("another")); got != http.StatusConflict {
			t.Errorf("an object for a replaced one: %v", got)
		}
	}
}

// A UID that the API server ignores in the status of a custom resource holds for any object.
func TestCall_UIDOfAStatusHolds(t *testing.T) {
	w := newOfRuns(t)
	run, _ := w.create()
	uid := versionIn(abi.RunFrom(run).Object).UID
	req := func(uid string) []byte {
		return msg(t, with(byName()["merge status"].req, "preconditions", map[string]any{"uid": uid}))
	}
	if got := w.Call(t.Context(), abi.OpAPIPatch, req("00000000-0000-4000-8000-000000000000")); got.Status != http.StatusConflict || strings.Contains(w.now(), `"size":7`) {
		t.Errorf("another uid: %v, %s", got.Status, w.now())
	}
	if got := w.Call(t.Context(), abi.OpAPIPatch, req(uid)); got.Status != abi.StatusOK || !strings.Contains(w.now(), `"size":7`) {
		t.Errorf("the uid: %v, %s", got.Status, w.now())
	}
}

// An event about the object of a run by name is about that object, and not about its successor.
func TestEvent_IsAboutTheObjectOfItsRun(t *testing.T) {
	w := newOfRuns(t)
	run, _ := w.create()
	w.replace()
	w.told = nil
	w.API = w.WithPolicy(NewPolicy([]abi.Capability{{Group: "events.k8s.io", Resource: "events", Verbs: []string{"create", "patch"}}}))
	req := map[string]any{"reason": "R", "regarding": map[string]any{"apiVersion": "kubeapi.wasmctl.dev/v1", "kind": "Sprocket", "namespace": "a", "name": "s"}}
	if got := w.Call(run, abi.OpEventRecord, msg(t, req)); got.Status != abi.StatusOK {
		t.Fatalf("%v: %s", got.Status, got.Body)
	}
	if got := w.told[0].Event.Regarding.UID; string(got) != versionIn(abi.RunFrom(run).Object).UID {
		t.Errorf("the event is about %q, want %q", got, versionIn(abi.RunFrom(run).Object).UID)
	}
}

// The observer gets the state that a write replaces: that in the cache before the write.
func TestExchange_HasTheReplacedState(t *testing.T) {
	w := newOfRuns(t)
	run, _ := w.create()
	w.put(map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "c", "namespace": "a"}, "data": map[string]any{"k": "drift"}})
	w.objects.refresh()
	version := w.objects.stored[storedName("configmaps", abi.Key{Namespace: "a", Name: "c"})].ResourceVersion()
	req := msg(t, map[string]any{"object": map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "c", "namespace": "a"}, "data": map[string]any{"k": "right"},
	}, "force": true})
	for _, partial := range []bool{false, true} {
		w.told, w.objects.partial = nil, partial
		if got := w.Call(run, abi.OpAPIApply, req); got.Status != abi.StatusOK {
			t.Fatalf("%v: %s", got.Status, got.Body)
		}
		before := w.told[0].Before
		if before.Cached == nil || before.Cached.ResourceVersion() != version || before.Partial != partial {
			t.Errorf("partial=%v: %+v, want version %s", partial, before, version)
		}
	}
}

// steady is a result of one child and a status that has been carried out, for a cache that has both.
func (w *ofRuns) steady() (again func() []string) {
	w.t.Helper()
	run, owner := w.create()
	w.cfg.Children = ownedIn{w.objects}
	result := &abi.Declared{Apply: [][]byte{msg(w.t, configMap("c", "v"))}, Status: msg(w.t, map[string]any{"size": int64(1)})}
	again = func() []string {
		w.t.Helper()
		w.sent = nil
		if err := w.Declare(run, owner, result); err != nil {
			w.t.Fatal(err)
		}
		w.objects.refresh()
		owner.Object = w.objects.stored[storedName("sprockets", sprocketKey)].Msgpack()
		return w.sent
	}
	again()
	if sent := again(); len(sent) > 0 {
		w.t.Fatalf("sent %v although nothing has changed", sent)
	}
	return again
}

// ownedIn finds children in a cacheOf.
type ownedIn struct{ *cacheOf }

// Children implements Children.
func (c ownedIn) Children(_ abi.Key, uid string, yield func(schema.GroupVersionResource, abi.Key, string, string) bool) {
	for _, o := range c.stored {
		for _, owner := range o.GetOwnerReferences() {
			if string(owner.UID) == uid && !yield(configMaps, abi.Key{Namespace: o.GetNamespace(), Name: o.GetName()}, o.UID(), o.ResourceVersion()) {
				return
			}
		}
	}
}

// Facts about versions are not trusted after these have run backwards, nor for a run by hand, even if they
// come from a run that was in progress at the time.
func TestDeclare_SendsAllAgain(t *testing.T) {
	for name, distrust := range map[string]func(w *ofRuns){
		"versions ran backwards": func(w *ofRuns) { w.objects.backwards++ },
		"the object by hand":     func(w *ofRuns) { w.Renew([]abi.Key{sprocketKey}) },
		"all objects by hand":    func(w *ofRuns) { w.Renew(nil) },
		"during a run": func(w *ofRuns) {
			m := w.memory.take(sprocketKey, w.objects.stored[storedName("sprockets", sprocketKey)].UID(), 0)
			w.Renew([]abi.Key{sprocketKey})
			w.memory.put(sprocketKey, m)
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newOfRuns(t)
			again := w.steady()
			distrust(w)
			if sent := again(); fmt.Sprint(sent) != "[PATCH PATCH]" {
				t.Errorf("sent %v", sent)
			}
			if sent := again(); len(sent) > 0 {
				t.Errorf("then sent %v", sent)
			}
		})
	}
}

// An answer that is older than the stored state shows that versions have run backwards. An answer without
// a change does not.
func TestCall_NoticesVersionsThatRunBackwards(t *testing.T) {
	kind, _ := memapi.New(memapi.Config{}).Kind(schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"})
	object := map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "c", "namespace": "a"}, "data": map[string]any{"k": "v"}}
	apply := msg(t, map[string]any{"object": object, "force": true})
	get := msg(t, map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "name": "c", "namespace": "a"})
	for op, req := range map[abi.Op][]byte{abi.OpAPIApply: apply, abi.OpAPIGet: get} {
		w := newOfRuns(t)
		run, _ := w.create()
		if got := w.Call(run, abi.OpAPIApply, apply); got.Status != abi.StatusOK {
			t.Fatalf("%v: %s", got.Status, got.Body)
		}
		w.objects.refresh()
		backup := w.server.Backup()
		if got := w.Call(run, op, req); got.Status != abi.StatusOK || w.objects.backwards != 0 {
			t.Errorf("%s without a change: %v, noticed %d times", op, got.Status, w.objects.backwards)
		}
		for i := range 3 {
			if _, err := w.server.Change(kind, abi.Key{Namespace: "a", Name: "c"}, false, func(o *unstructured.Unstructured) error {
				o.SetLabels(map[string]string{"l": fmt.Sprint(i)})
				return nil
			}); err != nil {
				t.Fatal(err)
			}
		}
		w.objects.refresh()
		w.server.Restore(backup)
		if got := w.Call(run, op, req); got.Status != abi.StatusOK || w.objects.backwards != 1 {
			t.Errorf("%s after a restore: %v, noticed %d times", op, got.Status, w.objects.backwards)
		}
	}
}
