// SPDX-License-Identifier: Apache-2.0

package watcher_test

import (
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/internal/memapi"
	"github.com/wasmctl/wasmctl/runtime/reflector"
	"github.com/wasmctl/wasmctl/runtime/watcher"
)

// restored is an API server that is restored from a backup under two watches.
type restored struct {
	t       *testing.T
	server  *memapi.Server
	configs *user
	secrets *user
}

// distant is an API server whose answers take time, so that none arrives before a test passes time.
type distant struct{ http.RoundTripper }

// RoundTrip implements http.RoundTripper.
func (d distant) RoundTrip(r *http.Request) (*http.Response, error) {
	<-time.After(time.Millisecond)
	return d.RoundTripper.RoundTrip(r)
}

func newRestored(t *testing.T) *restored {
	t.Helper()
	server := memapi.New(memapi.Config{Untracked: true})
	client, err := watcher.NewClient(&rest.Config{Host: "http://in-memory", Transport: distant{server}})
	if err != nil {
		t.Fatal(err)
	}
	set := watcher.NewSet(client, watcher.Config{})
	r := &restored{t: t, server: server}
	r.configs = subscribe(t, set, watcher.Source{Resource: configMaps})
	r.secrets = subscribe(t, set, watcher.Source{Resource: schema.GroupVersionResource{Version: "v1", Resource: "secrets"}})
	return r
}

func (r *restored) set(name, value string) {
	r.t.Helper()
	kind, _ := r.server.Kind(schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"})
	if _, err := r.server.Change(kind, abi.Key{Namespace: "a", Name: name}, true, func(o *unstructured.Unstructured) error {
		return unstructured.SetNestedField(o.Object, value, "data", "k")
	}); err != nil {
		r.t.Fatal(err)
	}
}

// has checks that the store has what the server has.
func (r *restored) has(when string) {
	r.t.Helper()
	store := r.configs.sub.Store()
	objects := r.server.Objects()
	if store.Len() != len(objects) {
		r.t.Errorf("%s: %d objects, want %d", when, store.Len(), len(objects))
	}
	for _, object := range objects {
		want, err := reflector.Pack((&unstructured.Unstructured{Object: object}).DeepCopy().Object, reflector.Options{})
		if err != nil {
			r.t.Fatal(err)
		}
		if got := store.Get(want.Ref()); got == nil || string(got.Msgpack()) != string(want.Msgpack()) {
			r.t.Errorf("%s: %s is outdated", when, want.Ref())
		}
	}
}

// After a restore, the store is that of the server, and later changes arrive, although the API server
// assigns the old versions again: even the same version of an object, with another content. A restore is
// noticed by the watches themselves when the API server restarts.
func TestWatch_SurvivesARestore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRestored(t)
		r.set("old", "1")
		backup := r.server.Backup()
		r.set("old", "2")
		for range 50 {
			r.set("new", time.Now().String())
			pass(time.Millisecond)
		}
		synctest.Wait()
		r.has("before")
		r.server.Restore(backup)
		r.set("old", "3") // it gets the version that "2" had
		pass(10 * time.Second)
		r.has("after the restore")
		r.set("old", "4")
		r.set("late", "1")
		pass(10 * time.Second)
		r.has("later")
		if one, other := r.configs.sub.Epoch(), r.secrets.sub.Epoch(); one == 0 || one != other {
			t.Errorf("epochs %d and %d", one, other)
		}
	})
}

// If an answer of the API server shows that versions have run backwards, all watches list again, even if none
// was interrupted: once, however many answers show it.
func TestWatch_ListsAgainIfAnAnswerIsOlder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRestored(t)
		r.set("old", "1")
		pass(time.Second)
		for range 100 {
			r.configs.sub.RanBackwards()
			r.secrets.sub.RanBackwards()
		}
		pass(10 * time.Second)
		r.has("after a new list")
		for _, u := range []*user{r.configs, r.secrets} {
			if u.sub.Epoch() != 1 || u.sub.State().Phase != watcher.Ready {
				t.Errorf("epoch %d, %s", u.sub.Epoch(), u.sub.State())
			}
		}
	})
}
