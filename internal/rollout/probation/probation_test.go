// SPDX-License-Identifier: Apache-2.0

package probation

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/wasmctl/wasmctl/abi"
)

var start = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

func key(i int) abi.Key { return abi.Key{Namespace: "shop", Name: fmt.Sprint(i)} }

// good are the figures of a revision whose runs succeed within 10 ms.
func good(runs int) Figures {
	w := NewWindow()
	for i := range runs {
		w.Add(Run{Key: key(i), Took: 10 * time.Millisecond})
	}
	return w.Figures()
}

// play runs objects one after the other, 20 ms apart, and returns the first verdict and the
// number of runs before it.
func play(t *Trial, runs int, run func(i int) Run) (Verdict, string, int) {
	for i := range runs {
		r := run(i)
		now := start.Add(time.Duration(i) * 20 * time.Millisecond)
		t.Begin(r.Key, now)
		t.End(r, now)
		if v, reason := t.Judge(now); v != Pending {
			return v, reason, i + 1
		}
	}
	v, reason := t.Judge(start.Add(time.Hour))
	return v, reason, runs
}

// Each way of doing worse is found soon, and named.
func TestJudge_WorseFails(t *testing.T) {
	fails := func(every int, kind abi.FailureKind) func(int) Run {
		return func(i int) Run {
			r := Run{Key: key(i % 200), Took: 10 * time.Millisecond}
			if i%every == 0 {
				r.Failure = kind
			}
			return r
		}
	}
	for _, tt := range []struct {
		name   string
		run    func(i int) Run
		within int
		reason string
	}{
		{"traps at once", fails(1, abi.FailureTrap), 3, "3 of 3 runs trapped"},
		{"traps on every tenth", fails(10, abi.FailureTrap), 21, "before 0%"},
		{"runs out of memory", fails(4, abi.FailureMemory), 9, "memory"},
		{"returns nonsense", fails(2, abi.FailureOutput), 5, "invalid output"},
		{"times out", fails(1, abi.FailureTimeout), 3, "exceeded time"},
		{"returns errors", fails(5, abi.FailureError), 11, "returned an error"},
		{"is slow", func(i int) Run { return Run{Key: key(i), Took: time.Second} }, 20, "before 12ms"},
		{"hot loops", func(i int) Run { return Run{Key: key(i), Loop: i > 10, Took: time.Millisecond} }, 14, "hot loop"},
		{"one object of one", func(int) Run { return Run{Key: key(1), Failure: abi.FailureTrap} }, 3, "trapped"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			v, reason, n := play(New(Config{}, good(100), start), 1000, tt.run)
			if v != Failed || n > tt.within || !strings.Contains(reason, tt.reason) {
				t.Errorf("%s after %d runs: %q; want failed within %d, %q", v, n, reason, tt.within, tt.reason)
			}
		})
	}
}

// Without runs there is no verdict, however much time passes; the time counts from the
// first run.
func TestJudge_TimeCountsFromTheFirstRun(t *testing.T) {
	trial := New(Config{Time: time.Minute}, good(100), start)
	want := func(at time.Duration, v Verdict) {
		t.Helper()
		if got, reason := trial.Judge(start.Add(at)); got != v {
			t.Errorf("after %v: %s %q, want %s", at, got, reason, v)
		}
	}
	want(time.Hour, Pending)
	trial.Begin(key(1), start.Add(time.Hour))
	trial.Forget(key(1)) // it was interrupted
	want(3*time.Hour, Pending)
	trial.Begin(key(1), start.Add(3*time.Hour))
	trial.End(Run{Key: key(1)}, start.Add(3*time.Hour))
	want(3*time.Hour+59*time.Second, Pending)
	want(3*time.Hour+time.Minute, Passed)
}

// A run without a recorded begin also starts the time: the guest did not start, or the run
// began between promotion and the trial. Such runs once made a module that traps pass at
// once.
func TestJudge_TimeCountsFromARunThatIsSeenAtItsEnd(t *testing.T) {
	trial := New(Config{Time: time.Minute}, good(100), start)
	trial.End(Run{Key: key(0), Failure: abi.FailureTrap}, start)
	if v, _ := trial.Judge(start); v != Pending {
		t.Fatalf("after one run that trapped: %s", v)
	}
	for i := range minBad {
		trial.End(Run{Key: key(i), Failure: abi.FailureTrap}, start.Add(time.Second))
	}
	if v, _ := trial.Judge(start.Add(time.Second)); v != Failed {
		t.Errorf("all trap: %s", v)
	}
}

