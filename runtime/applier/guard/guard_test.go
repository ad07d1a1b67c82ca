// SPDX-License-Identifier: Apache-2.0

package guard

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/wasmctl/wasmctl/abi"
)

var self = abi.Key{Namespace: "default", Name: "web"}

// world is a cluster with one reconciled object and its children, in which time is advanced manually. Names of writes:
// "status" and "spec" belong to the object itself, any other name is that of a deployment.
type world struct {
	t         *testing.T
	g         *Guard
	now       time.Time
	rv        int
	cache     map[string]string // name of the object: its resourceVersion
	fields    []Field           // the fields that the next inspected run finds
	inspected int
	opened    int
}

func newWorld(t *testing.T, cfg Config) *world {
	t.Helper()
	g, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return &world{t: t, g: g, now: time.Unix(1e9, 0), cache: map[string]string{"self": "1"}, rv: 1}
}

// name returns the object's name in the cache.
func name(w *abi.Write) string {
	if w.Key == self && w.Resource == "webs" {
		return "self"
	}
	return w.Key.Name
}

// touch simulates a change by another writer.
func (w *world) touch(name string) {
	w.rv++
	w.cache[name] = strconv.Itoa(w.rv)
}

func (w *world) write(what string) abi.Write {
	out := abi.Write{Group: "apps", Resource: "deployments", Key: abi.Key{Namespace: "default", Name: what}, UID: "uid-" + what}
	if what == "status" || what == "spec" {
		out = abi.Write{Group: "example.com", Resource: "webs", Key: self, UID: "uid-self"}
		if what == "status" {
			out.Subresource = "status"
		}
	}
	w.touch(name(&out))
	out.ResourceVersion = w.cache[name(&out)]
	return out
}

func updated() abi.Reason { return abi.Reason{Type: abi.ReasonObjectUpdated} }
func timer() abi.Reason   { return abi.Reason{Type: abi.ReasonRequeue} }
func related(child string) abi.Reason {
	return abi.Reason{Type: abi.ReasonRelated, Resource: "deployments.apps", Ref: abi.Key{Namespace: "default", Name: child}}
}

// did describes the actions of a run.
type did struct {
	writes []string
	action abi.Action
}

// run starts a run after some time, for these reasons.
func (w *world) run(after time.Duration, do did, reasons ...abi.Reason) Decision {
	w.t.Helper()
	w.now = w.now.Add(after)
	trial := w.g.Begin(self, &Start{
		Time: w.now, First: reasons[0], More: reasons[1:], UID: "uid-self",
		Version: func(o *abi.Write) string { return w.cache[name(o)] },
	})
	e := End{Action: do.action}
	if len(trial.Inspect) > 0 {
		w.inspected++
		e.Fields = w.fields
	}
	for _, what := range do.writes {
		o := w.write(what)
		e.Changes, _ = Put(e.Changes, &o)
	}
	w.now = w.now.Add(time.Millisecond)
	e.Time = w.now
	d := w.g.End(self, trial, &e)
	if d.Opened {
		w.opened++
	}
	return d
}

func writes(what ...string) did { return did{writes: what} }

// A run that writes a timestamp into its object's status triggers itself: this is detected by its 20th run, after which
// it is delayed more and more.
func TestGuard_SelfTriggeringObjectIsDelayedMoreAndMore(t *testing.T) {
	w := newWorld(t, Config{})
	w.run(0, writes("status"), updated())
	for i := range DefaultRuns - 1 {
		if d := w.run(time.Millisecond, writes("status"), updated()); d.Delay != 0 {
			t.Fatalf("run %d was held: %+v", i, d)
		}
	}
	d := w.run(time.Millisecond, writes("status"), updated())
	if !d.Opened || (d.Cause != CauseWrites) || d.Runs != DefaultRuns || d.Delay != DefaultMinDelay {
		t.Fatalf("%+v", d)
	}
	for _, want := range []time.Duration{2, 4, 8, 16, 32, 60, 60} {
		d = w.run(d.Delay, writes("status"), updated())
		if d.Delay != want*time.Second || d.Opened {
			t.Fatalf("%+v, want a hold of %d s", d, want)
		}
	}
	if st := w.g.Stats(); st != (Stats{Episodes: 1, Delayed: 8, Objects: 1, Hot: 1}) || w.g.State(self).Delay != time.Minute {
		t.Errorf("%+v, held %v", st, w.g.State(self).Delay)
	}
}

