// SPDX-License-Identifier: Apache-2.0

package life

import (
	"cmp"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/wasmctl/wasmctl/internal/rollout/probation"
)

// world carries out effects in the simplest possible way, and checks each of them.
type world struct {
	*testing.T
	*rand.Rand
	core *Core
	now  time.Time
	rows map[int]bool // the rows of the table that were taken

	loading, loaded, running, draining, closing, stopped bool
	preparing                                            *Change
	cut                                                  bool
	prepared, live, canary                               Revision
	prepares                                             Change // the change that prepared belongs to
	proven                                               uint64
	bad, forced                                          map[string]bool
	wanted                                               string // the module of the load in progress; empty if the source decides
	last                                                 string // the module that was live when the last run ended
	lost                                                 bool   // last could not be loaded, or had to wait
	revisions                                            uint64
	requests                                             uint64
	open                                                 map[uint64]Event // requests without an answer
	log                                                  []string
}

func newWorld(t *testing.T, seed uint64) *world {
	w := &world{T: t, Rand: rand.New(rand.NewPCG(seed, 1)), now: time.Unix(0, 0), bad: map[string]bool{}, forced: map[string]bool{}, open: map[uint64]Event{}}
	w.core = NewCore(w.now)
	return w
}

func (w *world) digest() string { return string(rune('a' + w.IntN(4))) }

func (w *world) wrong(format string, args ...any) {
	w.Helper()
	w.Fatalf("%s\nafter %v", fmt.Sprintf(format, args...), w.log[max(0, len(w.log)-40):])
}

// step takes an event, and all events that follow from it immediately.
func (w *world) step(ev Event) {
	w.Helper()
	for events := []Event{ev}; len(events) > 0; {
		ev, events = events[0], events[1:]
		ev.Now = w.now
		w.log = append(w.log, fmt.Sprintf("%s+%s[%d %s %s]", w.core.Phase, ev.Kind, ev.ID, ev.Digest, ev.Outcome))
		for i := range table { // the dumb way to find the row
			if table[i].fits(w.core, &ev) {
				w.rows[i] = true
				break
			}
		}
		for _, e := range w.core.Step(ev) {
			w.log = append(w.log, fmt.Sprintf("-> %s[%d %s %s]", e.Kind, e.ID, e.Digest, e.Outcome))
			if w.stopped {
				w.wrong("%s after the end", e.Kind)
			}
			if result, ok := w.carryOut(&e); ok {
				events = append(events, result)
			}
		}
		w.stopped = w.core.Phase == Stopped
		if len(events) == 0 && w.core.Due() {
			events = append(events, Event{Kind: Resume})
		}
	}
	w.check()
}

// check compares the core with the world.
func (w *world) check() {
	w.Helper()
	c := w.core
	if w.running != (c.Phase.Runs() || c.Phase == Stopping && w.running || c.Phase == Restarting && w.running) {
		w.wrong("phase %s, it runs: %t", c.Phase, w.running)
	}
	if w.running && !w.draining && (c.live != w.live || c.canary != w.canary || c.proven != w.proven) {
		w.wrong("live %v, canary %v, proven %d; it is %v, %v, %d", c.live, c.canary, c.proven, w.live, w.canary, w.proven)
	}
	if c.Phase == Failed {
		if wait := c.Retry.Sub(c.Since); wait < MinRetry || wait > MaxRetry {
			w.wrong("it is retried after %v", wait)
		}
	}
	if w.stopped && (w.loading || w.loaded || w.preparing != nil || w.prepared.Number != 0 || len(w.open) > 0) {
		w.wrong("stopped with something left: %+v", w.open)
	}
	if w.prepared.Number != 0 {
		w.wrong("what was prepared is neither live nor given up")
	}
}

// sometimes is an outcome other than OK, one time in n.
func (w *world) sometimes(n int, others ...Outcome) (Outcome, error) {
	if w.IntN(n) > 0 {
		return OK, nil
	}
	return others[w.IntN(len(others))], errors.New("why")
}

func (w *world) verdict() Verdict {
	return Verdict{[]probation.Verdict{probation.Pending, probation.Passed, probation.Failed}[w.IntN(3)], "worse"}
}