// If there are no objects, the time counts from the swap.
func TestJudge_WithoutObjectsPassesInTime(t *testing.T) {
	for _, c := range []struct {
		name string
		run  func(*Trial)
		want Verdict
	}{
		{"no object", func(*Trial) {}, Passed},
		{"one comes and is interrupted", func(tr *Trial) { tr.Begin(key(1), start.Add(time.Second)); tr.Forget(key(1)) }, Passed},
		{"one comes and traps", func(tr *Trial) {
			for range 10 {
				tr.Begin(key(1), start.Add(time.Second))
				tr.End(Run{Key: key(1), Failure: abi.FailureTrap}, start.Add(time.Second))
			}
		}, Failed},
		{"one still runs", func(tr *Trial) { tr.Begin(key(1), start.Add(time.Second)) }, Pending},
	} {
		tr := New(Config{Time: time.Minute, Stall: 2 * time.Minute}, Figures{}, start)
		tr.NothingToRun(start)
		if v, _ := tr.Judge(start.Add(59 * time.Second)); v == Passed {
			t.Errorf("%s: passed before its time", c.name)
		}
		c.run(tr)
		if v, reason := tr.Judge(start.Add(time.Minute)); v != c.want {
			t.Errorf("%s: %s %s, want %s", c.name, v, reason, c.want)
		}
	}
}

// Failures that the previous revision had as often, and those of a single object, are no
// reason.
func TestJudge_AsBeforePasses(t *testing.T) {
	bad := NewWindow()
	for i := range 1000 {
		r := Run{Key: key(i), Took: 3 * time.Second}
		if i%3 == 0 {
			r.Failure = abi.FailureTrap
		}
		bad.Add(r)
	}
	for _, tt := range []struct {
		name   string
		before Figures
		run    func(i int) Run
	}{
		{"clean", good(100), func(i int) Run { return Run{Key: key(i), Took: 15 * time.Millisecond} }},
		{"without runs before", Figures{}, func(i int) Run { return Run{Key: key(i), Took: time.Minute} }},
		{"one object of many", good(100), func(i int) Run {
			r := Run{Key: key(i)}
			if i%2 == 0 {
				r = Run{Key: key(0), Failure: abi.FailureTrap}
			}
			return r
		}},
		{"as bad as before", bad.Figures(), func(i int) Run {
			r := Run{Key: key(i), Took: 3 * time.Second}
			if i%3 == 1 {
				r.Failure = abi.FailureTrap
			}
			return r
		}},
		{"slower by little", good(100), func(i int) Run { return Run{Key: key(i), Took: 100 * time.Millisecond} }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if v, reason, n := play(New(Config{}, tt.before, start), 500, tt.run); v != Passed {
				t.Errorf("%s after %d runs: %s", v, n, reason)
			}
		})
	}
}

// Chance: a revision that fails exactly as often as the previous one is rarely rolled back,
// however often it is judged.
func TestJudge_ChanceIsNoReason(t *testing.T) {
	for _, rate := range []float64{0.01, 0.1, 0.5, 0.9} {
		failed := 0
		const trials = 300
		for seed := range uint64(trials) {
			rnd := rand.New(rand.NewPCG(seed, uint64(rate*100)))
			draw := func(i int) Run {
				r := Run{Key: key(i), Took: time.Millisecond}
				if rnd.Float64() < rate {
					r.Failure = abi.FailureError
				}
				return r
			}
			w := NewWindow()
			for i := range windowSize {
				w.Add(draw(i))
			}
			if v, _, _ := play(New(Config{}, w.Figures(), start), 500, draw); v == Failed {
				failed++
			}
		}
		if failed > trials/20 {
			t.Errorf("at a rate of %v, %d of %d were rolled back by chance", rate, failed, trials)
		}
	}
}

// Runs that do not end are found long before their timeout.
func TestJudge_StalledRunsFail(t *testing.T) {
	trial := New(Config{}, good(100), start)
	for i := range 4 {
		trial.Begin(key(i), start)
	}
	if v, reason := trial.Judge(start.Add(DefaultStall - 1)); v != Pending {
		t.Errorf("too soon: %s %s", v, reason)
	}
	if v, reason := trial.Judge(start.Add(DefaultStall)); v != Failed || !strings.Contains(reason, "4 runs have not ended") {
		t.Errorf("%s %s", v, reason)
	}
	trial.Forget(key(0))
	trial.End(Run{Key: key(1)}, start)
	if v, _ := trial.Judge(start.Add(DefaultStall)); v != Pending {
		t.Error("two that stall beside others that end: judged by them")
	}
	one := New(Config{}, good(100), start)
	one.Begin(key(1), start)
	if v, _ := one.Judge(start.Add(DefaultStall)); v != Failed {
		t.Errorf("the only run: %s", v)
	}
	slow := NewWindow()
	slow.Add(Run{Took: time.Minute})
	usual := New(Config{}, slow.Figures(), start)
	usual.Begin(key(1), start)
	if v, _ := usual.Judge(start.Add(DefaultStall)); v != Pending {
		t.Errorf("runs were long before, too: %s", v)
	}
}

