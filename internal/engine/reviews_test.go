// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"github.com/wasmctl/wasmctl/runtime/reflector"
	"github.com/wasmctl/wasmctl/runtime/watcher"
)

// revocable is an API server with one ConfigMap, and rights that can be taken back. An open
// watch outlives its right, as in a real one. Secrets are always refused.
type revocable struct {
	mu      sync.Mutex
	denied  bool           // lists and watches; guarded by mu
	revoked map[place]bool // lists and watches, too; guarded by mu
	lying   bool           // reviews deny what is allowed; guarded by mu
	reviews int            // guarded by mu
	lists   int            // guarded by mu
}

func (r *revocable) set(denied, lying bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.denied, r.lying, r.reviews, r.lists = denied, lying, 0, 0
}

func (r *revocable) counts() (reviews, lists int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.reviews, r.lists
}

// place is where one user lists objects.
type place struct{ user, namespace, resource string }

// allows reports whether the user of a request has the right to list. The caller must hold mu.
func (r *revocable) allows(req *http.Request) bool {
	at := place{user: req.Header.Get("Impersonate-User")}
	if req.Method == http.MethodPost {
		var review authorizationv1.SelfSubjectAccessReview
		if err := json.NewDecoder(req.Body).Decode(&review); err != nil {
			panic(err)
		}
		at.namespace, at.resource = review.Spec.ResourceAttributes.Namespace, review.Spec.ResourceAttributes.Resource
	} else if path := strings.Split(req.URL.Path, "/"); len(path) == 6 {
		at.namespace, at.resource = path[4], path[5]
	}
	return !r.denied && !r.revoked[at]
}

