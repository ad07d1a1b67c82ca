// SPDX-License-Identifier: Apache-2.0

package host

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/host/operation"
	"github.com/wasmctl/wasmctl/host/share"
	"github.com/wasmctl/wasmctl/testdata/wasm"
)

// No more guests than the concurrency are out at once; who waits gets the next
// that is released, the one used last.
func TestAcquire_BoundAndWaiting(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		m := loaded(t, wasm.Modes, Config{Concurrency: 2})
		first, releaseFirst, err := m.Acquire(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		_, releaseSecond, err := m.Acquire(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		defer releaseSecond()
		if _, err := first.Reconcile(t.Context(), request(0)); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, _, err := m.Acquire(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Fatalf("a third guest of two: %v", err)
		}
		var third abi.Guest
		go func() {
			g, release, err := m.Acquire(t.Context())
			if err != nil {
				t.Error(err)
				return
			}
			defer release()
			third = g
			if res, err := g.Reconcile(t.Context(), request(11)); err != nil || res.Action.After != 2*time.Millisecond {
				t.Errorf("%+v %v, want the second call of the first instance", res, err)
			}
		}()
		synctest.Wait()
		if third != nil {
			t.Error("a third guest did not wait")
		}
		releaseFirst()
		synctest.Wait()
		if third == nil {
			t.Error("who waited got no guest")
		}
	})
}

// A host function that waits, waits on the bubble's clock: a call's timeout is
// kept without a real second passing.
func TestReconcile_TimeoutInVirtualTime(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		start := time.Now()
		_, err := acquire(t, loaded(t, wasm.WASI, Config{})).Reconcile(t.Context(), request(6)) // sleeps for an hour
		if ce := callError(t, err); ce.Kind != abi.FailureTimeout || time.Since(start) != share.DefaultTimeout {
			t.Errorf("after %v: %v", time.Since(start), err)
		}
	})
}

func TestClose_WaitsForGuestsAndRefusesNewOnes(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		m := loaded(t, wasm.Modes, Config{Concurrency: 1})
		g, release, err := m.Acquire(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		waiting := make(chan error, 1)
		go func() {
			_, _, err := m.Acquire(t.Context())
			waiting <- err
		}()
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := m.Close(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("with a guest in use: %v", err)
		}
		if err := <-waiting; !errors.Is(err, ErrClosed) {
			t.Errorf("who waited: %v", err)
		}
		if _, _, err := m.Acquire(t.Context()); !errors.Is(err, ErrClosed) {
			t.Errorf("a new one: %v", err)
		}
		if _, err := g.Reconcile(t.Context(), request(0)); err != nil {
			t.Errorf("the one in use: %v", err)
		}
		release()
		for range 2 {
			if err := m.Close(t.Context()); err != nil {
				t.Error(err)
			}
		}
	})
}

// Loading and closing leaves no goroutine and no memory behind.
func TestClose_ReturnsEverything(t *testing.T) {
	inThisProcess(t)
	once := func() {
		m, err := Load(context.Background(), wasm.Calls, Config{})
		if err != nil {
			t.Fatal(err)
		}
		guest, release, err := m.Acquire(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		play(t, guest.(*lease), hostCall{"log_level", [4]uint32{}})
		release()
		if err := m.Close(context.Background()); err != nil {
			t.Fatal(err)
		}
	}
	once()
	goroutines, used := runtime.NumGoroutine(), heap()
	for range 30 {
		once()
	}
	if grown := heap() - used; grown > 1<<20 { // an instance alone has 256 KiB
		t.Errorf("%d bytes of heap are still in use", grown)
	}
	for range 1000 { // wazero's watchers end on their own, soon after their call
		if runtime.NumGoroutine() <= goroutines {
			return
		}
		runtime.Gosched()
	}
	t.Errorf("%d goroutines, were %d", runtime.NumGoroutine(), goroutines)
}

// Hammer: guests that work, trap, and run out of time beside each other, while
// the module is closed.
func TestModule_Hammer(t *testing.T) {
	workers, rounds := 8, 60
	if testing.Short() {
		workers, rounds = 4, 20
	}
	m := loaded(t, wasm.Modes, Config{Concurrency: 3})
	hurry(m, 10*time.Millisecond)
	var good, inUse, most atomic.Int64
	var wg sync.WaitGroup
	for w := range workers {
		wg.Go(func() {
			for i := range rounds {
				g, release, err := m.Acquire(t.Context())
				if errors.Is(err, ErrClosed) {
					return
				}
				if _, late := errors.AsType[*abi.CallError](err); late {
					continue // the start code of a fresh instance has 10 ms as well
				}
				if err != nil {
					t.Error(err)
					return
				}
				for n := inUse.Add(1); ; {
					if old := most.Load(); n <= old || most.CompareAndSwap(old, n) {
						break
					}
				}
				mode := byte(0)
				if i%5 == 0 {
					mode = byte(1 + w%2*4) // traps, or a bad result
				}
				if i == rounds/2 {
					mode = 2
				}
				_, err = g.Reconcile(t.Context(), request(mode))
				var ce *abi.CallError
				switch {
				case err == nil:
					good.Add(1)
				case !errors.As(err, &ce):
					t.Error(err)
				default:
					if _, err := g.ErrorPolicy(t.Context(), &abi.Failure{Kind: ce.Kind}); err != nil && !errors.As(err, &ce) {
						t.Error(err)
					}
				}
				inUse.Add(-1)
				release()
				if w == 0 && i == rounds-5 {
					_ = m.Close(t.Context())
				}
			}
		})
	}
	wg.Wait()
	if most.Load() > 3 || good.Load() == 0 {
		t.Errorf("%d guests at once of 3, %d good calls", most.Load(), good.Load())
	}
}

func TestWASI_OutputGoesToTheLogAndTheError(t *testing.T) {
	var log bytes.Buffer
	m := loaded(t, wasm.WASI, Config{Name: "c", Concurrency: 8, Logger: slog.New(slog.NewTextHandler(&log, nil))})
	if !strings.Contains(log.String(), `level=INFO msg="first line" controller=c revision=1 from=guest`+"\n") {
		t.Errorf("start code: %s", log.String())
	}
	log.Reset()
	if _, err := acquire(t, m).Reconcile(t.Context(), request(1)); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`level=INFO msg="first line"`, `level=INFO msg="second, without an end"`, "object=default/web reconcile_id=r1"} {
		if !strings.Contains(log.String(), want) {
			t.Errorf("stdout: %q is missing in %s", want, log.String())
		}
	}
	log.Reset()
	_, err := acquire(t, m).Reconcile(t.Context(), request(2))
	if ce := callError(t, err); ce.Kind != abi.FailureTrap || ce.Output != "" || err.Error() != "guest[reconcile]: panic: out of luck" {
		t.Errorf("got %q, %v", ce.Output, err)
	}
	if strings.Contains(log.String(), "level=WARN") { // the error has it
		t.Errorf("stderr: %s", log.String())
	}
}