// The verdict waits for a run that began in time, but not for one that began later.
func TestJudge_WaitsForRunsThatStartedInTime(t *testing.T) {
	trial := New(Config{Stall: time.Hour}, good(100), start)
	trial.Begin(key(0), start)
	trial.End(Run{Key: key(0)}, start)
	trial.Begin(key(1), start.Add(DefaultTime-1))
	trial.Begin(key(2), start.Add(DefaultTime))
	if v, _ := trial.Judge(start.Add(2 * DefaultTime)); v != Pending {
		t.Errorf("with a run of its time: %s", v)
	}
	trial.End(Run{Key: key(1)}, start)
	if v, _ := trial.Judge(start.Add(2 * DefaultTime)); v != Passed {
		t.Errorf("with a later run only: %s", v)
	}
}

// The window agrees with a dumb model that counts the last runs again.
func TestWindow_CountsTheLastRuns(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	kinds := []abi.FailureKind{"", abi.FailureError, abi.FailureTrap, abi.FailureTimeout, abi.FailureMemory}
	w := NewWindow()
	var all []Run
	for range 3 * windowSize {
		r := Run{Failure: kinds[rnd.IntN(len(kinds))], Loop: rnd.IntN(9) == 0, Took: time.Duration(rnd.Int64N(int64(time.Hour)))}
		w.Add(r)
		all = append(all, r)
	}
	var want Figures
	var longest time.Duration
	for _, r := range all[len(all)-windowSize:] {
		want.add(&r, 1)
		longest = max(longest, r.Took)
	}
	if got := w.Figures(); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
	if q := want.Quantile(1); q < longest || q > longest*6/5 {
		t.Errorf("quantile 1 is %v, the longest took %v", q, longest)
	}
	if (&Figures{}).Quantile(1) != 0 {
		t.Error("a quantile of nothing")
	}
}

// The memory of a trial is bounded.
func TestTrial_TableIsBounded(t *testing.T) {
	trial := New(Config{}, Figures{}, start)
	for i := range 2 * maxObjects {
		trial.Begin(key(i), start)
		trial.End(Run{Key: key(i)}, start)
	}
	if len(trial.objects) > maxObjects || len(trial.running) != 0 {
		t.Errorf("%d objects, %d running", len(trial.objects), len(trial.running))
	}
}

func TestConfig_Validate(t *testing.T) {
	for _, c := range []Config{{Time: -1}, {Stall: -1}, {Errors: 2}, {Crashes: -1}, {Slowdown: 0.5}} {
		if c.Validate() == nil {
			t.Errorf("%+v is taken", c)
		}
	}
	if err := (Config{}).Validate(); err != nil {
		t.Error(err)
	}
}

// A canary is compared with the live revision in the same time: failures of both do not
// count against it, and failures of only the canary do.
func TestCompare_BothSufferIsNoReason(t *testing.T) {
	both := func(every int) Verdict {
		trial, live := New(Config{}, good(1000), start), NewWindow()
		for i := range 300 {
			r := Run{Key: key(i), Took: time.Millisecond}
			if i%3 == 0 {
				r.Failure = abi.FailureError
			}
			trial.Begin(r.Key, start)
			trial.End(r, start)
			if i%every != 0 {
				r.Failure = ""
			}
			live.Add(r)
		}
		trial.Compare(live.Figures())
		v, _ := trial.Judge(start)
		return v
	}
	if v := both(3); v != Pending {
		t.Errorf("both fail as often: %s", v)
	}
	if v := both(30); v != Failed {
		t.Errorf("the live one fails a tenth as often: %s", v)
	}
}

