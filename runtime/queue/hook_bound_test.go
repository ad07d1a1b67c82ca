// SPDX-License-Identifier: Apache-2.0

package queue_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/runtime/queue"
	"github.com/wasmctl/wasmctl/runtime/reflector"
)

// Rule 10: Mapped waits for earlier changes, and for no others.
func TestHook_MappedWaitsForWhatWasThere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHook(t, queue.HookConfig{Module: guest{mapFunc: func(ctx context.Context, ev *abi.Event) ([]abi.Key, error) {
			sleep(time.Second)
			return target(ctx, ev)
		}}})
		if isOpen(h.Mapped()) {
			t.Error("nothing waits, and Mapped is open")
		}
		h.Handle(applied(t, "a", 1), false)
		h.Handle(applied(t, "a", 2), false)
		h.Handle(applied(t, "b", 1), false)
		mapped := h.Mapped()
		h.Handle(applied(t, "a", 3), false)
		h.Handle(applied(t, "c", 1), false)
		defer h.start(t)()
		begin := time.Now()
		<-mapped
		if diff := cmp.Diff([]string{"ns/t-a", "ns/t-b"}, h.refs()[:2]); diff != "" {
			t.Error(diff)
		}
		if took := time.Since(begin); took > 4*time.Second { // a, b, c, a, and a not
			t.Errorf("took %v", took)
		}
		if st := h.State(); st.Handled < 3 || st.Handled > 4 {
			t.Errorf("%d handled when Mapped closed", st.Handled)
		}
	})
}

// Rule 17: one object that the guest fails to map does not prevent all others from being reconciled.
func TestHook_MappedGoesOnWithoutWhatCannotBeMapped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tries := 0
		h := newHook(t, queue.HookConfig{Module: guest{mapFunc: func(ctx context.Context, ev *abi.Event) ([]abi.Key, error) {
			if ev.Key.Name == "bad" {
				tries++
				return nil, errors.New("trap")
			}
			return target(ctx, ev)
		}}})
		h.Handle(applied(t, "bad", 1), false)
		h.Handle(applied(t, "bad", 2), false)
		h.Handle(applied(t, "good", 1), false)
		mapped := h.Mapped()
		defer h.start(t)()
		<-mapped
		if tries != 3 {
			t.Errorf("given up after %d tries", tries)
		}
		if isOpen(h.Mapped()) {
			t.Error("a later Mapped waits for it again")
		}
	})
}

// Rule 16: the watch never waits, and the number of waiting changes is bounded per object.
func TestHook_ChangesOfOneObjectAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var states []string
		asked := 0
		h := newHook(t, queue.HookConfig{Module: guest{
			filterFunc: func(context.Context, *abi.Event) (bool, error) { asked++; return true, nil },
			mapFunc: func(_ context.Context, ev *abi.Event) ([]abi.Key, error) {
				states = append(states, state(t, ev.Old)+">"+state(t, ev.New))
				return nil, nil
			},
		}})
		for n := range 20 {
			h.Handle(applied(t, "a", n+1), true)
		}
		mapped := h.Mapped()
		defer h.start(t)()
		<-mapped
		want := []string{">1", "1>2", "2>3", "3>4", "4>5", "5>6", "6>7", "7>20"}
		if diff := cmp.Diff(want, states); diff != "" {
			t.Error(diff)
		}
		if st := h.State(); st.Merged != 12 || st.Handled != 20 || asked != 7 {
			t.Errorf("asked %d times, state %+v", asked, st)
		}
	})
}

// A merged change is from the first state to the last, whatever was in between, and is never empty.
func TestHook_MergedChangeHasBothEnds(t *testing.T) {
	created := reflector.Event{Type: reflector.Applied, New: version(t, "a", 90)}
	deleted := func(n int) reflector.Event { return reflector.Event{Type: reflector.Deleted, Old: version(t, "a", n)} }
	for what, c := range map[string]struct {
		events []reflector.Event // the first is the last one that fits
		want   string
	}{
		"deleted":               {[]reflector.Event{applied(t, "a", 8), deleted(8)}, "Deleted 7>"},
		"recreated":             {[]reflector.Event{deleted(7), created}, "Updated 7>90"},
		"came and went":         {[]reflector.Event{created, deleted(90)}, "Deleted 90>"},
		"changed and recreated": {[]reflector.Event{applied(t, "a", 8), deleted(8), created}, "Updated 7>90"},
	} {
		synctest.Test(t, func(t *testing.T) {
			var last string
			h := newHook(t, queue.HookConfig{Module: guest{mapFunc: func(_ context.Context, ev *abi.Event) ([]abi.Key, error) {
				last = string(ev.Type) + " " + state(t, ev.Old) + ">" + state(t, ev.New)
				return nil, nil
			}}})
			for n := range queue.MaxChanges - 1 {
				h.Handle(applied(t, "a", n+1), false)
			}
			for _, ev := range c.events {
				h.Handle(ev, false)
			}
			mapped := h.Mapped()
			defer h.start(t)()
			<-mapped
			if last != c.want {
				t.Errorf("%s: got %s, want %s", what, last, c.want)
			}
		})
	}
}
