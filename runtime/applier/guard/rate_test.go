// SPDX-License-Identifier: Apache-2.0

package guard

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/wasmctl/wasmctl/abi"
)

// asks returns the actions of a run that asks for the next one after a delay.
func asks(after time.Duration, writes ...string) did {
	return did{writes: writes, action: abi.Action{Requeue: true, After: after}}
}

// obey performs runs for some time, each as soon as the last one and the guard allow, and returns their start times.
func (w *world) obey(total time.Duration, next func(i int) (did, []abi.Reason)) (starts []time.Duration) {
	begin, wait := w.now, time.Duration(0)
	for i := 0; w.now.Add(wait).Sub(begin) < total; i++ {
		do, reasons := next(i)
		d := w.run(wait, do, reasons...)
		starts = append(starts, w.now.Sub(begin))
		wait = max(d.Delay, do.action.After, d.Floor)
		if len(reasons) > 1 { // an event that needs no timer
			wait = max(d.Delay, time.Millisecond)
		}
	}
	return starts
}

// Runs that ask for each other without end start fast, and end at less than a few runs a second, whatever they do.
func TestGuard_EndlessRatesAreLimited(t *testing.T) {
	for name, c := range map[string]struct {
		next func(i int) (did, []abi.Reason)
		hour int // the maximum number of runs in an hour
	}{
		"at once":              {func(int) (did, []abi.Reason) { return asks(0), []abi.Reason{timer()} }, 90},
		"in the past":          {func(int) (did, []abi.Reason) { return asks(-5 * time.Second), []abi.Reason{timer()} }, 90},
		"almost at once":       {func(int) (did, []abi.Reason) { return asks(time.Millisecond), []abi.Reason{timer()} }, 3700},
		"at once, and a write": {func(int) (did, []abi.Reason) { return asks(0, "status"), []abi.Reason{timer()} }, 90},
		"at once, and two writes in turn": {func(i int) (did, []abi.Reason) {
			return asks(0, []string{"status", "app"}[i%2]), []abi.Reason{timer()}
		}, 90},
		"at once, and new children": {func(i int) (did, []abi.Reason) { return asks(0, fmt.Sprint("app", i)), []abi.Reason{timer()} }, 90 + MaxWrites},
		"at once, and a write that triggers it": {func(i int) (did, []abi.Reason) {
			return asks(0, "status"), []abi.Reason{updated(), timer()}
		}, 100},
		"at once, or soon": {func(i int) (did, []abi.Reason) {
			return asks(time.Duration(i%2) * time.Millisecond), []abi.Reason{timer()}
		}, 200},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, Config{})
			starts := w.obey(time.Hour, c.next)
			if len(starts) > c.hour {
				t.Errorf("%d runs in an hour", len(starts))
			}
			if tenth := starts[9]; tenth > 20*time.Millisecond {
				t.Errorf("the tenth run started after %v", tenth)
			}
			if n, _ := slices.BinarySearch(starts, 5*time.Second); n > 2*DefaultRuns+MaxWrites {
				t.Errorf("%d runs in the first 5 s", n)
			}
			n, _ := slices.BinarySearch(starts, 20*time.Second)
			later, _ := slices.BinarySearch(starts, 25*time.Second)
			if later-n > 6 {
				t.Errorf("%d runs in 5 s after 20 s", later-n)
			}
			if st := w.g.Stats(); st.Episodes == 0 || st.Hot != 1 || w.g.State(self).Cause == CauseNone || len(w.g.Hot(5)) != 1 {
				t.Errorf("%+v, %+v", st, w.g.State(self))
			}
		})
	}
}

// Sequences of runs that ask for each other for good reason are never slowed.
func TestGuard_LegitimateRatesAreNotLimited(t *testing.T) {
	for name, next := range map[string]func(w *world, i int) did{
		"ten steps, and then a change": func(_ *world, i int) did {
			if i%11 == 10 {
				return did{}
			}
			return asks(0)
		},
		"ten steps, and then a period": func(_ *world, i int) did {
			if i%11 == 10 {
				return asks(MinRequeue)
			}
			return asks(time.Millisecond)
		},
		"four times a second": func(*world, int) did { return asks(MinRequeue) },
		"one new child after the other": func(w *world, i int) did {
			if i%(MaxWrites+8) == 0 {
				w.now = w.now.Add(time.Hour)
				return did{}
			}
			return asks(0, fmt.Sprint("app", i%(MaxWrites+8)))
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, Config{})
			for i := range 1000 {
				if d := w.run(0, next(w, i), timer()); d.Floor != 0 || d.Opened {
					t.Fatalf("run %d: %+v", i, d)
				}
			}
		})
	}
}

// A run that asks for nothing, or for a later time, ends the loop. The next ones start fast.
func TestGuard_LimitedRateCalmsDown(t *testing.T) {
	for name, do := range map[string]did{"nothing": {}, "a period": asks(time.Hour), "progress": asks(0, "new")} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, Config{})
			w.obey(time.Minute, func(int) (did, []abi.Reason) { return asks(0, "status"), []abi.Reason{timer()} })
			if st := w.g.State(self); st.Cause != CauseRequeue || st.Delay < 10*time.Second || st.Runs < DefaultRuns {
				t.Fatalf("%+v", st)
			}
			if d := w.run(time.Minute, do, timer()); !d.Closed || d.Floor != 0 || w.g.Stats().Hot != 0 {
				t.Errorf("%+v, %+v", d, w.g.Stats())
			}
			if d := w.run(0, asks(0), timer()); d.Floor != 0 {
				t.Errorf("%+v", d)
			}
		})
	}
}

