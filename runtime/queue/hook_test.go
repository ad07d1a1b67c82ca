// SPDX-License-Identifier: Apache-2.0

package queue_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/runtime/queue"
	"github.com/wasmctl/wasmctl/runtime/reflector"
)

func TestHook_GuestGetsOldAndNew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var got []abi.Event
		h := newHook(t, queue.HookConfig{
			Controller: "c", Group: "apps", Version: "v1", Kind: "Deployment",
			Module: guest{mapFunc: func(_ context.Context, ev *abi.Event) ([]abi.Key, error) {
				got = append(got, *ev)
				return nil, nil
			}},
		})
		defer h.start(t)()
		one, two := version(t, "a", 1), version(t, "a", 2)
		h.Handle(reflector.Event{Type: reflector.Listed, New: one}, false)
		h.Handle(reflector.Event{Type: reflector.Applied, Old: one, New: two}, false)
		h.Handle(reflector.Event{Type: reflector.Relisted, Old: one, New: two}, false)
		h.Handle(reflector.Event{Type: reflector.Deleted, Old: one, New: two}, false)
		synctest.Wait()
		ev := abi.Event{Controller: "c", Group: "apps", Version: "v1", Kind: "Deployment", Key: ref("ns", "a")}
		var want []abi.Event
		for _, c := range []struct {
			typ      abi.EventType
			old, now []byte
		}{
			{abi.EventListed, nil, one.Msgpack()},
			{abi.EventUpdated, one.Msgpack(), two.Msgpack()},
			{abi.EventUpdated, one.Msgpack(), two.Msgpack()},
			{abi.EventDeleted, one.Msgpack(), nil},
		} {
			ev.Type, ev.Old, ev.New = c.typ, c.old, c.now
			want = append(want, ev)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Error(diff)
		}
	})
}

// Rule 1: a guest's key is normalized. Rule 4: a first listing has low priority.
func TestHook_RequestsAreSpeltAndDeduplicated(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		module := guest{mapFunc: func(context.Context, *abi.Event) ([]abi.Key, error) {
			return []abi.Key{{Name: "x"}, {Namespace: "ns", Name: "x"}, {Namespace: "other", Name: "x"}}, nil
		}}
		namespaced := newHook(t, queue.HookConfig{Module: module, Resource: "secrets"})
		defer namespaced.start(t)()
		cluster := newHook(t, queue.HookConfig{Module: module, ClusterScoped: true})
		defer cluster.start(t)()
		ev := reflector.Event{Type: reflector.Listed, New: version(t, "a", 1)}
		namespaced.Handle(ev, false)
		cluster.Handle(ev, false)
		synctest.Wait()
		why := abi.Reason{Type: abi.ReasonRelated, Resource: "secrets", Ref: ref("ns", "a")}
		want := []queue.Request{{Ref: ref("ns", "x"), Reason: why, Low: true}, {Ref: ref("other", "x"), Reason: why, Low: true}}
		if diff := cmp.Diff(want, namespaced.emitted); diff != "" {
			t.Error(diff)
		}
		if diff := cmp.Diff([]string{"x"}, cluster.refs()); diff != "" {
			t.Error(diff)
		}
	})
}

// Rule 2: a change that cannot be mapped is retried until it can. As in rule 5, other objects continue meanwhile.
func TestHook_FailureHoldsUpOnlyItsObject(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mended atomic.Bool
		var calls atomic.Int64
		h := newHook(t, queue.HookConfig{Module: guest{mapFunc: func(ctx context.Context, ev *abi.Event) ([]abi.Key, error) {
			if ev.Key.Name == "bad" {
				if calls.Add(1); !mended.Load() {
					return nil, errors.New("trap")
				}
			}
			return target(ctx, ev)
		}}})
		defer h.start(t)()
		h.Handle(applied(t, "bad", 1), false)
		h.Handle(applied(t, "bad", 2), false)
		h.Handle(applied(t, "good", 1), false)
		synctest.Wait()
		if diff := cmp.Diff([]string{"ns/t-good"}, h.refs()); diff != "" {
			t.Error(diff)
		}
		st := h.State()
		if st.Waiting != 1 || st.Failing != 1 || st.LastError == nil {
			t.Errorf("state %+v", st)
		}
		settle(time.Hour)
		// 250 ms doubling to 5 min: 11 tries take some 4 to 5 minutes, then 12 an hour.
		if n := calls.Load(); n < 18 || n > 30 {
			t.Errorf("%d tries in an hour", n)
		}
		mended.Store(true)
		settle(queue.HookBackoffMax * 6 / 5)
		if diff := cmp.Diff([]string{"ns/t-good", "ns/t-bad", "ns/t-bad"}, h.refs()); diff != "" {
			t.Error(diff)
		}
		if st := h.State(); st.Waiting != 0 || st.Failing != 0 || st.LastError != nil || st.Handled != 3 {
			t.Errorf("state after the fix: %+v", st)
		}
	})
}

// A change that comes while the guest fails waits for the next attempt: the back-off applies however often the object
// changes.
func TestHook_ChangesDoNotCutTheBackoffShort(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var calls atomic.Int64
		var ended time.Time // of the last call
		h := newHook(t, queue.HookConfig{Module: guest{mapFunc: func(context.Context, *abi.Event) ([]abi.Key, error) {
			if calls.Add(1); !ended.IsZero() && time.Since(ended) < queue.HookBackoffInitial*4/5 {
				t.Errorf("call %d came %v after the one before", calls.Load(), time.Since(ended))
			}
			defer func() { ended = time.Now() }()
			sleep(50 * time.Millisecond) // so that some come while it is busy
			return nil, errors.New("trap")
		}}})
		defer h.start(t)()
		for n := range 1500 {
			h.Handle(applied(t, "a", n+1), false)
			sleep(40 * time.Millisecond)
		}
		synctest.Wait()
		if n := calls.Load(); n < 7 || n > 9 { // 250 ms doubling, for a minute
			t.Errorf("%d tries in a minute", n)
		}
	})
}

