// SPDX-License-Identifier: Apache-2.0

package kubeapi

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/client-go/util/flowcontrol"

	"github.com/wasmctl/wasmctl/abi"
)

func limitsRequest(t *testing.T, kv ...any) []byte {
	t.Helper()
	r := map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "namespace": "a"}
	for i := 0; i < len(kv); i += 2 {
		r[kv[i].(string)] = kv[i+1]
	}
	return msg(t, r)
}

// At most a fixed number of requests are concurrent, the next one waits, and one whose run ends
// before reports its limit.
func TestLimits_InFlight(t *testing.T) {
	entered, leave := make(chan struct{}), make(chan struct{})
	var mu sync.Mutex
	now, most := 0, 0 // guarded by mu
	count := func(n int) {
		mu.Lock()
		defer mu.Unlock()
		now += n
		most = max(most, now)
	}
	api := scripted(t, func(w http.ResponseWriter, r *http.Request) {
		count(1)
		defer count(-1)
		entered <- struct{}{}
		<-leave
		answer("application/json", 200, `{"kind":"ConfigMap"}`)(w, r)
	}).WithLimits(Limits{InFlight: 2})
	get := limitsRequest(t, "name", "x")
	var wg sync.WaitGroup
	for range 5 {
		wg.Go(func() {
			if got := api.Call(t.Context(), abi.OpAPIGet, get); got.Status != abi.StatusOK {
				t.Errorf("got %v %s", got.Status, got.Body)
			}
		})
	}
	<-entered
	<-entered
	ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	late := api.Call(ctx, abi.OpAPIGet, get)
	if message := fmt.Sprint(statusBody(t, late)["message"]); late.Status != abi.StatusBudget || !strings.Contains(message, "(api_in_flight 2)") {
		t.Errorf("got %v: %s", late.Status, message)
	}
	go func() {
		for range 3 {
			<-entered
		}
	}()
	for limit := time.After(time.Minute); api.LimitStats()[abi.LimitAPIInFlight] < 4; { // the others may not have begun yet
		select {
		case <-time.After(time.Millisecond):
		case <-limit:
			t.Fatal("not all requests wait")
		}
	}
	close(leave)
	wg.Wait()
	if most != 2 {
		t.Errorf("%d requests were under way at once, want 2", most)
	}
	if n := api.LimitStats()[abi.LimitAPIInFlight]; n != 4 {
		t.Errorf("counted %d requests that waited, want 4", n)
	}
}

// A request beyond the rate waits. If the run has too little time, the request fails at once
// without being sent. The requests of one second may be sent at once. The next one waits for its
// turn, or fails if its run ends before.
func TestLimits_Rate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLimiter(Limits{Rate: 2}, &limitHits{})
		begin := time.Now()
		enter := func(within time.Duration) error {
			ctx, cancel := context.WithTimeout(t.Context(), within)
			defer cancel()
			done, err := l.enter(ctx)
			if err == nil {
				done()
			}
			return err
		}
		for _, step := range []struct {
			within, at time.Duration
			refused    bool
		}{
			{time.Hour, 0, false},
			{time.Hour, 0, false},
			{time.Millisecond, 0, true},
			{time.Hour, 500 * time.Millisecond, false},
			{time.Hour, time.Second, false},
		} {
			err := enter(step.within)
			if at := time.Since(begin).Round(time.Millisecond); at != step.at || (err != nil) != step.refused {
				t.Errorf("at %v: %v, want %+v", at, err, step)
			}
		}
		if n := l.hits.rate.Load(); n != 3 {
			t.Errorf("counted %d requests that had to wait, want 3", n)
		}
	})
}

// A request beyond the rate, whose run has no time to wait, is not sent.
func TestLimits_RateIsARefusal(t *testing.T) {
	api := scripted(t, func(http.ResponseWriter, *http.Request) { t.Error("it was sent") })
	api.limits = &limiter{Limits: Limits{Rate: 1}, hits: api.limits.hits, rate: flowcontrol.NewFakeNeverRateLimiter()}
	got := api.Call(t.Context(), abi.OpAPIGet, limitsRequest(t, "name", "x"))
	if message := fmt.Sprint(statusBody(t, got)["message"]); got.Status != abi.StatusBudget || !strings.Contains(message, "(api_rate 1)") {
		t.Errorf("got %v: %s", got.Status, message)
	}
	if n := api.LimitStats()[abi.LimitAPIRate]; n != 1 {
		t.Errorf("counted %d requests that had to wait, want 1", n)
	}
}

