package apisim

import (
	"encoding/json"
	"fmt"
	"net/http"
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

var webs = Resource{GroupVersionResource: schema.GroupVersionResource{Group: "sim.dev", Version: "v1", Resource: "webs"}, Kind: "Web", Generations: true}

// bed is a Server and the real client on it, in a bubble of virtual time.
type bed struct {
	*testing.T
	s      *Server
	client dynamic.NamespaceableResourceInterface
	plan   Plan // of each request
}

func bubble(t *testing.T, f func(b *bed)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		b := &bed{T: t}
		b.s = New(func(*Request) Plan { return b.plan }, webs)
		client, err := dynamic.NewForConfig(&rest.Config{Host: "http://sim", Transport: &Transport{Server: b.s}, QPS: -1})
		if err != nil {
			t.Fatal(err)
		}
		b.client = client.Resource(webs.GroupVersionResource)
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
	o, err := b.s.Change(webs.Resource, key(ref), true, func(o *unstructured.Unstructured) error {
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

// read returns the next events of a watch: "ADDED a 11".
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
		if err != nil || len(rest.Items) != 1 || rest.Items[0].GetResourceVersion() != "13" || rest.GetResourceVersion() != page.GetResourceVersion() {
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
		b.set("a/x", 1, map[string]string{"tier": "gold"}) // 11
		b.set("a/x", 2, map[string]string{"tier": "gold"}) // 12
		b.set("b/x", 1, map[string]string{"tier": "gold"}) // 13, of another namespace
		w := b.watch("a", metav1.ListOptions{ResourceVersion: "11", LabelSelector: "tier=gold", AllowWatchBookmarks: true})
		b.want(b.read(w), "MODIFIED x 12")
		b.set("a/x", 2, map[string]string{"tier": "iron"})
		b.set("a/x", 3, map[string]string{"tier": "iron"})
		b.set("a/x", 3, map[string]string{"tier": "gold"})
		b.want(b.read(w), "DELETED x 14", "ADDED x 16")
		time.Sleep(bookmarkEvery) //nolint:forbidigo // virtual time
		b.want(b.read(w), "BOOKMARK  16")
		b.s.Compact()
		b.set("a/x", 4, map[string]string{"tier": "gold"})
		b.want(b.read(w), "MODIFIED x 18") // who follows is not hurt
		w.Stop()
		b.want(b.read(b.watch("a", metav1.ListOptions{ResourceVersion: "16"})), "ERROR 410", "end")
	})
}

func TestServer_StreamedListEndsWithABookmark(t *testing.T) {
	bubble(t, func(b *bed) {
		b.set("a/x", 1, nil)
		b.set("a/y", 1, nil)
		yes := true
		w := b.watch("", metav1.ListOptions{SendInitialEvents: &yes, ResourceVersionMatch: metav1.ResourceVersionMatchNotOlderThan, AllowWatchBookmarks: true})
		b.want(b.read(w), "ADDED x 11", "ADDED y 12", "BOOKMARK  12")
		if !b.s.Listed(webs.Resource, "", "") || b.s.Listed(webs.Resource, "a", "") {
			b.Error("Listed does not know what was listed")
		}
		w.Stop()
	})
}

// Each end of a watch is what the client makes of it.
func TestPlan_EndsOfAWatch(t *testing.T) {
	for end, want := range map[End][]string{
		InOrder: {"ADDED x 11", "end"},
		Reset:   {"ADDED x 11", "end"},
		Cut:     {"ADDED x 11", "end"},
		Expired: {"ADDED x 11", "ERROR 410", "end"},
		Failed:  {"ADDED x 11", "ERROR 500", "end"},
		Stalled: {"ADDED x 11"},
	} {
		bubble(t, func(b *bed) {
			b.plan = Plan{EndEvents: 1, End: end}
			b.set("a/x", 1, nil)
			b.set("a/y", 1, nil)
			w := b.watch("", metav1.ListOptions{ResourceVersion: "10"})
			b.want(b.read(w), want...)
			w.Stop()
		})
	}
}

func TestPlan_EventsAreLateAndComeTwice(t *testing.T) {
	bubble(t, func(b *bed) {
		b.plan = Plan{Latency: time.Second, Twice: 2}
		w := b.watch("", metav1.ListOptions{ResourceVersion: "10"})
		b.set("a/x", 1, nil)
		b.set("a/y", 1, nil)
		b.want(b.read(w))
		time.Sleep(time.Second) //nolint:forbidigo // virtual time
		b.want(b.read(w), "ADDED x 11", "ADDED y 12", "ADDED y 12")
		w.Stop()
	})
}

func TestPlan_Refusals(t *testing.T) {
	for code, is := range map[int]func(error) bool{
		http.StatusForbidden: apierrors.IsForbidden, http.StatusNotFound: apierrors.IsNotFound, http.StatusGone: apierrors.IsResourceExpired,
		http.StatusTooManyRequests: apierrors.IsTooManyRequests, http.StatusInternalServerError: apierrors.IsInternalError,
	} {
		bubble(t, func(b *bed) {
			b.plan = Plan{Code: code}
			if _, err := b.client.List(b.Context(), metav1.ListOptions{}); !is(err) {
				b.Errorf("%d: %v", code, err)
			}
		})
	}
}

func TestServer_WritesAsTheAPIServerDoes(t *testing.T) {
	bubble(t, func(b *bed) {
		o := b.set("a/x", 1, nil)
		if same := b.set("a/x", 1, nil); same.GetResourceVersion() != o.GetResourceVersion() {
			b.Error("a write that changes nothing made a new version")
		}
		if _, err := b.s.Create(webs.Resource, o); !apierrors.IsAlreadyExists(err) {
			b.Errorf("Create: %v", err)
		}
		next := b.set("a/x", 2, map[string]string{"a": "b"})
		if next.GetGeneration() != 2 || next.GetUID() != o.GetUID() {
			b.Errorf("%v", next)
		}
		if _, err := b.s.Update(webs.Resource, o); !apierrors.IsConflict(err) {
			b.Errorf("Update of an old version: %v", err)
		}
		next.SetFinalizers([]string{"f"})
		next, err := b.s.Update(webs.Resource, next)
		if err != nil || next.GetGeneration() != 2 {
			b.Fatalf("%v, %v", next, err)
		}
		if _, err := b.s.Delete(webs.Resource, key("a/x"), "another"); !apierrors.IsConflict(err) {
			b.Errorf("Delete with another uid: %v", err)
		}
		if next, err = b.s.Delete(webs.Resource, key("a/x"), ""); err != nil || next.GetDeletionTimestamp() == nil || next.GetGeneration() != 3 {
			b.Fatalf("%v, %v", next, err)
		}
		next.SetFinalizers(nil)
		if _, err := b.s.Update(webs.Resource, next); err != nil {
			b.Fatal(err)
		}
		if _, err := b.s.Get(webs.Resource, key("a/x")); !apierrors.IsNotFound(err) {
			b.Errorf("Get: %v", err)
		}
		labelled := func(o *unstructured.Unstructured) bool { return o.GetLabels() != nil && o.GetFinalizers() == nil }
		if since, over := b.s.Since(webs.Resource, key("a/x"), labelled); !over || since.GetResourceVersion() != "12" {
			b.Errorf("Since: %v, %t", since, over)
		}
		if recreated := b.set("a/x", 1, nil); recreated.GetUID() == o.GetUID() || recreated.GetGeneration() != 1 {
			b.Errorf("%v", recreated)
		}
	})
}

// A list that may be of any age is as old as planned, and no older than what
// was forgotten.
func TestPlan_Lag(t *testing.T) {
	bubble(t, func(b *bed) {
		b.plan = Plan{Lag: 2}
		for i := range int64(4) {
			b.set("a/x", i, nil)
		}
		list, err := b.client.List(b.Context(), metav1.ListOptions{ResourceVersion: "0"})
		if err != nil || list.GetResourceVersion() != "12" || list.Items[0].GetResourceVersion() != "12" {
			b.Errorf("%v, %v", list, err)
		}
		b.s.Compact()
		if list, err = b.client.List(b.Context(), metav1.ListOptions{ResourceVersion: "0"}); err != nil || list.GetResourceVersion() != "15" {
			b.Errorf("%v, %v", list, err)
		}
		js, err := json.Marshal(list.Items[0].Object["spec"])
		if err != nil || string(js) != `{"value":3}` {
			b.Errorf("%s, %v", js, err)
		}
	})
}