// Rule 23: a failing filter lets the change pass. Its decision is not requested again if map fails.
func TestHook_FilterDecidesAndErrorsPass(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		asked := map[string]int{}
		mapped := map[string]int{}
		h := newHook(t, queue.HookConfig{Module: guest{
			filterFunc: func(_ context.Context, ev *abi.Event) (bool, error) {
				asked[ev.Key.Name]++
				if ev.Key.Name == "broken" {
					return false, errors.New("trap")
				}
				return ev.Key.Name != "drop", nil
			},
			mapFunc: func(ctx context.Context, ev *abi.Event) ([]abi.Key, error) {
				if mapped[ev.Key.Name]++; ev.Key.Name == "retry" && mapped["retry"] < 3 {
					return nil, errors.New("trap")
				}
				return target(ctx, ev)
			},
		}})
		defer h.start(t)()
		for _, name := range []string{"keep", "drop", "broken", "retry"} {
			h.Handle(applied(t, name, 1), true)
		}
		h.Handle(applied(t, "drop", 2), false)
		settle(time.Minute)
		if diff := cmp.Diff(map[string]int{"keep": 1, "drop": 1, "broken": 1, "retry": 1}, asked); diff != "" {
			t.Error("asked:", diff)
		}
		if diff := cmp.Diff(map[string]int{"keep": 1, "drop": 1, "broken": 1, "retry": 3}, mapped); diff != "" {
			t.Error("mapped:", diff)
		}
		if st := h.State(); st.Dropped != 1 || st.FilterErrors != 1 || st.MapErrors != 2 || st.Handled != 5 {
			t.Errorf("state %+v", st)
		}
	})
}

// Without the guest's map, a Mapper of the host maps the changes that the filter passes.
func TestHook_FilterBeforeAMapper(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHook(t, queue.HookConfig{Mapper: queue.Self, Module: guest{
			filterFunc: func(_ context.Context, ev *abi.Event) (bool, error) { return ev.Key.Name == "a", nil },
		}})
		defer h.start(t)()
		h.Handle(applied(t, "a", 1), true)
		h.Handle(applied(t, "b", 1), true)
		synctest.Wait()
		want := []queue.Request{{Ref: ref("ns", "a"), Reason: reason(abi.ReasonObjectUpdated)}}
		if diff := cmp.Diff(want, h.emitted); diff != "" {
			t.Error(diff)
		}
	})
}

// Rule 4: a change comes before the rest of a first listing.
func TestHook_ChangeGoesBeforeFirstListing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHook(t, queue.HookConfig{Module: guest{mapFunc: target}})
		for _, name := range []string{"a", "b", "c"} {
			h.Handle(reflector.Event{Type: reflector.Listed, New: version(t, name, 1)}, false)
		}
		h.Handle(applied(t, "c", 2), false)
		h.Handle(applied(t, "new", 1), false)
		defer h.start(t)()
		synctest.Wait()
		if diff := cmp.Diff([]string{"ns/t-c", "ns/t-new", "ns/t-c", "ns/t-a", "ns/t-b"}, h.refs()); diff != "" {
			t.Error(diff)
		}
	})
}

// A guest's key without a name or a namespace is an error of that change.
func TestHook_KeyThatNamesNothingIsAnError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHook(t, queue.HookConfig{Resource: "secrets", Module: guest{mapFunc: func(context.Context, *abi.Event) ([]abi.Key, error) {
			return []abi.Key{{Namespace: "ns"}}, nil
		}}})
		defer h.start(t)()
		h.Handle(applied(t, "a", 1), false)
		synctest.Wait()
		if st := h.State(); st.Failing != 1 || st.LastError == nil {
			t.Errorf("state %+v", st)
		}
		if got := h.refs(); got != nil {
			t.Errorf("requests %v", got)
		}
	})
}

// Rule 9: Run returns when the call of the guest has returned, and waiting changes are left for the next Run.
func TestHook_StopInterruptsAndKeeps(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		interrupted := 0
		h := newHook(t, queue.HookConfig{Module: guest{mapFunc: func(ctx context.Context, ev *abi.Event) ([]abi.Key, error) {
			if interrupted == 0 {
				<-ctx.Done()
				interrupted++
				return nil, ctx.Err()
			}
			return target(ctx, ev)
		}}})
		stop := h.start(t)
		h.Handle(applied(t, "a", 1), false)
		synctest.Wait()
		if err := h.Run(t.Context()); err == nil {
			t.Error("a second Run at the same time is no error")
		}
		stop()
		if st := h.State(); interrupted != 1 || st.Waiting != 1 || st.MapErrors != 0 {
			t.Errorf("interrupted %d, state %+v", interrupted, st)
		}
		defer h.start(t)()
		synctest.Wait()
		if diff := cmp.Diff([]string{"ns/t-a"}, h.refs()); diff != "" {
			t.Error(diff)
		}
	})
}

func TestNewHook_NeedsModuleAndEmit(t *testing.T) {
	for _, cfg := range []queue.HookConfig{{}, {Module: guest{}}, {Emit: func(context.Context, []queue.Request) {}}} {
		if h, err := queue.NewHook(cfg); h != nil || err == nil {
			t.Errorf("%+v: got %v", cfg, err)
		}
	}
}
