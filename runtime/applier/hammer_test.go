// SPDX-License-Identifier: Apache-2.0

package applier

import (
	"context"
	"errors"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/runtime/applier/guard"
)

// busy is a module with many guests: each run writes, and every third fails.
type busy struct{ n atomic.Uint64 }

func (b *busy) Acquire(context.Context) (abi.Guest, func(), error) { return b, func() {}, nil }
func (b *busy) Revision() uint64                                   { return 1 }
func (b *busy) Fuel() int64                                        { return 0 }

func (b *busy) Reconcile(ctx context.Context, req *abi.Request) (abi.Result, error) {
	n := b.n.Add(1)
	abi.RunFrom(ctx).Wrote(abi.Write{Resource: "webs", Key: req.Key, UID: "u1", ResourceVersion: strconv.FormatUint(n, 10)})
	if n%3 == 0 {
		return abi.Result{}, &abi.CallError{Kind: abi.FailureTrap, Err: errors.New("unreachable")}
	}
	return abi.Result{}, nil
}

func (b *busy) Finalize(ctx context.Context, req *abi.Request) (abi.Result, error) {
	return b.Reconcile(ctx, req)
}

func (b *busy) ErrorPolicy(context.Context, *abi.Failure) (abi.Result, error) {
	return abi.Result{}, abi.ErrNoErrorPolicy
}

// instant is a cache that always includes everything.
type instant struct{}

func (instant) Version(*abi.Write) (string, bool)             { return "0", true }
func (instant) AwaitWrites(context.Context, []abi.Write) bool { return false }

// Many objects, each run by one goroutine at a time, with concurrent readers: the tables are shared, and every run is
// counted.
func TestApply_HammerObjectsAndStats(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		module := &busy{}
		object := (&cluster{t: t}).object()
		a, err := New(Config{
			Controller: "test", Module: module, Cache: instant{}, Guard: guard.Config{Runs: 5},
			Lookup: func(key abi.Key) Object { return rawIf(key.Name != "gone", object) },
		})
		if err != nil {
			t.Fatal(err)
		}
		const workers, rounds = 4, 500
		var wg sync.WaitGroup
		var failed atomic.Uint64
		for worker := range workers {
			wg.Go(func() {
				for i := range rounds {
					key := abi.Key{Namespace: strconv.Itoa(worker), Name: strconv.Itoa(i % 5)}
					if out := a.Apply(t.Context(), key, testReason, time.Time{}); out.Failed() {
						failed.Add(1)
					}
					a.Apply(t.Context(), abi.Key{Namespace: strconv.Itoa(worker), Name: "gone"}, testReason, time.Time{})
				}
			})
			wg.Go(func() {
				for i := range rounds {
					a.Stats()
					a.Failures()
					a.Object(abi.Key{Namespace: strconv.Itoa(worker), Name: strconv.Itoa(i % 5)})
				}
			})
		}
		wg.Wait()
		if a.runs.Load() != workers*rounds || a.Failures()[abi.FailureTrap] != failed.Load() || failed.Load() != workers*rounds/3 || a.writes.total != 5*workers {
			t.Errorf("%+v, %d failed, %v", a.Stats(), failed.Load(), a.Failures())
		}
	})
}