// The next revision with equal limits shares their remainder.
func TestWithLimits_EqualOnesCountTogether(t *testing.T) {
	api := scripted(t, answer("application/json", 200, `{"kind":"ConfigMap"}`)).WithLimits(Limits{Rate: 1})
	if other := api.WithPolicy(everything()).WithLimits(Limits{Rate: 1}); other.limits != api.limits {
		t.Error("equal limits are counted apart")
	}
	if other := api.WithLimits(Limits{Rate: 2}); other.limits == api.limits || other.limits.hits != api.limits.hits {
		t.Error("other limits are not other limits, or are not counted")
	}
}

func TestLimits_ListItems(t *testing.T) {
	items := func(n int) string {
		return `{"apiVersion":"v1","items":[` + strings.TrimSuffix(strings.Repeat(`{"a":1},`, n), ",") + `],"kind":"ConfigMapList"}`
	}
	for _, tc := range []struct {
		name  string
		keys  []any
		n     int
		sent  string
		fails bool
	}{
		{"all, at the limit", nil, 3, "4", false},
		{"all, beyond", nil, 4, "4", true},
		{"a page", []any{"limit", int64(2)}, 2, "2", false},
		{"a large page", []any{"limit", int64(100)}, 3, "3", false},
		{"an API server that does not page", []any{"limit", int64(2)}, 4, "2", true},
		{"at a version", []any{"resourceVersion", "0"}, 3, "", false},
		{"at a version, beyond", []any{"resourceVersion", "0"}, 4, "", true},
	} {
		var sent string
		api := scripted(t, func(w http.ResponseWriter, r *http.Request) {
			sent = r.URL.Query().Get("limit")
			answer("application/json", 200, items(tc.n))(w, r)
		}).WithLimits(Limits{ListItems: 3})
		got := api.Call(t.Context(), abi.OpAPIList, limitsRequest(t, tc.keys...))
		if sent != tc.sent || tc.fails != (got.Status == abi.StatusTooLarge) || tc.fails != strings.Contains(string(got.Body), "(list_items 3)") {
			t.Errorf("%s: sent limit %q, got %v %s", tc.name, sent, got.Status, got.Body)
		}
		if hits := api.LimitStats()[abi.LimitListItems]; (hits == 1) != tc.fails {
			t.Errorf("%s: counted %d", tc.name, hits)
		}
	}
}

func TestLimits_ListBytes(t *testing.T) {
	const list = `{"apiVersion":"v1","items":[],"kind":"ConfigMapList"}`
	whole := len(fromJSON(nil, []byte(list)).Body)
	for limit, want := range map[int]abi.Status{whole: abi.StatusOK, whole - 1: abi.StatusTooLarge} {
		api := scripted(t, answer("application/json", 200, list)).WithLimits(Limits{ListBytes: int64(limit)})
		got := api.Call(t.Context(), abi.OpAPIList, limitsRequest(t))
		if message := strings.Contains(string(got.Body), fmt.Sprintf("(list_bytes %d)", limit)); got.Status != want || message != (want != abi.StatusOK) {
			t.Errorf("limit %d: got %v %s", limit, got.Status, got.Body)
		}
	}
}

// Pages from the cache are as small as the limits want; all objects come
// nevertheless.
func TestLimits_PagesOfTheCache(t *testing.T) {
	for _, limits := range []Limits{{ListItems: 3}, {ListBytes: 600}} {
		cache := &packedCache{}
		var want []string
		for i := range 10 {
			cache.add("a", fmt.Sprintf("x%d", i), 50)
			want = append(want, fmt.Sprintf("x%d", i))
		}
		api := offlineAPI(t, everything()).WithLimits(limits)
		api.cache = cache
		var got []string
		pages := 0
		for token, more := "", true; more; pages++ {
			answer := api.Call(t.Context(), abi.OpCacheList, limitsRequest(t, "limit", int64(100), "continue", token))
			body := statusBody(t, answer)
			if answer.Status != abi.StatusOK {
				t.Fatalf("%+v: %v %v", limits, answer.Status, body)
			}
			items := body["items"].([]any)
			if limits.ListBytes > 0 && int64(len(answer.Body)) > limits.ListBytes || limits.ListItems > 0 && int64(len(items)) > limits.ListItems {
				t.Errorf("%+v: a page of %d objects, %d bytes", limits, len(items), len(answer.Body))
			}
			for _, item := range items {
				got = append(got, keyOf(item.(map[string]any)).Name)
			}
			token, more = at(body, "metadata", "continue").(string)
		}
		if diff := cmp.Diff(want, got); diff != "" || pages < 4 {
			t.Errorf("%+v: %d pages: %s", limits, pages, diff)
		}
	}
}

func TestCountItems_AnyBytes(t *testing.T) {
	for _, b := range []string{"", "\x81", "\x81\xa5items", "\x81\xa5items\xc0", "\x81\xa5items\xa1x", "\x81\xa1a\x01", "\xc0"} {
		if n := countItems([]byte(b)); n != 0 {
			t.Errorf("%q: %d", b, n)
		}
	}
}
