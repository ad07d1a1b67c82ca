// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"log/slog"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"github.com/wasmctl/wasmctl/host/share"
	"github.com/wasmctl/wasmctl/runtime/reflector"
	"github.com/wasmctl/wasmctl/runtime/watcher"
)

func newIdentities(t *testing.T) *Identities {
	t.Helper()
	watches := watcher.Config{Log: slog.New(slog.DiscardHandler)}
	ids, err := NewIdentities(&rest.Config{Host: "https://127.0.0.1:1"}, watches)
	if err != nil {
		t.Fatal(err)
	}
	return ids
}

// TestIdentities_AreThoseInUse compares Identities with a list of their users. Equal user
// names share an identity.
func TestIdentities_AreThoseInUse(t *testing.T) {
	type use struct {
		user    string
		id      *Identity
		release func()
	}
	ids, r := newIdentities(t), rand.New(rand.NewPCG(5, 6)) //nolint:gosec // a test
	var uses []use
	for range 5000 {
		if len(uses) > 0 && r.IntN(2) == 0 {
			i := r.IntN(len(uses))
			uses[i].release()
			uses = slices.Delete(uses, i, i+1)
		} else {
			user := []string{"", "a", "b", "c"}[r.IntN(4)]
			id, release, err := ids.As(user, "")
			if err != nil || id.Config.Impersonate.UserName != user {
				t.Fatalf("%q: %+v, %v", user, id, err)
			}
			uses = append(uses, use{user, id, release})
		}
		want := map[string]*Identity{}
		for _, u := range uses {
			if other := want[u.user]; other != nil && other != u.id {
				t.Fatalf("two identities of %q", u.user)
			}
			want[u.user] = u.id
		}
		delete(want, "")
		if n := ids.Others(); n != len(want) {
			t.Fatalf("%d identities, want %d", n, len(want))
		}
	}
}

// TestIdentities_ComeAndGoAtOnce is for the race detector.
func TestIdentities_ComeAndGoAtOnce(t *testing.T) {
	ids := newIdentities(t)
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 100 {
				_, release, err := ids.As("a", "")
				if err != nil {
					t.Error(err)
					return
				}
				ids.EachWatch(nil)
				release()
			}
		})
	}
	wg.Wait()
	if n := ids.Others(); n > 0 {
		t.Errorf("%d identities are left", n)
	}
}

// TestIdentities_CachedObjectsAreCharged to the tenant in the budget of the process, and those of
// the process itself are not.
func TestIdentities_CachedObjectsAreCharged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ids, err := NewIdentities(&rest.Config{Host: "http://fake", Transport: &revocable{}, QPS: -1}, watcher.Config{Log: slog.New(slog.DiscardHandler)})
		if err != nil {
			t.Fatal(err)
		}
		ids.Budget = share.NewBudget(1<<30, 0)
		for _, tenant := range []string{"", "shop"} {
			id, release, err := ids.As("web", tenant)
			if err != nil {
				t.Fatal(err)
			}
			sub := id.Watches.Acquire(watcher.Source{Resource: schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}}, func(context.Context, reflector.Event) {})
			ctx, cancel := context.WithCancel(t.Context())
			var running sync.WaitGroup
			running.Go(func() { _ = sub.Run(ctx) })
			<-sub.Synced()
			usage := ids.Budget.Usage()
			if tenant == "" && len(usage) > 0 || tenant != "" && (len(usage) != 1 || usage[0].Tenant != tenant || usage[0].Kinds["objects"] == 0) {
				t.Errorf("%q: %+v", tenant, usage)
			}
			cancel()
			running.Wait()
			release()
			if usage := ids.Budget.Usage(); len(usage) > 0 {
				t.Errorf("%q is charged for nothing: %+v", tenant, usage)
			}
		}
	})
}
