// SPDX-License-Identifier: Apache-2.0

package memapi

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/wasmctl/wasmctl/abi"
)

var webs = GuessKind(schema.GroupVersionKind{Group: "sim.dev", Version: "v1", Kind: "Web"}, true)

// bed is a Server with a real client, in virtual time.
type bed struct {
	*testing.T
	s      *Server
	client dynamic.NamespaceableResourceInterface
	fault  Fault // for each request
}

func bubble(t *testing.T, f func(b *bed)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		b := &bed{T: t}
		b.s = New(Config{Kinds: []Kind{webs}, Untracked: true, Intercept: func(*Request) Fault { return b.fault }})
		client, err := dynamic.NewForConfig(&rest.Config{Host: "http://sim", Transport: b.s, QPS: -1})
		if err != nil {
			t.Fatal(err)
		}
		b.client = client.Resource(webs.GVR())
		f(b)
		synctest.Wait()
		if n := b.s.Open(); n != 0 {
			t.Errorf("%d watches are left", n)
		}
	})
}

// set creates an object, "ns/name", or changes its spec and labels.
func (b *bed) set(ref string, value int64, labels map[string]string) *unstructured.Unstructured {
	b.Helper()
	o, err := b.s.Change(webs, key(ref), true, func(o *unstructured.Unstructured) error {
		o.SetLabels(labels)
		return unstructured.SetNestedField(o.Object, value, "spec", "value")
	})
	if err != nil {
		b.Fatal(err)
	}
	return o
}

func key(ref string) abi.Key {
	ns, name, _ := strings.Cut(ref, "/")
	return abi.Key{Namespace: ns, Name: name}
}

// read returns the next events of a watch: "ADDED a 101".
func (b *bed) read(w watch.Interface) (events []string) {
	b.Helper()
	for {
		synctest.Wait()
		select {
		case ev, ok := <-w.ResultChan():
			switch o := ev.Object.(type) {
			case *unstructured.Unstructured:
				events = append(events, fmt.Sprint(ev.Type, " ", o.GetName(), " ", o.GetResourceVersion()))
			case *metav1.Status:
				events = append(events, fmt.Sprint(ev.Type, " ", o.Code))
			}
			if !ok {
				return append(events, "end")
			}
		default:
			return events
		}
	}
}

func (b *bed) watch(namespace string, opts metav1.ListOptions) watch.Interface {
	b.Helper()
	w, err := b.client.Namespace(namespace).Watch(b.Context(), opts)
	if err != nil {
		b.Fatal(err)
	}
	return w
}

func (b *bed) want(got []string, want ...string) {
	b.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		b.Errorf("(-want +got)\n%s", diff)
	}
}

func TestServer_PagesAreOfOneVersion(t *testing.T) {
	bubble(t, func(b *bed) {
		for _, ref := range []string{"a/x", "a/y", "b/x"} {
			b.set(ref, 1, nil)
		}
		page, err := b.client.List(b.Context(), metav1.ListOptions{Limit: 2})
		if err != nil || len(page.Items) != 2 || page.GetContinue() == "" {
			b.Fatalf("%v, %v", page, err)
		}
		b.set("b/x", 2, nil)
		b.set("c/x", 1, nil)
		rest, err := b.client.List(b.Context(), metav1.ListOptions{Limit: 2, Continue: page.GetContinue()})
		if err != nil || len(rest.Items) != 1 || rest.Items[0].GetResourceVersion() != "103" || rest.GetResourceVersion() != page.GetResourceVersion() {
			b.Errorf("%v, %v", rest, err)
		}
		b.s.Compact()
		if _, err := b.client.List(b.Context(), metav1.ListOptions{Limit: 2, Continue: page.GetContinue()}); !apierrors.IsResourceExpired(err) {
			b.Errorf("after a compaction: %v", err)
		}
	})
}

func TestServer_WatchGoesOnFromAVersion(t *testing.T) {
	bubble(t, func(b *bed) {
		b.set("a/x", 1, map[string]string{"tier": "gold"}) // 101
		b.set("a/x", 2, map[string]string{"tier": "gold"}) // 102
		b.set("b/x", 1, map[string]string{"tier": "gold"}) // 103, of another namespace
		w := b.watch("a", metav1.ListOptions{ResourceVersion: "101", LabelSelector: "tier=gold", AllowWatchBookmarks: true})
		b.want(b.read(w), "MODIFIED x 102")
		b.set("a/x", 2, map[string]string{"tier": "iron"})
		b.set("a/x", 3, map[string]string{"tier": "iron"})
		b.set("a/x", 3, map[string]string{"tier": "gold"})
		b.want(b.read(w), "DELETED x 104", "ADDED x 106")
		time.Sleep(bookmarkEvery) //nolint:forbidigo // virtual time
		b.want(b.read(w), "BOOKMARK  106")
		b.s.Compact()
		b.set("a/x", 4, map[string]string{"tier": "gold"})
		b.want(b.read(w), "MODIFIED x 108") // a watch that is up to date is not affected
		w.Stop()
		b.want(b.read(b.watch("a", metav1.ListOptions{ResourceVersion: "106"})), "ERROR 410", "end")
	})
}