// A line that begins as a panic does is logged where the call goes on, in its order.
func TestOutput_WhatOnlyLooksLikeAPanicIsLogged(t *testing.T) {
	var log bytes.Buffer
	m := loaded(t, wasm.WASI, Config{Logger: slog.New(slog.NewTextHandler(&log, nil))})
	log.Reset()
	d := acquire(t, m).in.Desk
	d.Output.Begin()
	want := []string{"one", "panic: two", "three", "four"}
	d.Print(operation.Stderr, []byte(strings.Join(want, "\n")))
	if text := log.String(); !strings.Contains(text, "msg=one") || strings.Contains(text, "three") {
		t.Errorf("before the end: %s", text)
	}
	d.Output.End()
	var got []string
	for _, m := range regexp.MustCompile(`msg=("[^"]*"|\S+)`).FindAllStringSubmatch(log.String(), -1) {
		got = append(got, strings.Trim(m[1], `"`))
	}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestWASI_OutputIsBounded(t *testing.T) {
	var log bytes.Buffer
	m := loaded(t, wasm.WASI, Config{Logger: slog.New(slog.NewTextHandler(&log, nil))})
	if _, err := acquire(t, m).Reconcile(t.Context(), request(8)); err != nil { // 800 KiB in one line
		t.Fatal(err)
	}
	if n := log.Len(); n > 2*operation.MaxOutput || !strings.Contains(log.String(), "dropped_bytes=") {
		t.Errorf("%d bytes were logged of 800 KiB", n)
	}
}

func TestWASI_ExitIsATrap(t *testing.T) {
	m := loaded(t, wasm.WASI, Config{})
	for mode, want := range map[byte]string{3: "guest[reconcile]: trap: exited with code 3", 4: "guest[reconcile]: trap: exited with code 0"} {
		g := acquire(t, m)
		_, err := g.Reconcile(t.Context(), request(mode))
		if ce := callError(t, err); ce.Kind != abi.FailureTrap || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("got %v, want %s", err, want)
		}
		if _, err := g.Reconcile(t.Context(), request(0)); err != nil {
			t.Errorf("after the exit: %v", err)
		}
	}
}

// Clocks and random numbers are those of the configuration, the controller's name is
// the only argument, and there is no environment.
func TestWASI_Sandbox(t *testing.T) {
	inThisProcess(t)
	cfg := Config{
		Name:  "web",
		Clock: operation.Clock{Now: func() time.Time { return time.Unix(1767225600, 123) }, Mono: func() int64 { return 42 }, Random: io.MultiReader(strings.NewReader("12345678"), strings.NewReader("more"))},
	}
	g := acquire(t, loaded(t, wasm.WASI, cfg))
	read := func(ptr uint32) uint64 { v, _ := memoryOf(g.in).ReadUint64Le(ptr); return v }
	if _, err := g.Reconcile(t.Context(), request(5)); err != nil {
		t.Fatal(err)
	}
	if read(512) != 1767225600_000000123 || read(520) != 42 || read(528) != 0x3837363534333231 {
		t.Errorf("got %d, %d, %x", read(512), read(520), read(528))
	}
	if _, err := g.Reconcile(t.Context(), request(7)); err != nil {
		t.Fatal(err)
	}
	if read(512) != 4<<32|1 || read(520) != 0 {
		t.Errorf("arguments, environment and their sizes: %x %x", read(512), read(520))
	}
}

// Where a new instance cannot be made, the error says of which revision; nothing
// else that Acquire fails by does.
func TestAcquire_SaysWhoseInstanceDoesNotStart(t *testing.T) {
	m := loaded(t, wasm.Modes, Config{Concurrency: 2})
	_, release, err := m.Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	over, cancel := context.WithCancel(t.Context())
	cancel()
	_, _, err = m.Acquire(over)
	if start, ok := errors.AsType[*StartError](err); !ok || start.Revision() != m.Revision() {
		t.Errorf("%v", err)
	}
	release()
	if err := m.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	_, _, err = m.Acquire(t.Context())
	if _, ok := errors.AsType[*StartError](err); ok || !errors.Is(err, ErrClosed) {
		t.Errorf("closed: %v", err)
	}
}