// A delayed object calms down: runs that change nothing, or time in which it does not run, halve the delay; in the end
// there is none.
func TestGuard_DelayedObjectCalmsDown(t *testing.T) {
	hot := func(t *testing.T) *world {
		w := newWorld(t, Config{MaxDelay: 4 * time.Second})
		for range DefaultRuns + 3 {
			w.run(w.g.State(self).Delay, writes("status"), updated())
		}
		if w.g.State(self).Delay != 4*time.Second {
			t.Fatalf("held for %v", w.g.State(self).Delay)
		}
		return w
	}
	t.Run("runs that change nothing", func(t *testing.T) {
		w := hot(t)
		var closed []bool
		for range 3 {
			closed = append(closed, w.run(4*time.Second, writes(), updated()).Closed)
		}
		if diff := cmp.Diff([]bool{false, false, true}, closed); diff != "" || w.g.Stats().Objects != 0 {
			t.Errorf("(-want +got):\n%s %+v", diff, w.g.Stats())
		}
	})
	t.Run("an hour of peace", func(t *testing.T) {
		w := hot(t)
		if d := w.run(time.Hour, writes("status"), updated()); !d.Closed || d.Delay != 0 || w.g.Stats().Hot != 0 {
			t.Errorf("%+v, %+v", d, w.g.Stats())
		}
	})
	t.Run("a short rest only halves", func(t *testing.T) {
		w := hot(t)
		if d := w.run(25*time.Second, writes("status"), updated()); d.Closed || w.g.State(self).Delay != time.Second {
			t.Errorf("%+v, held %v", d, w.g.State(self).Delay)
		}
	})
}

// A user who edits an object in a hot loop does not wait longer and longer.
func TestGuard_EditsOfAHotObjectAreNoPartOfItsLoop(t *testing.T) {
	w := newWorld(t, Config{})
	for range DefaultRuns + 3 {
		w.run(w.g.State(self).Delay, writes("status"), updated())
	}
	before := w.g.State(self).Delay
	for range 10 {
		w.touch("self")
		w.run(time.Second, writes("status"), updated())
	}
	if after := w.g.State(self).Delay; after > before {
		t.Errorf("delayed for %v, then for %v", before, after)
	}
}