func (w *world) carryOut(e *Effect) (result Event, ok bool) {
	w.Helper()
	must := func(fine bool, what string) {
		w.Helper()
		if !fine {
			w.wrong("%s: %s", e.Kind, what)
		}
	}
	switch e.Kind {
	case Load:
		must(!w.loading && !w.loaded, "it is loaded")
		must(w.last == "" || w.lost || e.Digest == w.last, "a module becomes live without its stages, although the live one can be loaded")
		w.loading, w.cut, w.wanted = true, false, e.Digest
	case Cut:
		must(w.loading || w.preparing != nil, "nothing to cut")
		w.cut = true
	case Run:
		must(w.loaded && !w.running, "it is not loaded, or runs")
		w.running, w.draining, w.lost = true, false, false
	case Drain:
		must(w.running, "it does not run")
		w.draining = true
	case Close:
		must(w.loaded && !w.running && !w.closing && w.preparing == nil, "something goes on")
		w.closing = true
	case Configure:
		out, err := w.sometimes(4, Error)
		ev := w.open[e.ID]
		ev.Kind, ev.Outcome, ev.Err = Configured, out, err
		return ev, true
	case Prepare:
		must(w.running && w.preparing == nil && w.prepared.Number == 0, "another is prepared")
		ch := e.Change
		w.preparing, w.cut = &ch, false
		if ch.Urgent() {
			return w.endPreparation(), true
		}
	case Discard:
		w.prepared = Revision{}
	case Canary:
		must(w.prepared.Number != 0 && w.canary.Number == 0, "nothing is prepared, or there is a canary")
		w.mayRun(w.prepared, &w.prepares)
		w.canary, w.prepared = w.prepared, Revision{}
	case EndCanary:
		must(w.canary.Number == e.Number, "there is none")
		if e.Result == CanaryFailed {
			w.bad[w.canary.Digest] = true
		}
		w.canary = Revision{}
	case Activate:
		return w.activate(&e.Change), true
	case Judge:
		return Event{Kind: Judged, Canaries: w.verdict(), Lives: w.trial()}, true
	case Recall:
		kind, failed := Recalled, map[string]string{}
		if e.Change.Kind == Lead {
			kind = Led
		}
		return Event{Kind: kind, ID: e.ID, Digest: w.digest(), Canaries: w.verdict(), Lives: w.verdict(), Failed: failed}, true
	case Prove:
		must(w.live == Revision{e.Number, e.Digest}, "it is not live")
		if w.proven != e.Number {
			delete(w.bad, e.Digest)
		}
		w.proven = e.Number
	case Fail:
		must(w.live.Number == e.Number && w.proven != e.Number, "it is not on probation")
		w.bad[e.Digest] = true
	case Bury:
		must(w.live.Number != e.Number, "it is live")
	case Stay:
		must(w.live.Number == e.Number, "it is not live")
		w.proven = e.Number
	case Do:
		if w.canary.Number != 0 && w.IntN(3) == 0 {
			w.reply(e.ID)
			return Event{Kind: Misfit, Err: errors.New("settings")}, true
		}
		w.reply(e.ID)
	case Reply:
		if w.open[e.ID].Kind == Shadow && e.Outcome == OK {
			w.prepared = Revision{}
		}
		w.reply(e.ID)
	case Report:
		must(e.Digest != "" && (e.Number != 0 || e.Result == Refused), "a report without its revision")
	}
	return result, false
}

// trial is the verdict on the live revision, if it is on probation.
func (w *world) trial() Verdict {
	if w.live.Number == w.proven {
		return Verdict{Verdict: probation.Pending}
	}
	return w.verdict()
}

func (w *world) reply(id uint64) {
	w.Helper()
	if _, ok := w.open[id]; !ok {
		w.wrong("request %d was answered before", id)
	}
	delete(w.open, id)
}

// mayRun checks that a module that was rolled back does not run again.
func (w *world) mayRun(r Revision, ch *Change) {
	w.Helper()
	if ch.Kind == Swap && w.bad[r.Digest] && !w.forced[r.Digest] {
		w.wrong("module %s was rolled back, and runs again", r.Digest)
	}
}

