// SPDX-License-Identifier: Apache-2.0

package queue_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/runtime/queue"
)

// model is the expected and the actual behavior of the Hook: per object, the last state that the watch saw, counted
// from 1, and the changes that the guest mapped.
type model struct {
	mu     sync.Mutex
	last   map[string]int      // guarded by mu
	mapped map[string][]string // guarded by mu; "1>2"
}

// check reports changes that were lost, mapped twice or mapped out of order: each must begin where the previous one
// ended, up to the last state. Changes that advance by more than one state must be those that the Hook reports as
// merged.
func (m *model) check(t *testing.T, seed uint64, merged uint64) {
	t.Helper()
	missing := 0
	for name, last := range m.last {
		at := ""
		for _, change := range m.mapped[name] {
			from, to, _ := strings.Cut(change, ">")
			if from != at {
				t.Fatalf("seed %d: object %s: %s does not follow: %v", seed, name, change, m.mapped[name])
			}
			at = to
		}
		if at != fmt.Sprint(last) {
			t.Fatalf("seed %d: object %s: last of %v is not %d", seed, name, m.mapped[name], last)
		}
		missing += last - len(m.mapped[name])
	}
	if uint64(missing) != merged {
		t.Fatalf("seed %d: %d changes were not mapped, %d merged", seed, missing, merged)
	}
}

// Rule 2: whatever fails and however long it takes, each change is mapped once, and those of one object in order. Rule
// 16: the watch never waits.
func TestHook_LikeTheModel(t *testing.T) {
	for seed := range uint64(100) {
		synctest.Test(t, func(t *testing.T) { runModel(t, seed) })
	}
}

func runModel(t *testing.T, seed uint64) {
	rng := rand.New(rand.NewPCG(seed, 7))
	guestRNG := rand.New(rand.NewPCG(seed, 8)) // one call at a time
	m := &model{last: map[string]int{}, mapped: map[string][]string{}}
	failUntil := time.Now().Add(time.Duration(rng.IntN(3600)) * time.Second)
	busy := false
	h := newHook(t, queue.HookConfig{Module: guest{mapFunc: func(_ context.Context, ev *abi.Event) ([]abi.Key, error) {
		if busy {
			t.Error("two calls at once")
		}
		busy = true
		defer func() { busy = false }()
		sleep(time.Duration(guestRNG.IntN(300)) * time.Millisecond)
		if time.Now().Before(failUntil) && guestRNG.IntN(3) > 0 {
			return nil, errors.New("trap")
		}
		m.mapped[ev.Key.Name] = append(m.mapped[ev.Key.Name], state(t, ev.Old)+">"+state(t, ev.New))
		return []abi.Key{ev.Key}, nil
	}}})
	defer h.start(t)()
	for range 200 {
		name := fmt.Sprint("o", rng.IntN(10))
		m.last[name]++
		before := time.Now()
		h.Handle(applied(t, name, m.last[name]), false)
		if time.Since(before) != 0 {
			t.Fatal("Handle waited")
		}
		sleep(time.Duration(rng.IntN(400)) * time.Millisecond)
	}
	settle(3 * time.Hour)
	st := h.State()
	if st.Waiting != 0 || st.Failing != 0 || st.Handled != 200 {
		t.Fatalf("seed %d: state at the end %+v", seed, st)
	}
	m.check(t, seed, st.Merged)
}

// TestHook_Hammer: several watches add changes, and several goroutines read, while the guest fails from time to time.
// It is for the race detector.
func TestHook_Hammer(t *testing.T) {
	const watches, changes = 4, 300
	m := &model{last: map[string]int{}, mapped: map[string][]string{}}
	calls := 0
	h := newHook(t, queue.HookConfig{Module: guest{mapFunc: func(_ context.Context, ev *abi.Event) ([]abi.Key, error) {
		if calls++; calls%50 == 0 {
			return nil, errors.New("trap")
		}
		m.mu.Lock()
		defer m.mu.Unlock()
		m.mapped[ev.Key.Name] = append(m.mapped[ev.Key.Name], state(t, ev.Old)+">"+state(t, ev.New))
		return []abi.Key{ev.Key}, nil
	}}})
	stop := h.start(t)
	var wg sync.WaitGroup
	for w := range watches {
		wg.Go(func() {
			for n := range changes {
				name := fmt.Sprintf("o%d-%d", w, n%5)
				h.Handle(applied(t, name, n/5+1), false)
				m.mu.Lock()
				m.last[name] = n/5 + 1
				m.mu.Unlock()
				if n%40 == 0 {
					<-h.Mapped()
				}
				_ = h.State()
			}
		})
	}
	wg.Wait()
	for { // a Mapped does not wait for an object that failed three times
		<-h.Mapped()
		if h.State().Waiting == 0 {
			break
		}
	}
	stop()
	m.check(t, 0, h.State().Merged)
}

var _ queue.Module = guest{}
