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
	}).WithRate(1000)
	get := limitsRequest(t, "name", "x")
	var wg sync.WaitGroup
	for range MaxInFlight + 3 {
		wg.Go(func() {
			if got := api.Call(t.Context(), abi.OpAPIGet, get); got.Status != abi.StatusOK {
				t.Errorf("got %v %s", got.Status, got.Body)
			}
		})
	}
	for range MaxInFlight {
		<-entered
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	late := api.Call(ctx, abi.OpAPIGet, get)
	if message := fmt.Sprint(statusBody(t, late)["message"]); late.Status != abi.StatusBudget || !strings.Contains(message, "(api_in_flight 64)") {
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
	if most != MaxInFlight {
		t.Errorf("%d requests were concurrent, want %d", most, MaxInFlight)
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
		l := newLimiter(2, &limitHits{})
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
	api.limits = &limiter{perSecond: 1, hits: api.limits.hits, rate: flowcontrol.NewFakeNeverRateLimiter()}
	got := api.Call(t.Context(), abi.OpAPIGet, limitsRequest(t, "name", "x"))
	if message := fmt.Sprint(statusBody(t, got)["message"]); got.Status != abi.StatusBudget || !strings.Contains(message, "(api_rate 1)") {
		t.Errorf("got %v: %s", got.Status, message)
	}
	if n := api.LimitStats()[abi.LimitAPIRate]; n != 1 {
		t.Errorf("counted %d requests that had to wait, want 1", n)
	}
}

// The next revision with an equal rate shares the remainder.
func TestWithRate_EqualOnesCountTogether(t *testing.T) {
	api := scripted(t, answer("application/json", 200, `{"kind":"ConfigMap"}`)).WithRate(1)
	if other := api.WithPolicy(everything()).WithRate(1); other.limits != api.limits {
		t.Error("equal rates are counted separately")
	}
	if other := api.WithRate(2); other.limits == api.limits || other.limits.hits != api.limits.hits {
		t.Error("another rate has the same limiter, or is not counted")
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
		{"all, at the limit", nil, MaxListItems, "10001", false},
		{"all, beyond", nil, MaxListItems + 1, "10001", true},
		{"a page", []any{"limit", int64(2)}, 2, "2", false},
		{"a large page", []any{"limit", int64(MaxListItems + 1)}, MaxListItems, "10000", false},
		{"an API server that does not page", []any{"limit", int64(2)}, MaxListItems + 1, "2", true},
		{"at a version", []any{"resourceVersion", "0"}, MaxListItems, "", false},
		{"at a version, beyond", []any{"resourceVersion", "0"}, MaxListItems + 1, "", true},
	} {
		var sent string
		api := scripted(t, func(w http.ResponseWriter, r *http.Request) {
			sent = r.URL.Query().Get("limit")
			answer("application/json", 200, items(tc.n))(w, r)
		})
		got := api.Call(t.Context(), abi.OpAPIList, limitsRequest(t, tc.keys...))
		if sent != tc.sent || tc.fails != (got.Status == abi.StatusTooLarge) || tc.fails != strings.Contains(string(got.Body), "(list_items 10000)") {
			t.Errorf("%s: sent limit %q, got %v %s", tc.name, sent, got.Status, got.Body)
		}
		if hits := api.LimitStats()[abi.LimitListItems]; (hits == 1) != tc.fails {
			t.Errorf("%s: counted %d", tc.name, hits)
		}
	}
}

func TestLimits_ListBytes(t *testing.T) {
	list := func(n int) string {
		return `{"apiVersion":"v1","items":[{"a":"` + strings.Repeat("x", n) + `"}],"kind":"ConfigMapList"}`
	}
	room := abi.MaxBytes - len(fromJSON(nil, []byte(list(1<<20))).Body) + 1<<20
	for n, want := range map[int]abi.Status{room: abi.StatusOK, room + 1: abi.StatusTooLarge} {
		got := scripted(t, answer("application/json", 200, list(n))).Call(t.Context(), abi.OpAPIList, limitsRequest(t))
		if message := strings.Contains(string(got.Body), "the limit is 4194304: list with limit and continue"); got.Status != want || message != (want != abi.StatusOK) {
			t.Errorf("%d bytes: got %v %.200s", n, got.Status, got.Body)
		}
	}
}

// A page of the cache is within the limits, and the pages together have all objects.
func TestLimits_PagesOfTheCache(t *testing.T) {
	for name, tc := range map[string]struct{ objects, size, pages int }{
		"items": {MaxListItems + 1, 5, 2},
		"bytes": {7, abi.MaxBytes / 4, 3},
	} {
		cache := &packedCache{}
		var want []string
		for i := range tc.objects {
			want = append(want, fmt.Sprintf("x%05d", i))
			cache.objects = append(cache.objects, cached("a", want[i], tc.size))
		}
		api := offlineAPI(t, everything())
		api.cfg.Cache = cache
		var got []string
		pages := 0
		for token, more := "", true; more; pages++ {
			answer := api.Call(t.Context(), abi.OpCacheList, limitsRequest(t, "limit", int64(3*MaxListItems), "continue", token))
			if answer.Status != abi.StatusOK {
				t.Fatalf("%s: %v %.200s", name, answer.Status, answer.Body)
			}
			body := statusBody(t, answer)
			items := body["items"].([]any)
			if len(answer.Body) > abi.MaxBytes || len(items) > MaxListItems {
				t.Errorf("%s: a page of %d objects, %d bytes", name, len(items), len(answer.Body))
			}
			for _, item := range items {
				got = append(got, keyOf(item.(map[string]any)).Name)
			}
			token, more = at(body, "metadata", "continue").(string)
		}
		if diff := cmp.Diff(want, got); diff != "" || pages != tc.pages {
			t.Errorf("%s: %d pages, want %d: %s", name, pages, tc.pages, diff)
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