// Sequences of runs that resemble hot loops but are not: none of them is ever delayed.
func TestGuard_LegitimateRowsAreNotDelayed(t *testing.T) {
	const rounds = 1000
	progress := func(i int) []Field {
		return []Field{{Object: "deployments.apps default/app", Path: ".spec.partition", before: uint64(i), after: uint64(i + 1)}}
	}
	for name, row := range map[string]func(w *world, i int){
		"converges in five steps, again and again": func(w *world, i int) {
			w.run(time.Second, writes("status", "app"), abi.Reason{Type: abi.ReasonResync})
			for range 4 {
				w.run(time.Millisecond, writes("status"), updated())
			}
			w.run(time.Millisecond, writes(), updated())
			w.now = w.now.Add(20 * time.Second)
		},
		"a counter that requeues itself four times a second": func(w *world, i int) {
			w.run(MinRequeue, did{writes: []string{"status"}, action: abi.Action{Requeue: true, After: MinRequeue}}, updated(), timer())
		},
		"a counter that requeues itself, its own events hidden": func(w *world, i int) {
			w.run(time.Second, did{writes: []string{"status"}, action: abi.Action{Requeue: true, After: time.Second}}, timer())
		},
		"a status that follows pods": func(w *world, i int) {
			w.touch("pod")
			w.run(time.Millisecond, writes("status"), related("pod"))
			w.run(time.Millisecond, writes(), updated())
		},
		"a rolling update that others answer": func(w *world, i int) {
			w.fields = progress(i)
			w.run(time.Millisecond, writes("app", "status"), related("app"), updated())
			w.touch("app")
		},
		"a status that follows pods faster than their events": func(w *world, i int) {
			w.touch("pod")
			w.run(time.Millisecond, writes("status"), related("pod"))
			w.run(time.Millisecond, writes("status"), updated())
		},
		"users who edit without a pause": func(w *world, i int) {
			w.fields = progress(i)
			w.touch("self")
			w.run(time.Millisecond, writes("app", "status"), updated())
			w.run(time.Millisecond, writes(), updated(), related("app"))
		},
		"users who edit while a run writes": func(w *world, i int) {
			w.fields = progress(i)
			w.touch("self")
			w.run(time.Millisecond, writes("app", "status"), updated())
			if i%2 == 0 { // an edit before the write of the status
				w.run(time.Millisecond, writes("app", "status"), updated(), related("app"))
			}
			w.run(time.Millisecond, writes(), updated(), related("app"))
		},
		"one object after the other is replaced": func(w *world, i int) {
			w.run(time.Millisecond, writes("status", fmt.Sprint("app", i%25)), updated())
			w.run(time.Millisecond, writes("status", fmt.Sprint("app", i%25)), updated())
			if i%25 == 24 {
				w.now = w.now.Add(time.Minute)
			}
		},
		"its own writes, but minutes apart": func(w *world, i int) {
			w.run(20*time.Second, writes("status"), updated())
		},
		"runs that change nothing": func(w *world, i int) {
			w.run(time.Millisecond, writes(), updated())
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, Config{})
			for i := range rounds {
				row(w, i)
				if w.g.Stats() != (Stats{Objects: w.g.Stats().Objects}) {
					t.Fatalf("round %d: %+v", i, w.g.Stats())
				}
			}
		})
	}
}

// Hot loops that are hard to recognize: each is detected within a bounded number of rounds.
func TestGuard_HotLoopsAreFound(t *testing.T) {
	fight := []Field{{Object: "deployments.apps default/app", Path: ".spec.replicas", Managers: []string{"hpa", "wasmctl/web"}, before: 5, after: 3}}
	for name, c := range map[string]struct {
		round  func(w *world, i int) Decision
		within int
	}{
		"a requeue as a safety net": {func(w *world, _ int) Decision {
			return w.run(time.Millisecond, did{writes: []string{"status"}, action: abi.Action{Requeue: true, After: 5 * time.Minute}}, updated(), timer())
		}, 21},
		"a failed run that reports its failure": {func(w *world, _ int) Decision {
			action := abi.Action{Requeue: true, After: 250 * time.Millisecond}
			return w.run(time.Millisecond, did{writes: []string{"status"}, action: action}, updated(), abi.Reason{Type: abi.ReasonRetry})
		}, 21},
		"its own spec": {func(w *world, _ int) Decision {
			return w.run(time.Millisecond, writes("spec"), updated())
		}, 21},
		"a child that is deleted and made again": {func(w *world, i int) Decision {
			return w.run(time.Millisecond, writes("app"), related("app"))
		}, 21},
		"children without end": {func(w *world, i int) Decision {
			return w.run(time.Millisecond, writes("status", fmt.Sprint("app", i)), updated())
		}, MaxWrites + 21},
		"a counter that requeues itself at once": {func(w *world, _ int) Decision {
			return w.run(time.Millisecond, did{writes: []string{"status"}, action: abi.Action{Requeue: true}}, updated(), timer())
		}, 21},
		"from time to time something else": {func(w *world, i int) Decision {
			if i%5 == 0 {
				w.run(time.Millisecond, writes("status"), related("pod"))
			}
			return w.run(time.Millisecond, writes("status"), updated())
		}, 40},
		"somebody changes it back at once": {func(w *world, _ int) Decision {
			w.fields = fight
			defer w.touch("app")
			return w.run(time.Millisecond, writes("app"), related("app"))
		}, 21},
		"somebody changes it back later": {func(w *world, _ int) Decision {
			w.fields = fight
			d := w.run(10*time.Second, writes("app"), related("app"))
			w.run(time.Millisecond, writes(), related("app"))
			w.touch("app")
			return d
		}, 21},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, Config{})
			for i := range c.within {
				if d := c.round(w, i); d.Opened {
					if want := w.fields != nil; (d.Cause == CauseContested) != want || want && !cmp.Equal(d.Fields[0].Managers, fight[0].Managers) {
						t.Errorf("%+v", d)
					}
					if w.inspected > 6 { // three, and the same number of runs that changed nothing
						t.Errorf("%d runs were inspected", w.inspected)
					}
					return
				}
			}
			t.Errorf("not found in %d rounds: %+v", c.within, w.g.Stats())
		})
	}
}