func TestServer_StreamedListEndsWithABookmark(t *testing.T) {
	bubble(t, func(b *bed) {
		b.set("a/x", 1, nil)
		b.set("a/y", 1, nil)
		yes := true
		w := b.watch("", metav1.ListOptions{SendInitialEvents: &yes, ResourceVersionMatch: metav1.ResourceVersionMatchNotOlderThan, AllowWatchBookmarks: true})
		b.want(b.read(w), "ADDED x 101", "ADDED y 102", "BOOKMARK  102")
		if !b.s.Listed(webs.Resource, "", "") || b.s.Listed(webs.Resource, "a", "") {
			b.Error("Listed does not know what was listed")
		}
		w.Stop()
	})
}

// The client reports each way in which a watch ends.
func TestFault_EndsOfAWatch(t *testing.T) {
	for end, want := range map[End][]string{
		InOrder: {"ADDED x 101", "end"},
		Reset:   {"ADDED x 101", "end"},
		Cut:     {"ADDED x 101", "end"},
		Expired: {"ADDED x 101", "ERROR 410", "end"},
		Failed:  {"ADDED x 101", "ERROR 500", "end"},
		Stalled: {"ADDED x 101"},
	} {
		bubble(t, func(b *bed) {
			b.fault = Fault{EndEvents: 1, End: end}
			b.set("a/x", 1, nil)
			b.set("a/y", 1, nil)
			w := b.watch("", metav1.ListOptions{ResourceVersion: "100"})
			b.want(b.read(w), want...)
			w.Stop()
		})
	}
}

func TestFault_EventsAreLateAndComeTwice(t *testing.T) {
	bubble(t, func(b *bed) {
		b.fault = Fault{Latency: time.Second, Twice: 2}
		w := b.watch("", metav1.ListOptions{ResourceVersion: "100"})
		b.set("a/x", 1, nil)
		b.set("a/y", 1, nil)
		b.want(b.read(w))
		time.Sleep(time.Second) //nolint:forbidigo // virtual time
		b.want(b.read(w), "ADDED x 101", "ADDED y 102", "ADDED y 102")
		w.Stop()
	})
}

func TestServer_WritesAsTheAPIServerDoes(t *testing.T) {
	bubble(t, func(b *bed) {
		o := b.set("a/x", 1, nil)
		if same := b.set("a/x", 1, nil); same.GetResourceVersion() != o.GetResourceVersion() {
			b.Error("a write that changes nothing made a new version")
		}
		next := b.set("a/x", 2, map[string]string{"a": "b"})
		if next.GetGeneration() != 2 || next.GetUID() != o.GetUID() {
			b.Errorf("%v", next)
		}
		finalizers := func(list []string) {
			if next, err := b.s.Change(webs, key("a/x"), false, func(o *unstructured.Unstructured) error { o.SetFinalizers(list); return nil }); err != nil || next.GetGeneration() < 2 {
				b.Fatalf("%v, %v", next, err)
			}
		}
		finalizers([]string{"x.dev/f"})
		if _, err := b.s.Delete(webs, key("a/x"), "another"); !apierrors.IsConflict(err) {
			b.Errorf("Delete with another uid: %v", err)
		}
		if next, err := b.s.Delete(webs, key("a/x"), ""); err != nil || next.GetDeletionTimestamp() == nil || next.GetGeneration() != 3 {
			b.Fatalf("%v, %v", next, err)
		}
		finalizers(nil)
		if _, err := b.s.Get(webs, key("a/x")); !apierrors.IsNotFound(err) {
			b.Errorf("Get: %v", err)
		}
		labelled := func(o *unstructured.Unstructured) bool { return o.GetLabels() != nil && o.GetFinalizers() == nil }
		if since, over := b.s.Since(webs, key("a/x"), labelled); !over || since.GetResourceVersion() != "102" {
			b.Errorf("Since: %v, %t", since, over)
		}
		if recreated := b.set("a/x", 1, nil); recreated.GetUID() == o.GetUID() || recreated.GetGeneration() != 1 {
			b.Errorf("%v", recreated)
		}
	})
}

// A list that may be stale is as old as the fault says, but not older than the compacted
// version.
func TestFault_Lag(t *testing.T) {
	bubble(t, func(b *bed) {
		b.fault = Fault{Lag: 2}
		for i := range int64(4) {
			b.set("a/x", i, nil)
		}
		list, err := b.client.List(b.Context(), metav1.ListOptions{ResourceVersion: "0"})
		if err != nil || list.GetResourceVersion() != "102" || list.Items[0].GetResourceVersion() != "102" {
			b.Errorf("%v, %v", list, err)
		}
		b.s.Compact()
		if list, err = b.client.List(b.Context(), metav1.ListOptions{ResourceVersion: "0"}); err != nil || list.GetResourceVersion() != "105" {
			b.Errorf("%v, %v", list, err)
		}
		js, err := json.Marshal(list.Items[0].Object["spec"])
		if err != nil || string(js) != `{"value":3}` {
			b.Errorf("%s, %v", js, err)
		}
	})
}