// model is the definition of a rate: all runs so far, from which everything is computed anew.
type model struct {
	cfg  Config
	runs []End
	new  []bool
}

// end adds a run and returns its floor, and whether the object is in a hot loop.
func (m *model) end(e End, progress bool) (floor time.Duration, hot bool) {
	if e.Host {
		_, hot = m.state()
		return 0, hot
	}
	m.runs, m.new = append(m.runs, e), append(m.new, progress)
	return m.state()
}

func (m *model) state() (floor time.Duration, hot bool) {
	n := 0
	for i, e := range m.runs {
		switch {
		case !e.Action.Requeue || e.Action.After >= MinRequeue:
			n = 0
		case m.new[i]:
			n = 1
		default:
			n++
		}
	}
	if n == 0 {
		return 0, false
	}
	limit := m.cfg.MaxDelay
	if m.runs[len(m.runs)-1].Action.After > 0 {
		limit = m.cfg.MinDelay
	}
	exact := m.cfg.MinDelay.Seconds() * math.Pow(2, float64(n-m.cfg.Runs))
	if exact < 1e-3 {
		exact = 0
	}
	return time.Duration(min(exact, limit.Seconds()) * 1e9), n >= m.cfg.Runs
}

func TestGuard_RateLikeTheModel(t *testing.T) {
	for seed := range uint64(500) {
		rnd := rand.New(rand.NewPCG(seed, 2))
		cfg := Config{Runs: 4 + rnd.IntN(20), MinDelay: time.Second << rnd.IntN(3), MaxDelay: time.Minute}
		m := model{cfg: cfg}
		var r rate
		restless := 2 + rnd.IntN(40) // how rarely a sequence ends
		for i := range 200 {
			e := End{Time: time.Unix(int64(i), 0), Action: abi.Action{Requeue: true}, Failed: rnd.IntN(2) == 0, Host: rnd.IntN(8) == 0}
			switch rnd.IntN(restless) {
			case 0:
				e.Action = abi.Action{}
			case 1:
				e.Action.After = time.Duration(rnd.Int64N(int64(2 * MinRequeue)))
			}
			progress := rnd.IntN(restless) == 0
			wasHot := r.hot(cfg)
			next, d := r.end(cfg, &e, progress)
			floor, hot := m.end(e, progress)
			if (d.Floor-floor).Abs() > time.Microsecond || next.hot(cfg) != hot {
				t.Fatalf("seed %d, run %d: %+v after %+v: floor %v and %+v, want %v and %v", seed, i, e, r, d.Floor, next, floor, hot)
			}
			if opened, closed := hot && !wasHot, wasHot && !hot; d.Opened != opened || d.Closed != closed {
				t.Fatalf("seed %d, run %d: %+v, want opened %v, closed %v", seed, i, d, opened, closed)
			}
			r = next
		}
	}
}

// The table of rates is bounded. An object without room in it gets a floor at once, so that no number of objects escapes the guard.
func TestGuard_RatesAreBounded(t *testing.T) {
	g, err := New(Config{})
	if err != nil {
		t.Fatal(err)
	}
	now := time.Unix(1e9, 0)
	ask := func(name string) Decision {
		key := abi.Key{Name: name}
		return g.End(key, g.Begin(key, &Start{Time: now}), &End{Time: now, Action: abi.Action{Requeue: true}})
	}
	for i := range MaxAsking {
		if d := ask(strconv.Itoa(i)); d.Floor != 0 {
			t.Fatalf("%d: %+v", i, d)
		}
	}
	if d := ask("one more"); d.Floor != DefaultMinDelay || d.Opened || g.Stats().Asking != MaxAsking {
		t.Errorf("%+v, %+v", d, g.Stats())
	}
	now = now.Add(time.Hour)
	if d := ask("later"); d.Floor != 0 || g.Stats().Asking != 1 {
		t.Errorf("%+v, %+v", d, g.Stats())
	}
}

// TestGuard_RatesEndWithTheirCause: a run that something else caused starts a new sequence, and nothing remains of an object that is gone.
func TestGuard_RatesEndWithTheirCause(t *testing.T) {
	g, err := New(Config{})
	if err != nil {
		t.Fatal(err)
	}
	key, now := abi.Key{Name: "a"}, time.Unix(0, 0)
	run := func(why abi.ReasonType, gone, asks bool) Decision {
		now = now.Add(time.Second)
		trial := g.Begin(key, &Start{Time: now, First: abi.Reason{Type: why}})
		return g.End(key, trial, &End{Time: now, Action: abi.Action{Requeue: asks}, Gone: gone})
	}
	spin := func(gone bool) {
		for range 30 {
			run(abi.ReasonRequeue, gone, true)
		}
		if st := g.Stats(); st.Hot != 1 {
			t.Fatalf("not hot: %+v", st)
		}
	}
	spin(false)
	if d := run(abi.ReasonObjectUpdated, false, true); d.Floor != 0 || !d.Closed {
		t.Errorf("after a change by others: %+v", d)
	}
	spin(true)
	run(abi.ReasonRequeue, true, false)
	if st := g.Stats(); st.Hot+st.Asking+st.Objects != 0 {
		t.Errorf("of an object that is gone: %+v", st)
	}
}