// An object that requests a run after a second and triggers itself at once is delayed by more than that second: the run
// at the end of the delay is not the requested one.
func TestGuard_DelayBeatsTheRequeue(t *testing.T) {
	w := newWorld(t, Config{})
	for range DefaultRuns + 10 {
		w.run(max(time.Millisecond, w.g.State(self).Delay), did{writes: []string{"status"}, action: abi.Action{Requeue: true, After: time.Second}}, updated(), timer())
	}
	if w.opened != 1 || w.g.State(self).Delay != DefaultMaxDelay {
		t.Errorf("%d episodes, held for %v", w.opened, w.g.State(self).Delay)
	}
}

// A fight continues while the object is delayed, with one run per delay: it is one episode, and costs the API server
// one write a minute.
func TestGuard_FightIsOneEpisode(t *testing.T) {
	w := newWorld(t, Config{})
	w.fields = []Field{{Object: "o", Path: ".p", before: 5, after: 3}}
	begin, runs := w.now, 0
	for w.now.Sub(begin) < 2*time.Hour {
		w.run(w.g.State(self).Delay+time.Millisecond, writes("app"), related("app"))
		w.touch("app")
		runs++
	}
	if w.opened != 1 || runs > 160 {
		t.Errorf("%d episodes, %d runs in two hours", w.opened, runs)
	}
}

// Random runs against the definition: without either a write that triggers a run, or such a long sequence, nothing is
// delayed; and every delay is within its bounds.
func TestGuard_RandomRunsKeepTheBounds(t *testing.T) {
	for seed := range uint64(300) {
		rnd := rand.New(rand.NewPCG(seed, 1))
		cfg := Config{Runs: 4 + rnd.IntN(4), MinDelay: 100 * time.Millisecond, MaxDelay: time.Second}
		w := newWorld(t, cfg)
		row := 0 // runs since the last one that could not belong to a loop
		for range 300 {
			reasons := []abi.Reason{[]abi.Reason{updated(), related("a"), related("b"), timer(), {Type: abi.ReasonResync}}[rnd.IntN(5)]}
			if rnd.IntN(3) == 0 {
				reasons = append(reasons, related("a"))
			}
			var do did
			for _, what := range []string{"status", "a", "b"} {
				if rnd.IntN(2) == 0 {
					do.writes = append(do.writes, what)
				}
			}
			if rnd.IntN(8) == 0 {
				w.touch([]string{"self", "a", "b"}[rnd.IntN(3)])
			}
			d := w.run(time.Duration(rnd.IntN(300))*time.Millisecond, do, reasons...)
			if row++; len(do.writes) == 0 && d.Delay > 0 || d.Delay > 0 && (d.Delay < cfg.MinDelay || d.Delay > cfg.MaxDelay) {
				t.Fatalf("seed %d: writes %v: %+v", seed, do.writes, d)
			}
			if d.Opened && row < cfg.Runs {
				t.Fatalf("seed %d: opened after %d runs: %+v", seed, row, d)
			}
			if rnd.IntN(50) == 0 {
				w.now = w.now.Add(time.Hour)
				if row = 0; w.run(0, writes("status"), updated()).Opened {
					t.Fatalf("seed %d: opened by a run after an hour", seed)
				}
			}
		}
	}
}