// RoundTrip implements http.RoundTripper.
func (r *revocable) RoundTrip(req *http.Request) (*http.Response, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	answer := func(code int, body string) (*http.Response, error) {
		return &http.Response{StatusCode: code, Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(strings.NewReader(body)), Request: req}, nil
	}
	switch {
	case strings.HasSuffix(req.URL.Path, "accessreviews"):
		r.reviews++
		return answer(http.StatusCreated, fmt.Sprintf(`{"kind":"SelfSubjectAccessReview","apiVersion":"authorization.k8s.io/v1","spec":{},"status":{"allowed":%t}}`, !r.lying && r.allows(req)))
	case !r.allows(req), strings.Contains(req.URL.Path, "secrets"):
		return answer(http.StatusForbidden, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Forbidden","code":403,"message":"no right"}`)
	case req.URL.Query().Get("watch") == "":
		return answer(http.StatusNotFound, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"NotFound","code":404}`)
	}
	r.lists++
	body, feed := io.Pipe()
	go func() {
		_, _ = io.WriteString(feed, `{"type":"ADDED","object":{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"a","namespace":"shop","uid":"u","resourceVersion":"5"}}}
{"type":"BOOKMARK","object":{"kind":"ConfigMap","apiVersion":"v1","metadata":{"resourceVersion":"9","annotations":{"k8s.io/initial-events-end":"true"}}}}
`)
		seconds, _ := strconv.Atoi(req.URL.Query().Get("timeoutSeconds"))
		select {
		case <-time.After(time.Duration(seconds) * time.Second):
			_ = feed.Close()
		case <-req.Context().Done():
			_ = feed.CloseWithError(req.Context().Err())
		}
	}()
	return &http.Response{StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {"application/json"}}, Body: body, Request: req}, nil
}

// watched runs identities on a revocable API server, with a watch of a tenant, in virtual time.
func watched(t *testing.T, f func(t *testing.T, api *revocable, id *Identity, phase func(watcher.Phase))) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		api := &revocable{}
		ids, err := NewIdentities(&rest.Config{Host: "http://fake", Transport: api, QPS: -1}, watcher.Config{Log: slog.New(slog.DiscardHandler)})
		if err != nil {
			t.Fatal(err)
		}
		id, release, err := ids.As("system:serviceaccount:shop:web", "shop")
		if err != nil {
			t.Fatal(err)
		}
		defer release()
		sub := id.Watches.Acquire(watcher.Source{Resource: schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}, Namespace: "shop"}, func(context.Context, reflector.Event) {})
		ctx, cancel := context.WithCancel(t.Context())
		var running sync.WaitGroup
		running.Go(func() { _ = sub.Run(ctx) })
		running.Go(func() { ids.Run(ctx) })
		<-sub.Synced()
		f(t, api, id, func(want watcher.Phase) {
			t.Helper()
			synctest.Wait()
			if got := sub.State(); got.Phase != want || want == watcher.Denied && !strings.Contains(got.Message, "list and watch on configmaps in namespace shop") {
				t.Fatalf("%s (%s), want %s", got.Phase, got.Message, want)
			}
		})
		cancel()
		running.Wait()
	})
}

// pass advances virtual time.
func pass(d time.Duration) {
	time.Sleep(d) //nolint:forbidigo // virtual time
}

// TestReviews_ARevokedRightEndsTheWatch: within ten seconds the watch is denied, and it comes
// back by itself. A denied watch costs no reviews.
func TestReviews_ARevokedRightEndsTheWatch(t *testing.T) {
	watched(t, func(t *testing.T, api *revocable, _ *Identity, phase func(watcher.Phase)) {
		pass(time.Minute)
		phase(watcher.Ready)
		if reviews, lists := api.counts(); lists != 1 || reviews < 5 || reviews > 8 {
			t.Errorf("%d reviews and %d lists in a minute", reviews, lists)
		}
		api.set(true, false)
		pass(reviewEvery + time.Second)
		phase(watcher.Denied)
		api.set(true, false)
		pass(time.Minute)
		phase(watcher.Denied)
		if reviews, _ := api.counts(); reviews > 0 {
			t.Errorf("%d reviews of a denied watch", reviews)
		}
		api.set(false, false)
		pass(6 * time.Second)
		phase(watcher.Ready)
	})
}

// TestReviews_ARefusedRequestEndsTheWatchAtOnce: the refusal of any request of the identity is
// a reason to look.
func TestReviews_ARefusedRequestEndsTheWatchAtOnce(t *testing.T) {
	watched(t, func(t *testing.T, api *revocable, id *Identity, phase func(watcher.Phase)) {
		pass(11 * time.Second)
		api.set(true, false)
		if _, err := id.Dynamic.Resource(schema.GroupVersionResource{Version: "v1", Resource: "secrets"}).Namespace("shop").Get(t.Context(), "x", metav1.GetOptions{}); err == nil {
			t.Fatal("not refused")
		}
		pass(2 * time.Second)
		phase(watcher.Denied)
	})
}

// TestReviews_TheAPIServerDecides: a review that denies what the API server allows, as with an
// authorizer that considers selectors, causes fewer and fewer lists.
func TestReviews_TheAPIServerDecides(t *testing.T) {
	watched(t, func(t *testing.T, api *revocable, _ *Identity, phase func(watcher.Phase)) {
		api.set(false, true)
		pass(time.Hour)
		phase(watcher.Ready)
		if _, lists := api.counts(); lists < 2 || lists > 20 {
			t.Errorf("%d lists in an hour", lists)
		}
	})
}

// TestReviews_TakeTurns: each identity has its first right reviewed before any has its second.
func TestReviews_TakeTurns(t *testing.T) {
	used := uses{}
	for i := range 5 {
		rights := map[right]time.Time{}
		for j := range 3 * i {
			rights[right{namespace: fmt.Sprint(j)}] = time.Time{}
		}
		used[identityKey{user: fmt.Sprint(i)}] = rights
	}
	list, seen := used.inTurns(), map[identityKey]int{}
	for _, v := range list {
		for key, rights := range used {
			if n := min(seen[v.identityKey], len(rights)); seen[key] < n {
				t.Fatalf("%v has %d reviews, and %v has %d", v.identityKey, seen[v.identityKey], key, seen[key])
			}
		}
		seen[v.identityKey]++
	}
	if len(list) != 3+6+9+12 {
		t.Errorf("%d reviews", len(list))
	}
}

// TestReviews_ADenialEndsTheDoubt: a right that comes back and goes again soon is reviewed as
// often as any other.
func TestReviews_ADenialEndsTheDoubt(t *testing.T) {
	watched(t, func(t *testing.T, api *revocable, _ *Identity, phase func(watcher.Phase)) {
		pass(time.Second)
		api.set(true, false)
		pass(reviewEvery)
		phase(watcher.Denied)
		api.set(false, false)
		pass(6 * time.Second)
		phase(watcher.Ready)
		api.set(true, false)
		pass(reviewEvery)
		phase(watcher.Denied)
	})
}
