package manager

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"
)

// fake is a controller that runs until it is told otherwise.
type fake struct {
	name     string
	fail     chan error // makes Run return
	stubborn bool       // ends by force only

	running  atomic.Bool
	released atomic.Int32
	runs     atomic.Int32
}

var errForced = errors.New("forced")

func newFake(name string) *fake { return &fake{name: name, fail: make(chan error, 1)} }

func (f *fake) Name() string { return f.name }
func (f *fake) Release()     { f.released.Add(1) }
func (f *fake) Run(ctx context.Context, force <-chan struct{}) error {
	f.runs.Add(1)
	f.running.Store(true)
	defer f.running.Store(false)
	done := ctx.Done()
	if f.stubborn {
		done = nil
	}
	select {
	case <-done:
		return nil
	case err := <-f.fail:
		return err
	case <-force:
		return errForced
	}
}

// managed runs a Manager in a bubble.
func managed(t *testing.T, cfg Config, test func(t *testing.T, m *Manager, stop, force func(), ended <-chan error)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		m := New(cfg)
		ctx, cancel := context.WithCancel(t.Context())
		force := make(chan struct{})
		ended := make(chan error, 1)
		go func() { ended <- m.Run(ctx, force) }()
		test(t, m, cancel, func() { close(force) }, ended)
		cancel()
	})
}

func TestManager_ControllersComeAndGoByThemselves(t *testing.T) {
	managed(t, Config{}, func(t *testing.T, m *Manager, stop, _ func(), ended <-chan error) {
		a, b := newFake("a"), newFake("b")
		if err := errors.Join(m.Add(a), m.Add(b)); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if !a.running.Load() || !b.running.Load() {
			t.Fatal("not running")
		}
		if err := m.Remove(t.Context(), "a"); err != nil || a.running.Load() || !b.running.Load() {
			t.Errorf("remove: %v; a runs: %t, b runs: %t", err, a.running.Load(), b.running.Load())
		}
		if err := m.Remove(t.Context(), "a"); !errors.Is(err, ErrUnknown) {
			t.Errorf("removed twice: %v", err)
		}
		again := newFake("a")
		if err := m.Add(again); err != nil {
			t.Error(err)
		}
		synctest.Wait()
		if diff := cmp.Diff([]string{"a", "b"}, m.Names()); diff != "" || !again.running.Load() {
			t.Errorf("a runs again: %t; names (-want +got):\n%s", again.running.Load(), diff)
		}
		stop()
		if err := <-ended; err != nil || again.running.Load() || b.running.Load() {
			t.Errorf("stopped with %v", err)
		}
		late := newFake("late")
		if err := m.Add(late); !errors.Is(err, ErrStopped) || late.released.Load() != 1 {
			t.Errorf("added after the end: %v, released %d times", err, late.released.Load())
		}
	})
}

func TestManager_NamesAreUnique(t *testing.T) {
	managed(t, Config{}, func(t *testing.T, m *Manager, _, _ func(), _ <-chan error) {
		twin := newFake("a")
		if err := m.Add(newFake("a")); err != nil {
			t.Fatal(err)
		}
		if err := m.Add(twin); !errors.Is(err, ErrNameTaken) || twin.released.Load() != 1 {
			t.Errorf("%v, released %d times", err, twin.released.Load())
		}
	})
}

func TestManager_OneThatEndsDoesNotEndTheOthers(t *testing.T) {
	var told []string
	cfg := Config{OnEnd: func(name string, err error) { told = append(told, fmt.Sprint(name, ": ", err)) }}
	managed(t, cfg, func(t *testing.T, m *Manager, stop, _ func(), ended <-chan error) {
		a, b := newFake("a"), newFake("b")
		if err := errors.Join(m.Add(a), m.Add(b)); err != nil {
			t.Fatal(err)
		}
		broken := errors.New("broken")
		a.fail <- broken
		synctest.Wait()
		if diff := cmp.Diff([]string{"a: broken"}, told); diff != "" || !b.running.Load() {
			t.Errorf("b runs: %t; told (-want +got):\n%s", b.running.Load(), diff)
		}
		stop()
		if err := <-ended; !errors.Is(err, broken) {
			t.Errorf("Run: %v, want the error of a", err)
		}
	})
}

func TestManager_ForceInterruptsAll(t *testing.T) {
	managed(t, Config{}, func(t *testing.T, m *Manager, stop, force func(), ended <-chan error) {
		a, b := newFake("a"), newFake("b")
		a.stubborn = true
		if err := errors.Join(m.Add(a), m.Add(b)); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		stop()
		synctest.Wait()
		if !a.running.Load() || b.running.Load() {
			t.Errorf("after the stop: a runs %t, want it to; b runs %t", a.running.Load(), b.running.Load())
		}
		force()
		if err := <-ended; !errors.Is(err, errForced) {
			t.Errorf("Run: %v", err)
		}
	})
}

// Controllers are added and removed at random by several goroutines: each runs
// at most once, ends or is released, and Run returns with none left.
func TestManager_HammerLeavesNothingBehind(t *testing.T) {
	m := New(Config{})
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- m.Run(ctx, nil) }()
	var mu sync.Mutex
	var all []*fake
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for range 200 {
				f := newFake(fmt.Sprint(rand.IntN(8)))
				mu.Lock()
				all = append(all, f)
				mu.Unlock()
				_ = m.Add(f)
				if rand.IntN(2) == 0 {
					_ = m.Remove(t.Context(), f.name)
				}
			}
		})
	}
	wg.Wait()
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if i := slices.IndexFunc(all, func(f *fake) bool { return f.running.Load() || f.runs.Load()+f.released.Load() != 1 }); i >= 0 {
		t.Errorf("controller %d of %d: ran %d times, released %d times, runs %t", i, len(all), all[i].runs.Load(), all[i].released.Load(), all[i].running.Load())
	}
	if names := m.Names(); len(names) != 0 {
		t.Errorf("left: %v", names)
	}
}
