// SPDX-License-Identifier: Apache-2.0

package share

import (
	"context"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// modelTurns is a dumb model of turnLine: lists of jobs in the order in which they arrived.
type modelTurns struct {
	total, each      int
	waiting, running []modelJob
}

type modelJob struct {
	tenant string
	w      *turnWaiter
}

func of(jobs []modelJob, tenant string) (n int) {
	for _, j := range jobs {
		if j.tenant == tenant {
			n++
		}
	}
	return n
}

// mayStart returns the jobs that may start next, if costs are not considered.
func (m *modelTurns) mayStart() (jobs []modelJob) {
	fewest := m.each
	for _, j := range m.waiting {
		n := of(m.running, j.tenant)
		if n >= m.each || len(m.running) >= 2*m.total || len(m.running) >= m.total && n > 0 || n > fewest {
			continue
		}
		if n < fewest {
			fewest, jobs = n, nil
		}
		if of(jobs, j.tenant) == 0 { // the first of its tenant
			jobs = append(jobs, j)
		}
	}
	return jobs
}

// Whatever happens in whatever order: the next turn goes to the first job of a tenant that has
// the fewest turns, no bound is exceeded, and a turn that may be given is given.
func TestTurns_AgreeWithAModel(t *testing.T) {
	tenants := []string{"a", "b", "c", "d"}
	for seed := range uint64(300) {
		rng := rand.New(rand.NewPCG(seed, 3))
		m := modelTurns{total: 1 + rng.IntN(4), each: 1 + rng.IntN(4)}
		l := NewTurns(m.total, m.each).line
		for range 300 {
			switch rng.IntN(5) {
			case 0, 1:
				tenant := tenants[rng.IntN(len(tenants))]
				m.waiting = append(m.waiting, modelJob{tenant, l.enter(tenant)})
			case 2:
				may, w := m.mayStart(), l.next()
				if (w == nil) != (len(may) == 0) {
					t.Fatalf("seed %d: next returned %v, %d jobs may start", seed, w, len(may))
				}
				if w == nil {
					continue
				}
				i := slices.IndexFunc(may, func(j modelJob) bool { return j.w == w })
				if i < 0 {
					t.Fatalf("seed %d: the job of another tenant is next", seed)
				}
				m.running = append(m.running, may[i])
				m.waiting = slices.DeleteFunc(m.waiting, func(j modelJob) bool { return j.w == w })
			case 3:
				if n := len(m.running); n > 0 {
					i := rng.IntN(n)
					l.end(m.running[i].tenant, 1, time.Duration(rng.IntN(100)))
					m.running = slices.Delete(m.running, i, i+1)
				}
			case 4:
				if n := len(m.waiting); n > 0 {
					i := rng.IntN(n)
					if !l.leave(m.waiting[i].tenant, m.waiting[i].w) {
						t.Fatalf("seed %d: a job that waits cannot leave", seed)
					}
					m.waiting = slices.Delete(m.waiting, i, i+1)
				}
			}
			if l.taken != len(m.running) {
				t.Fatalf("seed %d: %d turns are taken, want %d", seed, l.taken, len(m.running))
			}
			if len(m.running)+len(m.waiting) == 0 && len(l.tenants) > 0 {
				t.Fatalf("seed %d: %d idle tenants are remembered", seed, len(l.tenants))
			}
		}
	}
}

// Of tenants with equally many turns, the one whose turns have cost less goes first: over time,
// each gets the same time, however long its jobs are.
func TestTurns_CostIsShared(t *testing.T) {
	l := NewTurns(1, 1).line
	length := map[string]time.Duration{"long": 90, "short": 10}
	owner, got := map[*turnWaiter]string{}, map[string]time.Duration{}
	for tenant := range length {
		owner[l.enter(tenant)] = tenant
	}
	for range 1000 {
		tenant := owner[l.next()]
		got[tenant] += length[tenant]
		owner[l.enter(tenant)] = tenant
		l.end(tenant, 1, length[tenant])
	}
	if d := got["long"] - got["short"]; d < -100 || d > 100 {
		t.Errorf("the tenants got %v", got)
	}
}

// The jobs of a tenant may never end: another tenant's first job begins at once, and its
// other jobs do when a turn is free.
func TestTurns_SlowTenantDelaysOnlyItself(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		turns := NewTurns(4, 2)
		ctx, stop := context.WithCancel(t.Context())
		var slow sync.WaitGroup
		for range 100 {
			slow.Go(func() {
				if turns.Take(ctx, "slow") == nil {
					<-ctx.Done()
					turns.End("slow", 1, time.Hour)
				}
			})
		}
		synctest.Wait()
		if n := turns.Taken(); n != 2 {
			t.Errorf("a tenant has %d turns, want 2", n)
		}
		start := time.Now()
		for range 10 {
			if err := turns.Take(t.Context(), "other"); err != nil {
				t.Fatal(err)
			}
			turns.End("other", 1, time.Second)
		}
		if waited := time.Since(start); waited != 0 {
			t.Errorf("another tenant waited for %v", waited)
		}
		stop()
		slow.Wait()
		if n := turns.Taken(); n != 0 {
			t.Errorf("%d turns are lost", n)
		}
	})
}

// Hammer: bounds hold, and no turn is lost when jobs give up in between.
func TestTurns_Hammer(t *testing.T) {
	const total, each = 3, 2
	turns := NewTurns(total, each)
	var running, most atomic.Int64
	var wg sync.WaitGroup
	for w := range 16 {
		tenant := string(rune('a' + w%4))
		wg.Go(func() {
			for i := range 200 {
				ctx, cancel := context.WithCancel(context.Background())
				if i%3 == 0 {
					go cancel()
				}
				if turns.Take(ctx, tenant) == nil {
					n := 1 + turns.More(tenant, 1)
					now := running.Add(int64(n))
					for old := most.Load(); now > old && !most.CompareAndSwap(old, now); old = most.Load() {
					}
					running.Add(int64(-n))
					turns.End(tenant, n, time.Duration(i))
				}
				cancel()
			}
		})
	}
	wg.Wait()
	if turns.Taken() != 0 || most.Load() > 2*total {
		t.Errorf("%d turns are lost; %d were taken at once", turns.Taken(), most.Load())
	}
}

// A job gets further turns if no other job waits for them.
func TestTurns_MoreTakesWhatIsLeft(t *testing.T) {
	turns := NewTurns(3, 3)
	for _, want := range []int{1, 0} {
		if err := turns.Take(t.Context(), "a"); err != nil {
			t.Fatal(err)
		}
		if n := turns.More("a", 1); n != want {
			t.Errorf("got %d more turns, want %d", n, want)
		}
	}
	turns.End("a", 2, 0)
	turns.line.enter("b") // it waits until give is called
	if n := turns.More("a", 1); n != 0 {
		t.Errorf("got %d turns before a job that waits", n)
	}
}
