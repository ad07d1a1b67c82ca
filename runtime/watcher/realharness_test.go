// SPDX-License-Identifier: Apache-2.0

package watcher_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/runtime/reflector"
	"github.com/wasmctl/wasmctl/runtime/watcher"
)

const patience = 30 * time.Second

// rootCA is a ConfigMap that the control plane adds to every namespace at some time: no test counts it.
const rootCA = "kube-root-ca.crt"

// witness is a subscription to a real API server.
type witness struct {
	*testing.T
	sub    *watcher.Subscription
	events chan string
	states chan watcher.State
	stop   func()
}

// observe runs a subscription until the test ends.
func observe(t *testing.T, cfg *rest.Config, source watcher.Source) *witness {
	t.Helper()
	w := &witness{T: t, events: make(chan string, 10_000), states: make(chan watcher.State, 100)}
	client, err := watcher.NewClient(cfg)
	if err != nil {
		t.Fatal(err)
	}
	w.watch(watcher.NewSet(client, watcher.Config{
		OnChange: func(_ watcher.Source, st watcher.State) { w.states <- st },
	}), source)
	return w
}

// join is like observe, with a set that has other subscribers; it does not see phases.
func join(t *testing.T, set *watcher.Set, source watcher.Source) *witness {
	t.Helper()
	w := &witness{T: t, events: make(chan string, 10_000)}
	w.watch(set, source)
	return w
}

func (w *witness) watch(set *watcher.Set, source watcher.Source) {
	w.sub = set.Acquire(source, func(_ context.Context, ev reflector.Event) {
		if ev.Ref().Name != rootCA {
			w.events <- ev.Type.String() + " " + ev.Ref().Name
		}
	})
	ctx, cancel := context.WithCancel(context.WithoutCancel(w.Context()))
	var running sync.WaitGroup
	running.Go(func() {
		if err := w.sub.Run(ctx); err != nil {
			w.Error(err)
		}
	})
	w.stop = func() {
		cancel()
		running.Wait()
	}
	w.Cleanup(w.stop)
}

// expect waits for exactly these events, in any order.
func (w *witness) expect(want ...string) {
	w.Helper()
	var got []string
	timeout := time.After(patience)
	for len(got) < len(want) {
		select {
		case ev := <-w.events:
			got = append(got, ev)
		case <-timeout:
			w.Fatalf("after %s: got %v, want %v; watch is %s", patience, got, want, w.sub.State())
		}
	}
	slices.Sort(got)
	slices.Sort(want)
	if diff := cmp.Diff(want, got); diff != "" {
		w.Fatalf("events: %s", diff)
	}
}

func (w *witness) synced() {
	w.Helper()
	select {
	case <-w.sub.Synced():
	case <-time.After(patience):
		w.Fatalf("not synced after %s: %s", patience, w.sub.State())
	}
}

// phase waits for a phase and returns its state.
func (w *witness) phase(want watcher.Phase) watcher.State {
	w.Helper()
	timeout := time.After(patience)
	for {
		select {
		case st := <-w.states:
			if st.Phase == want {
				return st
			}
		case <-timeout:
			w.Fatalf("not %s after %s: %s", want, patience, w.sub.State())
		}
	}
}

// things is a client for one resource in one namespace.
type things struct {
	testing.TB
	dynamic.ResourceInterface
	apiVersion, kind string
}

func configMapsIn(tb testing.TB, cfg *rest.Config, namespace string) things {
	tb.Helper()
	client, err := dynamic.NewForConfig(cfg)
	if err != nil {
		tb.Fatal(err)
	}
	return things{tb, client.Resource(configMaps).Namespace(namespace), "v1", "ConfigMap"}
}

func (c things) create(names ...string) {
	c.Helper()
	for _, name := range names {
		c.make(&unstructured.Unstructured{Object: map[string]any{
			"apiVersion": c.apiVersion, "kind": c.kind, "metadata": map[string]any{"name": name},
		}})
	}
}

func (c things) make(u *unstructured.Unstructured) {
	c.Helper()
	if _, err := c.Create(c.Context(), u, metav1.CreateOptions{}); err != nil {
		c.Fatal(err)
	}
}

func (c things) label(name, value string) {
	c.Helper()
	patch := fmt.Appendf(nil, `{"metadata":{"labels":{"l":%q}}}`, value)
	if _, err := c.Patch(c.Context(), name, "application/merge-patch+json", patch, metav1.PatchOptions{}); err != nil {
		c.Fatal(err)
	}
}

func (c things) remove(name string) {
	c.Helper()
	if err := c.Delete(c.Context(), name, metav1.DeleteOptions{}); err != nil {
		c.Fatal(err)
	}
}

// agrees checks the store, object by object, against a list.
func (c things) agrees(s *reflector.Store) {
	c.Helper()
	list, err := c.List(c.Context(), metav1.ListOptions{FieldSelector: "metadata.name!=" + rootCA})
	if err != nil {
		c.Fatal(err)
	}
	stored := slices.DeleteFunc(s.List(), func(o *reflector.Object) bool { return o.Ref().Name == rootCA })
	for _, u := range list.Items {
		o := s.Get(reflector.ObjectRef{Namespace: u.GetNamespace(), Name: u.GetName()})
		if o == nil {
			c.Errorf("store has no %s", u.GetName())
			continue
		}
		got, err := abi.DecodeObject(o.Msgpack())
		if err != nil {
			c.Fatal(err)
		}
		u.SetManagedFields(nil)
		if diff := cmp.Diff(u.Object, got); diff != "" {
			c.Errorf("%s: %s", u.GetName(), diff)
		}
	}
	if len(stored) != len(list.Items) {
		c.Errorf("store has %d objects, the API %d", len(stored), len(list.Items))
	}
}

