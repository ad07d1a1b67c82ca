// SPDX-License-Identifier: Apache-2.0

package guard

import (
	"fmt"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/wasmctl/wasmctl/abi"
)

// cluster has objects of one controller, whose runs write to other objects. Time is virtual: each event starts a run after a
// millisecond, or when the guard allows it.
type cluster struct {
	t     *testing.T
	g     *Guard
	now   time.Time
	rv    int
	at    map[string]string      // the versions of objects
	due   map[string]time.Time   // objects with an event
	why   map[string]abi.Reason  // the cause of that event
	free  map[string]time.Time   // when the guard allows the next run
	runs  map[string]int         // the number of runs
	write func(o string) []reach // the writes of a run
}

// reach is a write to an object, and the objects that its event wakes.
type reach struct {
	object  string
	wakes   []string
	deletes bool
}

func newCluster(t *testing.T, write func(o string) []reach) *cluster {
	t.Helper()
	g, err := New(Config{})
	if err != nil {
		t.Fatal(err)
	}
	return &cluster{
		t: t, g: g, now: time.Unix(1e9, 0), write: write, at: map[string]string{}, due: map[string]time.Time{}, why: map[string]abi.Reason{},
		free: map[string]time.Time{}, runs: map[string]int{},
	}
}

func keyFor(object string) abi.Key { return abi.Key{Namespace: "default", Name: object} }

// change is a write by anybody, and its events.
func (c *cluster) change(r *reach) abi.Write {
	c.rv++
	w := abi.Write{Group: "example.com", Resource: "webs", Key: keyFor(r.object), UID: "uid-" + r.object, ResourceVersion: strconv.Itoa(c.rv), Deleted: r.deletes}
	if r.deletes {
		w.ResourceVersion = ""
	}
	c.at[r.object] = w.ResourceVersion
	for _, o := range r.wakes {
		if c.due[o].IsZero() {
			c.due[o] = c.now.Add(time.Millisecond)
		}
		c.why[o] = abi.Reason{Type: abi.ReasonObjectUpdated}
		if o != r.object {
			c.why[o] = abi.Reason{Type: abi.ReasonRelated, Resource: "webs.example.com", Ref: keyFor(r.object)}
		}
	}
	return w
}

// user is a change of an object by another client.
func (c *cluster) user(object string) { c.change(&reach{object: object, wakes: []string{object}}) }

// until performs the runs that start within some time, in order.
func (c *cluster) until(d time.Duration) {
	end := c.now.Add(d)
	for {
		var next string
		var at time.Time
		for o, due := range c.due {
			if free := c.free[o]; due.Before(free) {
				due = free
			}
			if next == "" || due.Before(at) || due.Equal(at) && o < next {
				next, at = o, due
			}
		}
		if next == "" || at.After(end) {
			c.now = end
			return
		}
		c.now = at
		c.run(next)
	}
}

func (c *cluster) run(o string) {
	reason := c.why[o]
	delete(c.due, o)
	c.runs[o]++
	trial := c.g.Begin(keyFor(o), &Start{
		Time: c.now, First: reason, UID: "uid-" + o, ResourceVersion: c.at[o], Version: func(w *abi.Write) string { return c.at[w.Key.Name] },
	})
	e := End{}
	for _, r := range c.write(o) {
		w := c.change(&r)
		e.Changes, _ = Put(e.Changes, &w)
		c.g.Wrote(&trial, &w, c.now)
	}
	c.now = c.now.Add(time.Millisecond)
	e.Time = c.now
	c.free[o] = c.now.Add(c.g.End(keyFor(o), trial, &e).Delay)
}

// to is a write that wakes the written object.
func to(objects ...string) (list []reach) {
	for _, o := range objects {
		list = append(list, reach{object: o, wakes: []string{o}})
	}
	return list
}