// The tables are bounded, and entries that have not run for long are removed first.
func TestGuard_MemoryIsBounded(t *testing.T) {
	g, err := New(Config{})
	if err != nil {
		t.Fatal(err)
	}
	now := time.Unix(1e9, 0)
	change := []abi.Write{{Resource: "webs", UID: "u", ResourceVersion: "1"}}
	put := func(n int, prefix string) {
		for i := range n {
			key := abi.Key{Name: prefix + strconv.Itoa(i)}
			g.End(key, g.Begin(key, &Start{Time: now}), &End{Time: now, Changes: change})
		}
	}
	put(5000, "old")
	now = now.Add(time.Hour)
	put(3200, "new")
	if n := g.Stats().Objects; n > 5000 {
		t.Errorf("%d objects are kept an hour later", n)
	}
	put(3*MaxObjects, "many")
	if n := g.Stats().Objects; n > MaxObjects || n < MaxObjects/2 {
		t.Errorf("%d objects, want %d at most", n, MaxObjects)
	}
	var list []abi.Write
	for i := range 2 * MaxWrites {
		list, _ = Put(list, &abi.Write{Key: abi.Key{Name: strconv.Itoa(i)}, Body: []byte("{}"), Labels: map[string]string{"a": "b"}})
	}
	if len(list) != MaxWrites || list[0].Body != nil || list[0].Labels != nil {
		t.Errorf("%d writes, the first %+v", len(list), list[0])
	}
}

func TestGuard_OffAndBadConfig(t *testing.T) {
	w := newWorld(t, Config{Runs: -1})
	for range 100 {
		if d := w.run(0, writes("status"), updated()); d.Delay != 0 {
			t.Fatalf("%+v", d)
		}
	}
	for _, cfg := range []Config{{Window: -1}, {MinDelay: -1}, {MaxDelay: -1}, {MinDelay: time.Hour}} {
		if _, err := New(cfg); err == nil {
			t.Errorf("%+v was accepted", cfg)
		}
	}
}

// Many objects, each run by one goroutine at a time, with concurrent readers.
func TestGuard_HammerKeysAndStats(t *testing.T) {
	g, err := New(Config{Runs: 4, MinDelay: 1, MaxDelay: 10})
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	for worker := range 4 {
		wg.Go(func() {
			for i := range 2000 {
				key := abi.Key{Namespace: strconv.Itoa(worker), Name: strconv.Itoa(i % 7)}
				now := time.Unix(1e9, int64(i))
				trial := g.Begin(key, &Start{Time: now, First: updated(), UID: "u", Version: func(*abi.Write) string { return "1" }})
				g.End(key, trial, &End{Time: now, Changes: []abi.Write{{UID: "u", ResourceVersion: "1"}}})
				if i%100 == 0 {
					g.Forget(key)
				}
			}
		})
		wg.Go(func() {
			for i := range 500 {
				g.Stats()
				g.State(abi.Key{Namespace: strconv.Itoa(worker), Name: strconv.Itoa(i % 7)})
			}
		})
	}
	wg.Wait()
	if st := g.Stats(); st.Episodes == 0 || st.Objects > 28 {
		t.Errorf("%+v", st)
	}
}
