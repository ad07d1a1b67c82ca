// SPDX-License-Identifier: Apache-2.0

package kubeapi

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/wasmctl/wasmctl/abi"
)

// purse is an Account of a number of bytes.
type purse struct {
	limit, used, most atomic.Int64
}

// Take implements Account.
func (p *purse) Take(n int64) error {
	used := p.used.Add(n)
	if used > p.limit.Load() {
		p.used.Add(-n)
		return &abi.LimitError{Limit: abi.LimitMemoryBudget, Value: "1Mi", What: "what others use"}
	}
	for most := p.most.Load(); used > most && !p.most.CompareAndSwap(most, used); most = p.most.Load() {
	}
	return nil
}

// Give implements Account.
func (p *purse) Give(n int64) { p.used.Add(-n) }

// largeObject returns the JSON of a ConfigMap with n small maps, each about 8 bytes, and 340 bytes
// decoded.
func largeObject(maps int) string {
	return `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"x","namespace":"a","uid":"u-1","resourceVersion":"7"},"data":[` +
		strings.Repeat(`{"a":1},`, maps) + `1]}`
}

func largeMap(t testing.TB, maps int) map[string]any {
	t.Helper()
	var object map[string]any
	if err := json.Unmarshal([]byte(largeObject(maps)), &object); err != nil {
		t.Fatal(err)
	}
	return object
}

// TestLedger_CountsBeforeItDecodes: a message that is too large for the account is BUDGET, with the
// name of the limit and nothing about others, before it takes the memory.
func TestLedger_CountsBeforeItDecodes(t *testing.T) {
	object := largeMap(t, 20_000) // 7 MiB decoded
	ref := map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "namespace": "a", "name": "x"}
	limited := NewPolicy([]abi.Capability{
		{Resource: "configmaps", Verbs: []string{"get", "list", "update", "patch"}, Fields: []string{"data"}},
		{Resource: "configmaps", Verbs: []string{"get", "list"}},
	})
	for _, tt := range []struct {
		name   string
		op     abi.Op
		req    map[string]any
		policy *Policy
		answer string
	}{
		{"a body", abi.OpAPICreate, map[string]any{"object": object}, everything(), "{}"},
		{"a patch", abi.OpAPIPatch, with(ref, "patchType", "merge", "patch", map[string]any{"data": object["data"]}), everything(), "{}"},
		{"an answer", abi.OpAPIGet, ref, everything(), largeObject(100_000)},
		{"a list", abi.OpAPIList, map[string]any{"apiVersion": "v1", "kind": "ConfigMap"}, everything(), `{"items":[` + largeObject(100_000) + `]}`},
		{"what a write is judged on", abi.OpAPIPatch, with(ref, "patchType", "merge", "patch", map[string]any{"data": nil}), limited, largeObject(20_000)},
		{"an answer that no transcoder takes", abi.OpAPIGet, ref, everything(), `{"b":1,` + largeObject(20_000)[1:len(largeObject(20_000))-1] + `,"b":2}`},
	} {
		p := &purse{}
		api := scripted(t, answer("application/json", 200, tt.answer))
		api.cfg.Account, api.cfg.Policy = p, tt.policy
		b := msg(t, tt.req)
		call := func() (got abi.Response, allocated uint64) {
			allocated, _ = cost(func() { got = api.Call(t.Context(), tt.op, b) })
			return got, allocated
		}
		p.limit.Store(1 << 20)
		got, allocated := call()
		message := fmt.Sprint(statusBody(t, got)["message"])
		if got.Status != abi.StatusBudget || !strings.Contains(message, "(memory_budget 1Mi)") || strings.Contains(message, "others") || allocated > 8<<20 {
			t.Errorf("%s: %v %s, %d KiB", tt.name, got.Status, message, allocated>>10)
		}
		p.limit.Store(1 << 30)
		if got, allocated = call(); got.Status == abi.StatusBudget || p.most.Load() < 1<<20 {
			t.Errorf("%s, with room: %v; counted %d of %d KiB", tt.name, got.Status, p.most.Load()>>10, allocated>>10)
		}
		if n := p.used.Load(); n != 0 {
			t.Errorf("%s: %d bytes stay counted", tt.name, n)
		}
	}
}

// TestLedger_PagesOfTheCache: a page counts before it is written.
func TestLedger_PagesOfTheCache(t *testing.T) {
	cache := &packedCache{}
	for i := range 100 {
		cache.add("a", fmt.Sprintf("x%03d", i), 10_000)
	}
	p := &purse{}
	api := offlineAPI(t, everything())
	api.cfg.Account, api.cfg.Cache = p, cache
	for limit, want := range map[int64]abi.Status{1 << 20: abi.StatusBudget, 4 << 20: abi.StatusOK} {
		p.limit.Store(limit)
		if got := api.Call(t.Context(), abi.OpCacheList, msg(t, map[string]any{"apiVersion": "v1", "kind": "ConfigMap"})); got.Status != want {
			t.Errorf("with %d: %v %.200s", limit, got.Status, got.Body)
		}
	}
	if p.used.Load() != 0 || p.most.Load() < 3_000_000 {
		t.Errorf("counted %d, %d stay", p.most.Load(), p.used.Load())
	}
}