func (w *world) activate(ch *Change) Event {
	w.Helper()
	next := w.prepared
	if ch.Kind == Promote {
		next = w.canary
	}
	if next.Number == 0 {
		w.wrong("nothing to activate")
	}
	out, err := w.sometimes(5, Error, Ending)
	ev := Event{Kind: Promoted, Outcome: out, Err: err, Number: next.Number, Digest: next.Digest}
	w.prepared = Revision{}
	if out != OK {
		return ev
	}
	w.mayRun(next, ch)
	w.live = next
	if ch.Kind == Promote {
		w.canary = Revision{}
	}
	if ev.OnTrial = (ch.Kind == Swap || ch.Kind == Promote) && w.IntN(3) > 0; !ev.OnTrial {
		w.proven = next.Number
	}
	return ev
}

func (w *world) endPreparation() Event {
	ch := w.preparing
	w.preparing = nil
	out, err := w.sometimes(4, Error, Same, NotKept, Ending)
	if w.cut && w.IntN(4) > 0 {
		out, err = Error, errors.New("cut")
	}
	ev := Event{Kind: Prepared, Outcome: out, Err: err}
	if out == OK {
		w.revisions++
		ev.Number, ev.Digest = w.revisions, ch.Digest
		if ch.Digest == "" {
			ev.Digest = "kept"
		}
		w.prepared, w.prepares = Revision{ev.Number, ev.Digest}, *ch
	}
	return ev
}

func (w *world) endLoad() Event {
	w.loading = false
	out, err := w.sometimes(3, Error, Bad)
	if w.cut && w.IntN(2) > 0 {
		out, err = Error, errors.New("cut")
	}
	w.revisions++
	ev := Event{Kind: Tried, Outcome: out, Err: err, Number: w.revisions, Digest: cmp.Or(w.wanted, w.digest()), Failed: map[string]string{}}
	if out != OK {
		w.lost = true
	} else {
		w.loaded = true
		w.live, w.canary, w.proven = Revision{ev.Number, ev.Digest}, Revision{}, ev.Number
	}
	return ev
}

// happens lets something happen at random.
func (w *world) happens(stop bool) {
	w.Helper()
	w.now = w.now.Add(time.Duration(w.IntN(10)) * time.Second)
	switch n := w.IntN(20); {
	case n < 6 && w.loading:
		w.step(w.endLoad())
	case n < 6 && w.preparing != nil:
		w.step(w.endPreparation())
	case n < 9 && w.draining && w.preparing == nil:
		w.end()
	case n < 9 && w.closing:
		w.closing, w.loaded = false, false
		w.step(Event{Kind: Closed})
	case n < 10 && w.core.Phase == Failed && !w.now.Before(w.core.Retry):
		w.step(Event{Kind: Retry})
	case n < 11:
		w.step(Event{Kind: Begin})
	case n < 13 && w.core.Judging():
		w.step(Event{Kind: Tick})
	case n == 13 && w.loading:
		w.lost = true
		w.step(Event{Kind: Waits, Why: "a kind"})
	case n == 14 && w.IntN(4) == 0:
		w.step(Event{Kind: Restart})
	case n == 15 && w.IntN(40) == 0 && w.running && w.preparing == nil:
		w.end()
	case n > 15 && w.core.Phase != Cutting && !stop:
		w.request()
	}
}

// end ends the run.
func (w *world) end() {
	w.Helper()
	w.running, w.draining, w.last = false, false, w.live.Digest
	w.step(Event{Kind: Ended})
}

func (w *world) request() {
	w.Helper()
	kinds := []Kind{Want, Swap, Swap, Rollback, Promote, Abort, Shadow, Follow, Lead, Task}
	w.requests++
	ev := Event{Kind: kinds[w.IntN(len(kinds))], ID: w.requests, Digest: w.digest(), Force: w.IntN(6) == 0}
	switch ev.Kind {
	case Swap:
		ev.Canary = []string{"", "10%"}[w.IntN(2)]
	case Want:
		ev.Differs = []Difference{Nothing, Nothing, Nothing, Settings, Options}[w.IntN(5)]
	default:
	}
	w.open[ev.ID] = ev
	w.forced[ev.Digest] = w.forced[ev.Digest] || ev.Force
	w.step(ev)
}

