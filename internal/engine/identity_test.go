// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"log/slog"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"

	"k8s.io/client-go/rest"

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