// ownerOf is an owner for results that are declared.
func ownerOf(t testing.TB, api *API) Owner {
	t.Helper()
	return Owner{Kind: resolve(t, api.cfg.Resolver, "configmaps"), Object: msg(t, map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "web", "namespace": "a", "uid": "u-1", "resourceVersion": "7"},
	})}
}

// TestLedger_DeclaredResults: children count together, and each while it is
// decoded; what does not fit is tried again, and no fault of the object.
func TestLedger_DeclaredResults(t *testing.T) {
	child := func(maps int) []byte {
		object := largeMap(t, maps)
		object["metadata"] = map[string]any{"name": "x"}
		return msg(t, object)
	}
	p := &purse{}
	api := scripted(t, answer("application/json", 200, `{"metadata":{"uid":"u-2","resourceVersion":"8"}}`))
	api.cfg.Account = p
	for name, tt := range map[string]struct {
		child       []byte
		small, room int64
	}{
		"decoded":      {child(2_000), 400_000, 2 << 20},
		"all together": {msg(t, map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "x"}, "data": map[string]any{"a": strings.Repeat("x", 1<<20)}}), 2 << 20, 6 << 20},
	} {
		p.limit.Store(tt.small)
		err := api.Declare(t.Context(), ownerOf(t, api), &abi.Declared{Apply: [][]byte{tt.child}})
		result, ok := errors.AsType[*abi.ResultError](err)
		if !ok || result.Class != abi.ErrorTransient || result.Reason != "BudgetExceeded" || !strings.Contains(err.Error(), "(memory_budget 1Mi)") {
			t.Errorf("%s: %v", name, err)
		}
		if limit, ok := errors.AsType[*abi.LimitError](err); !ok || limit.Limit != abi.LimitMemoryBudget {
			t.Errorf("%s: no LimitError in %v", name, err)
		}
		p.limit.Store(tt.room)
		if err := api.Declare(t.Context(), ownerOf(t, api), &abi.Declared{Apply: [][]byte{tt.child}}); err != nil {
			t.Errorf("%s, with room: %v", name, err)
		}
		if n := p.used.Load(); n != 0 {
			t.Errorf("%s: %d bytes stay counted", name, n)
		}
	}
}

// TestLedger_Hammer: whatever becomes of operations, nothing stays counted.
func TestLedger_Hammer(t *testing.T) {
	p := &purse{}
	p.limit.Store(4 << 20)
	large := largeObject(5_000)
	api := scripted(t, func(w http.ResponseWriter, r *http.Request) {
		switch rand.IntN(8) {
		case 0:
			answer("application/json", 409, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Conflict","code":409}`)(w, r)
		case 1:
			answer("application/json", 404, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"NotFound","code":404,"details":{"name":"x"}}`)(w, r)
		case 2:
			answer("application/json", 200, large[:len(large)/2])(w, r)
		case 3:
			answer("application/json", 200, large[:40_000])(w, r)
			<-r.Context().Done()
		default:
			answer("application/json", 200, large)(w, r)
		}
	})
	api.cfg.Account, api.cfg.Logger = p, slog.New(slog.DiscardHandler)
	limited := api.WithPolicy(NewPolicy([]abi.Capability{
		{Resource: "configmaps", Verbs: []string{"*"}, Fields: []string{"data"}}, {Resource: "configmaps", Verbs: []string{"get"}},
	}))
	apis := []*API{api, limited, api.WithPolicy(nil), api.WithDryRun(DryRunClient), limited.WithDryRun(DryRunServer), api.WithObserver(func(context.Context, *Exchange) {
		if rand.IntN(3) == 0 {
			panic("a bug of the host")
		}
	})}
	object, owner := largeMap(t, 3_000), ownerOf(t, api)
	object["metadata"] = map[string]any{"name": "x", "namespace": "a"}
	ref := map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "namespace": "a", "name": "x"}
	requests := map[abi.Op][]byte{
		abi.OpAPIGet: msg(t, ref), abi.OpAPICreate: msg(t, map[string]any{"object": object}), abi.OpAPIUpdate: msg(t, map[string]any{"object": object}),
		abi.OpAPIApply: msg(t, map[string]any{"object": object}), abi.OpAPIDelete: msg(t, ref),
		abi.OpAPIPatch: msg(t, with(ref, "patchType", "merge", "patch", map[string]any{"data": object["data"]})),
	}
	declared := &abi.Declared{Apply: [][]byte{msg(t, object)}, Status: msg(t, map[string]any{"a": object["data"]})}
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for range 40 {
				hammerLedger(t, apis[rand.IntN(len(apis))], requests, owner, declared)
			}
		})
	}
	wg.Wait()
	if p.used.Load() != 0 || p.most.Load() < 1<<20 {
		t.Errorf("counted %d at most, %d bytes stay counted", p.most.Load(), p.used.Load())
	}
}

// hammerLedger does one thing that must leave nothing behind.
func hammerLedger(t *testing.T, api *API, requests map[abi.Op][]byte, owner Owner, d *abi.Declared) {
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	defer func() { _ = recover() }()
	switch n := rand.IntN(len(allOps) + 2); {
	case n < len(allOps):
		api.Call(ctx, allOps[n], requests[allOps[n]])
	case n == len(allOps):
		_ = api.Declare(ctx, owner, d)
	default:
		_, _ = api.AddFinalizer(ctx, owner.Kind, owner.Object, "a.b/c")
	}
}