// TestCore_HoldsAgainstADumbModel: on random events, with all effects carried out in
// the simplest way, at most one revision is live, no module that was rolled back
// runs again unless forced, each preparation ends in a promotion or is given up,
// each request is answered once, each back-off is bounded, a restart loads the module
// that was live as long as that works, and each stop ends, with no effect after it. All
// rows of the table are needed for that.
func TestCore_HoldsAgainstADumbModel(t *testing.T) {
	rows := map[int]bool{}
	for seed := range uint64(400) {
		w := newWorld(t, seed)
		w.rows = rows
		if seed%8 == 0 { // loaded before the Runtime runs
			ev := w.endLoad()
			for ev.Outcome != OK {
				ev = w.endLoad()
			}
			w.step(ev)
		}
		for range w.IntN(400) {
			w.happens(false)
			if w.stopped {
				break
			}
		}
		w.step(Event{Kind: Stop})
		for i := 0; !w.stopped; i++ {
			if i == 1000 {
				w.wrong("the stop does not end")
			}
			w.happens(true)
		}
		for _, k := range []Kind{Begin, Restart, Stop, Tick, Retry, Resume} {
			w.step(Event{Kind: k})
		}
	}
	for i := range table {
		if !rows[i] {
			t.Errorf("no run takes the row %v + %s (%s)", table[i].from, table[i].on, table[i].when)
		}
	}
}

// restarting returns a core whose live module is "live" and that restarts because of other
// options, together with the module "next".
func restarting(t *testing.T) *Core {
	t.Helper()
	c := NewCore(time.Time{})
	c.Step(Event{Kind: Begin})
	c.Step(Event{Kind: Tried, Outcome: OK, Number: 1, Digest: "live"})
	wantEffects(t, c, Event{Kind: Want, ID: 1, Digest: "next", Differs: Options, Why: "both"}, "Reply[] Drain[]")
	c.Step(Event{Kind: Ended})
	wantEffects(t, c, Event{Kind: Closed}, "Load[live]")
	return c
}

// wantEffects checks the effects of an event, as text.
func wantEffects(t *testing.T, c *Core, ev Event, want string) {
	t.Helper()
	var got []string
	for _, e := range c.Step(ev) {
		got = append(got, fmt.Sprintf("%s[%s]", e.Kind, cmp.Or(e.Digest, e.Change.Digest)))
	}
	if text := strings.Join(got, " "); text != want {
		t.Errorf("after %s: %s, want %s", ev.Kind, text, want)
	}
}

// A module that is wanted together with other options is swapped in as always, after a restart
// of the live module with these options; it begins as the canary that the new options ask for.
func TestCore_OptionsAndModuleAreARestartAndASwap(t *testing.T) {
	c := restarting(t)
	wantEffects(t, c, Event{Kind: Tried, Outcome: OK, Number: 1, Digest: "live", Canary: "10%"}, "Run[]")
	wantEffects(t, c, Event{Kind: Resume}, "Prepare[next]")
	wantEffects(t, c, Event{Kind: Want, Digest: "next"}, "")
	wantEffects(t, c, Event{Kind: Prepared, Outcome: OK, Number: 2, Digest: "next"}, "Canary[next] Report[next]")
	wantEffects(t, c, Event{Kind: Want, Digest: "next"}, "")
}

// If the live module cannot start with the new options, or waits, the next one starts.
func TestCore_NextModuleStartsIfTheLiveOneCannot(t *testing.T) {
	c := restarting(t)
	wantEffects(t, c, Event{Kind: Tried, Outcome: Error, Err: errors.New("not granted"), Digest: "live"}, "Load[next]")
	wantEffects(t, c, Event{Kind: Tried, Outcome: OK, Number: 1, Digest: "next"}, "Run[]")
	if c.Due() {
		t.Error("another swap follows")
	}
	c = restarting(t)
	wantEffects(t, c, Event{Kind: Waits, Why: "a kind"}, "Cut[]")
	wantEffects(t, c, Event{Kind: Tried, Outcome: Error, Err: errors.New("cut")}, "Load[next]")
}