// Objects that fail before and after are no reason, even if few others have run yet; one
// more that fails is.
func TestExcuse_FailingObjectIsNoReason(t *testing.T) {
	before := NewWindow()
	for i := range 50 {
		before.Add(Run{Key: key(i), Took: time.Millisecond})
	}
	crash := func(i int, kind abi.FailureKind) Run { return Run{Key: key(i), Failure: kind, Took: time.Millisecond} }
	before.Add(crash(7, abi.FailureTrap))
	before.Add(crash(8, abi.FailureTrap))
	before.Add(Run{Key: key(8), Took: time.Millisecond}) // it has recovered
	begin := func() *Trial {
		trial := New(Config{}, before.Figures(), start)
		trial.Excuse(before)
		return trial
	}
	if v, reason, _ := play(begin(), 10, func(int) Run { return crash(7, abi.FailureTimeout) }); v != Passed {
		t.Errorf("what crashed before crashes: %s %s", v, reason)
	}
	for name, run := range map[string]func(i int) Run{
		"another object":         func(int) Run { return crash(9, abi.FailureTrap) },
		"one that is well again": func(int) Run { return crash(8, abi.FailureTrap) },
		"another one beside it":  func(i int) Run { return crash(6+i%2, abi.FailureTrap) },
		"in another way":         func(int) Run { return crash(7, abi.FailureError) },
	} {
		if v, _, runs := play(begin(), 10, run); v != Failed || runs > 6 {
			t.Errorf("%s: %s after %d runs", name, v, runs)
		}
	}
}

// The faults of a window are those of the last run of each object among the last runs:
// compared with a dumb model.
func TestWindow_FaultsOfTheLastRuns(t *testing.T) {
	rnd := rand.New(rand.NewPCG(3, 4))
	w := NewWindow()
	var all []Run
	for range windowSize + 300 {
		r := Run{Key: key(rnd.IntN(2 * windowSize)), Failure: []abi.FailureKind{"", abi.FailureError, abi.FailureMemory}[rnd.IntN(3)], Loop: rnd.IntN(5) == 0}
		w.Add(r)
		all = append(all, r)
	}
	want := map[abi.Key]fault{}
	for _, r := range all[len(all)-windowSize:] {
		delete(want, r.Key)
		if f := r.faults(); f != 0 {
			want[r.Key] = f
		}
	}
	if got := w.faults(); !maps.Equal(got, want) {
		t.Errorf("%d faults, want %d", len(got), len(want))
	}
}

// TestTrial_JudgesCallsLikeRuns: calls of webhooks are judged with the statistics of runs. A denial
// takes the place of an error, and every failure, also an error, that of a crash.
func TestTrial_JudgesCallsLikeRuns(t *testing.T) {
	for seed := range uint64(200) {
		r := rand.New(rand.NewPCG(seed, 1))
		denials, crashes, before := r.Float64()/2, r.Float64()/10, r.Float64()/4
		random := func(denials float64) (run, call Run) {
			run = Run{Key: key(r.IntN(50)), Took: time.Duration(r.IntN(20)) * time.Millisecond}
			call = run
			call.Call = true
			switch x := r.Float64(); {
			case x < crashes:
				run.Failure = abi.FailureTrap
				call.Failure = []abi.FailureKind{abi.FailureTrap, abi.FailureError, abi.FailureTimeout, abi.FailureOutput}[r.IntN(4)]
			case x < crashes+denials:
				run.Failure, call.Denied = abi.FailureError, true
			}
			return run, call
		}
		runs, calls := NewWindow(), NewWindow()
		for range r.IntN(300) {
			run, call := random(before)
			runs.Add(run)
			calls.Add(call)
		}
		ofRuns, ofCalls := New(Config{}, runs.Figures(), start), New(Config{}, calls.Figures(), start)
		ofRuns.Excuse(runs)
		ofCalls.Excuse(calls)
		for i := range 300 {
			run, call := random(denials)
			ofRuns.End(run, start)
			ofCalls.End(call, start)
			want, got := ofRuns.Worse(start), ofCalls.Worse(start)
			if (want == "") != (got == "") {
				t.Fatalf("seed %d, %d: run %q, call %q", seed, i, want, got)
			}
			if strings.Contains(want, "returned an error") != strings.Contains(got, "denied") || strings.Contains(want, "trapped") != strings.Contains(got, "webhooks failed") {
				t.Fatalf("seed %d, %d: run %q, call %q", seed, i, want, got)
			}
		}
	}
}

// TestTrial_FindsDenialsAmongManyObjects: requests may name any number of objects, more than the table
// of objects has.
func TestTrial_FindsDenialsAmongManyObjects(t *testing.T) {
	trial := New(Config{}, Figures{}, start)
	for i := range 3 * maxObjects {
		trial.End(Run{Key: key(i), Call: true, Denied: i > 2*maxObjects}, start)
	}
	if reason := trial.Worse(start); !strings.Contains(reason, "denied by a webhook") {
		t.Errorf("a third was denied: %q", reason)
	}
}