// Objects of one controller that trigger each other without end are slowed to less than a run a second each, and in the end to about one a
// minute, whatever the path of their events.
func TestChain_LoopsOfSeveralObjectsAreSlowed(t *testing.T) {
	deleted := false
	for name, write := range map[string]func(o string) []reach{
		"two that write to each other":      func(o string) []reach { return to(map[string]string{"a": "b", "b": "a"}[o]) },
		"and to themselves":                 func(o string) []reach { return to("a", "b") },
		"a ring of three":                   func(o string) []reach { return to(map[string]string{"a": "b", "b": "c", "c": "a"}[o]) },
		"two that write a shared object":    func(string) []reach { return []reach{{object: "shared", wakes: []string{"a", "b"}}} },
		"one that wakes two, which wake it": func(o string) []reach { return to(map[string][]string{"a": {"b", "c"}, "b": {"a"}, "c": {"a"}}[o]...) },
		"a shared object that comes and goes": func(string) []reach {
			deleted = !deleted
			return []reach{{object: "shared", wakes: []string{"a", "b"}, deletes: deleted}}
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCluster(t, write)
			c.user("a")
			c.until(10 * time.Second)
			for o, n := range c.runs {
				if n > 120 {
					t.Errorf("%s ran %d times in 10 s", o, n)
				}
			}
			first := c.g.Stats()
			if first.Episodes == 0 || first.Hot == 0 {
				t.Errorf("%+v", first)
			}
			for _, hot := range c.g.Hot(5) {
				if hot.Cause != CauseChain && hot.Cause != CauseWrites {
					t.Errorf("%+v", hot)
				}
			}
			c.until(10 * time.Minute)
			clear(c.runs)
			c.until(10 * time.Minute)
			for o, n := range c.runs {
				if n > 25 {
					t.Errorf("%s ran %d times in ten minutes", o, n)
				}
			}
		})
	}
}

// Chains that end are not delayed, however often another client starts them.
func TestChain_ChainsThatEndAreNotSlowed(t *testing.T) {
	line := func(n int) func(o string) []reach {
		return func(o string) []reach {
			i, _ := strconv.Atoi(o)
			if i == n {
				return nil
			}
			return to(strconv.Itoa(i + 1))
		}
	}
	status := func(o string) []reach { return to(o + "-child") }
	for name, tt := range map[string]struct {
		write   func(o string) []reach
		objects int
	}{
		"a to b to c":     {line(3), 3},
		"of 300 objects":  {line(300), 300},
		"a child of each": {status, 2},
		"a summary of its members": {func(o string) []reach {
			if o == "summary" {
				return []reach{{object: "summary"}}
			}
			return []reach{{object: o, wakes: []string{"summary"}}}
		}, 2},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCluster(t, func(o string) []reach {
				if name == "a child of each" && o != "0" {
					return nil
				}
				return tt.write(o)
			})
			for i := range 50 {
				c.user("0")
				c.until(time.Second)
				if c.g.Stats().Episodes > 0 || c.runs["0"] != i+1 || len(c.due) > 0 {
					t.Fatalf("round %d: %+v, runs %v, due %v", i, c.g.Stats(), c.runs, c.due)
				}
			}
			if len(c.runs) < tt.objects {
				t.Errorf("%d objects ran", len(c.runs))
			}
		})
	}
}

// The memory of changes is bounded, and forgets old ones first.
func TestChain_MemoryIsBounded(t *testing.T) {
	var c chains
	now := time.Unix(1e9, 0)
	for i := range 10 * maxChanges {
		now = now.Add(time.Millisecond)
		c.add(fmt.Sprint(i), change{1, now}, time.Minute)
		if len(c.byVersion) > maxChanges {
			t.Fatalf("%d changes", len(c.byVersion))
		}
	}
	now = now.Add(time.Hour)
	for i := range maxChanges {
		c.add(fmt.Sprint("new ", i), change{1, now}, time.Minute)
	}
	var kept []string
	for v := range c.byVersion {
		kept = append(kept, v)
	}
	if n := len(slices.DeleteFunc(kept, func(v string) bool { return v[0] != 'n' })); n < maxChanges*3/4 {
		t.Errorf("%d new changes are known", n)
	}
}