// The last wish counts: a module that is no longer wanted does not follow.
func TestCore_RevertedModuleDoesNotFollow(t *testing.T) {
	for _, differs := range []Difference{Nothing, Options} {
		c := restarting(t)
		if c.Step(Event{Kind: Want, Digest: "live", Differs: differs}); differs == Options {
			wantEffects(t, c, Event{Kind: Tried, Outcome: Error, Err: errors.New("cut")}, "Load[live]")
		}
		wantEffects(t, c, Event{Kind: Tried, Outcome: OK, Number: 1, Digest: "live"}, "Run[]")
		if c.Due() {
			t.Error("another swap follows")
		}
	}
}

// A swap that a restart interrupts goes on afterwards: its module does not skip its stages.
func TestCore_InterruptedSwapFollowsTheRestart(t *testing.T) {
	c := NewCore(time.Time{})
	c.Step(Event{Kind: Begin})
	c.Step(Event{Kind: Tried, Outcome: OK, Number: 1, Digest: "live"})
	c.Step(Event{Kind: Swap, ID: 1, Digest: "next"})
	wantEffects(t, c, Event{Kind: Restart}, "Drain[] Reply[]")
	c.Step(Event{Kind: Prepared, Outcome: Error, Err: errors.New("ended")})
	c.Step(Event{Kind: Ended})
	wantEffects(t, c, Event{Kind: Closed}, "Load[live]")
	wantEffects(t, c, Event{Kind: Tried, Outcome: OK, Number: 1, Digest: "live"}, "Run[]")
	wantEffects(t, c, Event{Kind: Resume}, "Prepare[next]")
}

// TestCore_RetriesWithBackOff: attempts are 5 s apart, doubled up to a minute; a success
// resets that.
func TestCore_RetriesWithBackOff(t *testing.T) {
	c, now := NewCore(time.Unix(0, 0)), time.Unix(0, 0)
	c.Step(Event{Kind: Begin, Now: now})
	var waits []time.Duration
	for range 6 {
		c.Step(Event{Kind: Tried, Now: now, Outcome: Error, Err: errors.New("no module")})
		waits = append(waits, c.Retry.Sub(now)/time.Second)
		now = c.Retry
		c.Step(Event{Kind: Retry, Now: now})
	}
	if want := []time.Duration{5, 10, 20, 40, 60, 60}; !slices.Equal(waits, want) {
		t.Errorf("retried after %v s, want %v", waits, want)
	}
}

// A module that was rolled back, was tried again by force and passed may be swapped in
// like any other.
func TestCore_PassedIsForgiven(t *testing.T) {
	c := NewCore(time.Time{})
	swap := func(number uint64, force bool) {
		c.Step(Event{Kind: Swap, Digest: "x", Force: force})
		c.Step(Event{Kind: Prepared, Outcome: OK, Number: number, Digest: "x"})
		c.Step(Event{Kind: Promoted, Outcome: OK, Number: number, Digest: "x", OnTrial: true})
	}
	c.Step(Event{Kind: Begin})
	c.Step(Event{Kind: Tried, Outcome: OK, Number: 1, Digest: "first"})
	swap(2, false)
	c.Step(Event{Kind: Judged, Lives: Verdict{probation.Failed, "worse"}})
	c.Step(Event{Kind: Prepared, Outcome: OK, Number: 3, Digest: "first"})
	c.Step(Event{Kind: Promoted, Outcome: OK, Number: 3, Digest: "first"})
	swap(4, false)
	if c.live.Number != 3 {
		t.Fatalf("it is swapped in again: revision %d is live", c.live.Number)
	}
	swap(4, true)
	c.Step(Event{Kind: Judged, Lives: Verdict{Verdict: probation.Passed}})
	c.Step(Event{Kind: Swap, Digest: "other"})
	c.Step(Event{Kind: Prepared, Outcome: OK, Number: 5, Digest: "other"})
	c.Step(Event{Kind: Promoted, Outcome: OK, Number: 5, Digest: "other"})
	if swap(6, false); c.live.Number != 6 {
		t.Errorf("it is refused: revision %d is live", c.live.Number)
	}
}
