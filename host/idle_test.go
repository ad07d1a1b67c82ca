// SPDX-License-Identifier: Apache-2.0

package host

import (
	"math/rand/v2"
	"os"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/wasmctl/wasmctl/host/internal/instance"
	"github.com/wasmctl/wasmctl/host/share"
	"github.com/wasmctl/wasmctl/testdata/wasm"
)

// An instance that nothing runs in is closed in time, each after its own last run,
// and the next run gets a fresh one.
func TestIdle_InstancesAreClosedInTime(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		b := share.NewBudget(pages(100), 0)
		m := loaded(t, wasm.Calls, Config{Process: Process{Budget: b}, Concurrency: 2, Keep: Keep{Idle: time.Minute}})
		idle := func() int {
			synctest.Wait()
			g := m.last.Load()
			g.pool.mu.Lock()
			defer g.pool.mu.Unlock()
			return len(g.pool.idle)
		}
		run := func() {
			guest, release, err := m.Acquire(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			defer release()
			if _, err := guest.Reconcile(t.Context(), request(0)); err != nil {
				t.Fatal(err)
			}
		}
		_, releaseOne, err := m.Acquire(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		run() // the other instance
		<-time.After(30 * time.Second)
		releaseOne()
		if n := idle(); n != 2 {
			t.Fatalf("%d instances are idle, want 2", n)
		}
		<-time.After(29 * time.Second)
		if n := idle(); n != 2 {
			t.Errorf("%d instances are idle after 59 s, want 2", n)
		}
		<-time.After(time.Second)
		if n := idle(); n != 1 {
			t.Errorf("%d instances are idle after a minute, want 1", n)
		}
		for range 5 { // what is used stays
			<-time.After(20 * time.Second)
			run()
		}
		if n := idle(); n != 1 {
			t.Errorf("%d instances are idle although one is used, want 1", n)
		}
		<-time.After(time.Minute)
		if n := idle(); n != 0 {
			t.Errorf("%d instances are idle, want 0", n)
		}
		used(t, b, 0)
		run()
		if n := idle(); n != 1 {
			t.Errorf("%d instances are idle after a run, want 1", n)
		}
	})
}

// With the last idle instance its module gives the image back, and makes another when
// it needs one.
func TestIdle_TheImageGoesToo(t *testing.T) {
	inThisProcess(t)
	inBubble(t, func(t *testing.T) {
		b := share.NewBudget(pages(100), 0)
		m := loaded(t, randomProgram(rand.New(rand.NewPCG(1, 1))), Config{Process: Process{Budget: b}, Concurrency: 3, Keep: Keep{Idle: time.Minute}})
		for range 2 {
			for range 3 {
				_, release, err := m.Acquire(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				defer release()
				time.AfterFunc(time.Second, release)
			}
			maker := m.last.Load().maker
			if !maker.HasImage() {
				t.Error("there is no image")
			}
			<-time.After(2 * time.Minute)
			synctest.Wait()
			used(t, b, 0)
			if n := m.Memory(); n != 0 {
				t.Errorf("%d bytes are counted", n)
			}
		}
	})
}

// BenchmarkIdle_Memory is the memory of the process for one more module of the same
// bytes, here one of the standard Go toolchain, after a run: while its instance is
// kept, and after that.
func BenchmarkIdle_Memory(b *testing.B) {
	for name, keep := range map[string]time.Duration{"kept": -1, "closed": time.Millisecond} {
		b.Run(name, func(b *testing.B) {
			wasm, cfg, req := example(b)
			cfg.Process.Codes, cfg.Keep.Idle = &Codes{}, keep
			reconciled := func() {
				m := loaded(b, wasm, cfg)
				guest, release, err := m.Acquire(b.Context())
				if err != nil {
					b.Fatal(err)
				}
				if _, err := guest.Reconcile(b.Context(), req); err != nil {
					b.Fatal(err)
				}
				release()
				for keep > 0 && m.Revisions()[0].Instances > 0 {
					<-time.After(keep)
				}
			}
			reconciled()
			before := resident(b)
			for b.Loop() {
				reconciled()
			}
			b.ReportMetric(float64(resident(b)-before)/float64(b.N)/(1<<20), "MiB/module")
		})
	}
}

// resident returns the resident memory of the process in bytes, without garbage.
func resident(b *testing.B) int {
	b.Helper()
	debug.FreeOSMemory()
	text, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		b.Skip("SKIPPED: ", err)
	}
	pages, err := strconv.Atoi(strings.Fields(string(text))[1])
	if err != nil {
		b.Fatal(err)
	}
	return pages * os.Getpagesize()
}

// At rest, one instance stays, which shares memory with the image, and takes no
// memory of code. More are made when they are needed, and what rests has its time.
func TestIdle_OneInstanceRests(t *testing.T) {
	inThisProcess(t)
	inBubble(t, func(t *testing.T) {
		m := loaded(t, randomProgram(rand.New(rand.NewPCG(1, 1))), Config{Concurrency: 4, Keep: Keep{Idle: time.Minute}})
		g := m.last.Load()
		idle := func() []*instance.Instance {
			synctest.Wait()
			g.pool.mu.Lock()
			defer g.pool.mu.Unlock()
			return slices.Clone(g.pool.idle)
		}
		for range 2 {
			var held []func()
			for range 4 {
				_, release, err := m.Acquire(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				held = append(held, release)
			}
			for _, release := range held[1:] {
				release()
			}
			<-time.After(2 * restAfter)
			if n := len(idle()); n != 3 {
				t.Errorf("%d instances are idle beside one at work, want 3", n)
			}
			held[0]()
			<-time.After(restAfter - 1)
			if n := len(idle()); n != 4 {
				t.Errorf("%d instances are idle before they rest, want 4", n)
			}
			<-time.After(1 + restAfter) // the timer was set while one was at work
			if all := idle(); len(all) != 1 || !all[0].Imaged {
				t.Errorf("%d instances rest, want one of the image", len(all))
			}
		}
		<-time.After(time.Minute)
		if n := len(idle()); n != 0 || g.maker.HasImage() {
			t.Errorf("%d instances are idle after their time, image: %v", n, g.maker.HasImage())
		}
	})
}