// queries records the query of each list and watch that uses cfg.
func queries(cfg *rest.Config) func() []string {
	var mu sync.Mutex
	var seen []string
	cfg.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(r *http.Request) (*http.Response, error) {
			if r.URL.Path != "/version" {
				mu.Lock()
				seen = append(seen, r.URL.RawQuery)
				mu.Unlock()
			}
			return next.RoundTrip(r)
		})
	})
	return func() []string {
		mu.Lock()
		defer mu.Unlock()
		return slices.Clone(seen)
	}
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// before makes a change and undoes it, waits for both, and returns the other events that came before the second:
// everything that happened before the call is among them, or came earlier. (One change is not enough. If a relist
// contains it, the other events of the relist may follow it.)
func (w *witness) before(c things) []string {
	w.Helper()
	c.create("marker")
	var got []string
	timeout := time.After(patience)
	for {
		select {
		case ev := <-w.events:
			switch ev {
			case "Applied marker", "Relisted marker":
				c.remove("marker")
			case "Deleted marker":
				return got
			default:
				got = append(got, ev)
			}
		case <-timeout:
			w.Fatalf("no event for %s: %s", patience, w.sub.State())
		}
	}
}

// userOf asks the API server for the user of cfg.
func userOf(t *testing.T, cfg *rest.Config) string {
	t.Helper()
	client, err := dynamic.NewForConfig(cfg)
	if err != nil {
		t.Fatal(err)
	}
	gvr := schema.GroupVersionResource{Group: "authentication.k8s.io", Version: "v1", Resource: "selfsubjectreviews"}
	review := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview", "metadata": map[string]any{"name": "self"},
	}}
	review, err = client.Resource(gvr).Create(t.Context(), review, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	name, _, _ := unstructured.NestedString(review.Object, "status", "userInfo", "username")
	return name
}

// grant lets user list and watch configmaps in the namespace.
func grant(t *testing.T, cfg *rest.Config, namespace, user string) {
	t.Helper()
	client, err := dynamic.NewForConfig(cfg)
	if err != nil {
		t.Fatal(err)
	}
	for resource, object := range map[string]map[string]any{
		"roles": {"kind": "Role", "rules": []any{map[string]any{
			"apiGroups": []any{""}, "resources": []any{"configmaps"}, "verbs": []any{"list", "watch"},
		}}},
		"rolebindings": {
			"kind":     "RoleBinding",
			"roleRef":  map[string]any{"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "watcher"},
			"subjects": []any{map[string]any{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": user}},
		},
	} {
		object["apiVersion"] = "rbac.authorization.k8s.io/v1"
		object["metadata"] = map[string]any{"name": "watcher"}
		gvr := schema.GroupVersionResource{Group: "rbac.authorization.k8s.io", Version: "v1", Resource: resource}
		things{TB: t, ResourceInterface: client.Resource(gvr).Namespace(namespace)}.make(&unstructured.Unstructured{Object: object})
	}
}

// revoke undoes grant, and returns when limited is refused.
func revoke(t *testing.T, cfg, limited *rest.Config, namespace string) {
	t.Helper()
	client, err := dynamic.NewForConfig(cfg)
	if err != nil {
		t.Fatal(err)
	}
	for _, resource := range []string{"rolebindings", "roles"} {
		gvr := schema.GroupVersionResource{Group: "rbac.authorization.k8s.io", Version: "v1", Resource: resource}
		things{TB: t, ResourceInterface: client.Resource(gvr).Namespace(namespace)}.remove("watcher")
	}
	mine := configMapsIn(t, limited, namespace)
	eventually(t, "revoked", func() bool {
		_, err := mine.List(t.Context(), metav1.ListOptions{Limit: 1})
		return apierrors.IsForbidden(err)
	})
}

// eventually waits until ok returns true.
func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for limit := time.After(2 * patience); !ok(); {
		select {
		case <-tick.C:
		case <-limit:
			t.Fatalf("not %s after %s", what, 2*patience)
		}
	}
}

// answers records the bodies of the responses to requests that use cfg.
func answers(cfg *rest.Config) func() string {
	var mu sync.Mutex
	var text strings.Builder
	cfg.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(r *http.Request) (*http.Response, error) {
			resp, err := next.RoundTrip(r)
			if err == nil {
				resp.Body = &tee{resp.Body, func(p []byte) {
					mu.Lock()
					defer mu.Unlock()
					text.Write(p)
				}}
			}
			return resp, err
		})
	})
	return func() string {
		mu.Lock()
		defer mu.Unlock()
		return text.String()
	}
}

type tee struct {
	io.ReadCloser
	see func([]byte)
}

func (t *tee) Read(p []byte) (int, error) {
	n, err := t.ReadCloser.Read(p)
	t.see(p[:n])
	return n, err
}

// withoutStreams makes the API server of cfg one that does not stream lists, and does not report its version.
func withoutStreams(cfg *rest.Config) {
	cfg.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(r *http.Request) (*http.Response, error) {
			if r.URL.Path == "/version" { // an old one
				return &http.Response{StatusCode: http.StatusNotFound, Request: r, Body: http.NoBody}, nil
			}
			if r.URL.Query().Get("sendInitialEvents") == "" {
				return next.RoundTrip(r)
			}
			body := `{"apiVersion":"v1","kind":"Status","status":"Failure","code":422,"reason":"Invalid"}`
			return &http.Response{
				StatusCode: http.StatusUnprocessableEntity, Request: r, Body: io.NopCloser(strings.NewReader(body)),
				Header: http.Header{"Content-Type": {"application/json"}},
			}, nil
		})
	})
}
