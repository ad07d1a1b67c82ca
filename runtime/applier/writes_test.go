// SPDX-License-Identifier: Apache-2.0

package applier

import (
	"context"
	"fmt"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/runtime/applier/guard"
	"github.com/wasmctl/wasmctl/runtime/queue"
)

// lagging is a cache that includes only the writes that have reached it; "unwatched" objects have no watch.
type lagging struct {
	reached map[abi.Key]string
	waits   [][]abi.Write
	never   bool          // no more writes will reach it
	lag     time.Duration // how long a write takes to reach it
}

func (c *lagging) Version(w *abi.Write) (string, bool) {
	return c.reached[w.Key], w.Resource != "unwatched"
}

func (c *lagging) AwaitWrites(ctx context.Context, writes []abi.Write) bool {
	c.waits = append(c.waits, writes)
	if c.never {
		<-ctx.Done()
		return true
	}
	select {
	case <-time.After(c.lag):
	case <-ctx.Done():
		return true
	}
	for _, w := range writes {
		c.reached[w.Key] = w.ResourceVersion
	}
	return false
}

func writing(writes ...abi.Write) func(context.Context, *abi.Request) (abi.Result, error) {
	return func(ctx context.Context, _ *abi.Request) (abi.Result, error) {
		for _, w := range writes {
			abi.RunFrom(ctx).Wrote(w)
		}
		return abi.Result{}, nil
	}
}

func child(name string, version int) abi.Write {
	return abi.Write{
		Group: "apps", Version: "v1", Resource: "deployments", Key: abi.Key{Namespace: "default", Name: name}, ResourceVersion: strconv.Itoa(version),
		Body: []byte("{}"), Labels: map[string]string{"app": name},
	}
}

// Rule 22: a run waits until the cache includes the writes of the object's last run, then reads the object; after a run
// without writes, there is nothing to wait for.
func TestWrites_NextRunSeesTheWritesOfTheLast(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cache := &lagging{reached: map[abi.Key]string{}, lag: 300 * time.Millisecond}
		s := &script{reconcile: writing(child("a", 5), child("b", 6), child("a", 7), abi.Write{Resource: "unwatched", ResourceVersion: "8"})}
		var lookedUp []string
		a := newApplier(t, s, func(c *Config) {
			c.Cache = cache
			c.Lookup = func(abi.Key) Object {
				lookedUp = append(lookedUp, cache.reached[child("a", 0).Key])
				return raw{0x80}
			}
		})
		first := a.Apply(t.Context(), testKey, testReason, time.Time{})
		if first.Writes != 4 || first.Waited != 0 || len(a.writes.byKey[testKey].list) != 2 || a.writes.total != 2 {
			t.Errorf("%+v, %+v", first, a.Stats())
		}
		s.reconcile = await
		second := a.Apply(t.Context(), testKey, testReason, time.Time{})
		if second.Waited != cache.lag || second.Stale || s.requests[1].Stale || second.Duration != cache.lag {
			t.Errorf("%+v", second)
		}
		if a.Apply(t.Context(), testKey, testReason, time.Time{}); len(cache.waits) != 1 || a.writes.total != 0 {
			t.Errorf("waited %d times, %+v", len(cache.waits), a.Stats())
		}
		want := []abi.Write{child("b", 6), child("a", 7)}
		want[0].Body, want[1].Body = nil, nil
		if diff := cmp.Diff(want, cache.waits[0]); diff != "" {
			t.Errorf("writes (-want +got):\n%s", diff)
		}
		if diff := cmp.Diff([]string{"", "7", "7"}, lookedUp); diff != "" {
			t.Errorf("the object was read before the cache was ready (-want +got):\n%s", diff)
		}
	})
}

// After a write that changed nothing, or that the cache already includes, there is nothing to wait for.
func TestWrites_WhatTheCacheHasIsNotAwaited(t *testing.T) {
	cache := &lagging{reached: map[abi.Key]string{child("a", 0).Key: "5"}}
	gone := child("gone", 0)
	gone.ResourceVersion, gone.Deleted = "", true
	s := &script{reconcile: writing(child("a", 5), gone)}
	a := newApplier(t, s, func(c *Config) { c.Cache = cache })
	if out := a.Apply(t.Context(), testKey, testReason, time.Time{}); out.Writes != 2 || a.writes.total != 0 {
		t.Errorf("%+v, %+v", out, a.Stats())
	}
}

// Rule 22: the wait is bounded, the request is marked as stale, and so are the following ones until the cache includes
// the writes or a minute has passed.
func TestWrites_StaleAfterTheBound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cache := &lagging{reached: map[abi.Key]string{}, never: true}
		s := &script{reconcile: writing(child("a", 5))}
		a := newApplier(t, s, func(c *Config) { c.Cache, c.AwaitWrites = cache, time.Second })
		a.Apply(t.Context(), testKey, testReason, time.Time{})
		s.reconcile = await
		for i := range 3 {
			out := a.Apply(t.Context(), testKey, testReason, time.Time{})
			if !out.Stale || !s.requests[i+1].Stale || out.Waited != time.Second || out.Failed() {
				t.Errorf("run %d: %+v", i, out)
			}
		}
		time.Sleep(time.Minute)
		if out := a.Apply(t.Context(), testKey, testReason, time.Time{}); !out.Stale {
			t.Errorf("%+v", out)
		}
		if out := a.Apply(t.Context(), testKey, testReason, time.Time{}); out.Stale || out.Waited != 0 || a.Stats().Stale != 4 {
			t.Errorf("the write is remembered forever: %+v, %+v", out, a.Stats())
		}
	})
}

// Writes that did not arrive are remembered in addition to those of the next run.
func TestWrites_StaleOnesAreKeptBesideNewOnes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cache := &lagging{reached: map[abi.Key]string{}, never: true}
		s := &script{reconcile: writing(child("a", 5), child("b", 6))}
		a := newApplier(t, s, func(c *Config) { c.Cache = cache })
		a.Apply(t.Context(), testKey, testReason, time.Time{})
		s.reconcile = writing(child("b", 9))
		a.Apply(t.Context(), testKey, testReason, time.Time{})
		a.Apply(t.Context(), testKey, testReason, time.Time{})
		var last []string
		for _, w := range cache.waits[1] {
			last = append(last, w.Key.Name+w.ResourceVersion)
		}
		if diff := cmp.Diff([]string{"a5", "b9"}, last); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	})
}

func TestWrites_CanBeTurnedOff(t *testing.T) {
	cache := &lagging{reached: map[abi.Key]string{}, never: true}
	s := &script{reconcile: writing(child("a", 5))}
	a := newApplier(t, s, func(c *Config) { c.Cache, c.AwaitWrites = cache, -1 })
	for range 2 {
		if out := a.Apply(t.Context(), testKey, testReason, time.Time{}); out.Stale || out.Waited != 0 {
			t.Errorf("%+v", out)
		}
	}
	if len(cache.waits) != 0 || a.writes.total != 0 {
		t.Errorf("waited %d times, %+v", len(cache.waits), a.Stats())
	}
}

// The table is bounded per run and in total, and forgets old entries; of each resource and namespace, the newest write
// is retained.
func TestWrites_MemoryIsBounded(t *testing.T) {
	var list []abi.Write
	for i := range 10 * maxAwaitedOfRun {
		w := child(strconv.Itoa(i), i)
		w.Key.Namespace = strconv.Itoa(i % 3)
		if list = addWrite(list, &w); len(list) > maxAwaitedOfRun {
			t.Fatalf("%d writes of one run", len(list))
		}
		newest := list[len(list)-1]
		if newest.ResourceVersion != strconv.Itoa(i) || newest.Body != nil {
			t.Fatalf("the newest is %+v after %d", newest, i)
		}
	}
	for i := range 1000 { // that many namespaces
		w := child("x", i)
		w.Key.Namespace = fmt.Sprint("ns", i)
		if list = addWrite(list, &w); len(list) > maxAwaitedOfRun {
			t.Fatalf("%d writes of one run", len(list))
		}
	}
	var table writes
	now := time.Unix(1e9, 0)
	for i := range 2 * maxAwaited {
		table.put(abi.Key{Name: strconv.Itoa(i)}, awaited{[]abi.Write{{}}, now}, now)
	}
	if table.total != maxAwaited || len(table.byKey) != maxAwaited {
		t.Errorf("%d writes of %d objects, want %d each", table.total, len(table.byKey), maxAwaited)
	}
	now = now.Add(2 * awaitedFor)
	table.put(abi.Key{Name: "new"}, awaited{[]abi.Write{{}}, now}, now)
	if table.total != 1 || len(table.byKey[abi.Key{Name: "new"}].list) != 1 {
		t.Errorf("%d writes remain, want the new one", table.total)
	}
}

// The table of failures is bounded too.
func TestFailures_MemoryIsBounded(t *testing.T) {
	var f failures
	for i := range maxFailing + 1000 {
		f.record(abi.Key{Name: strconv.Itoa(i)}, time.Unix(1e9, 0), &abi.ResultError{})
	}
	if f.len() != maxFailing {
		t.Errorf("%d objects, want %d", f.len(), maxFailing)
	}
	if row := f.get(abi.Key{Name: strconv.Itoa(maxFailing + 999)}); row.runs != 1 {
		t.Errorf("%d runs", row.runs)
	}
}

// A write has changed something if its response has another version than the object had before, even if the watch has
// delivered the write before the response.
func TestWriteLog_WhatChangedSomething(t *testing.T) {
	self := &head{uid: "u1", resourceVersion: "4"}
	ofSelf := func(version string) abi.Write {
		return abi.Write{Resource: "webs", Key: testKey, UID: "u1", ResourceVersion: version}
	}
	deleted := child("a", 0)
	deleted.ResourceVersion, deleted.Deleted = "", true
	created := child("a", 7)
	created.Op = abi.OpAPICreate
	for name, c := range map[string]struct {
		writes []abi.Write
		cached string
		want   []string // versions
	}{
		"a new child, and the watch was faster":             {[]abi.Write{created}, "7", []string{"7"}},
		"its own object":                                    {[]abi.Write{ofSelf("9")}, "4", []string{"9"}},
		"its own object, and the watch was faster":          {[]abi.Write{ofSelf("9")}, "9", []string{"9"}},
		"its own object as it was":                          {[]abi.Write{ofSelf("4")}, "4", nil},
		"its own object twice":                              {[]abi.Write{ofSelf("9"), ofSelf("10")}, "10", []string{"10"}},
		"a child":                                           {[]abi.Write{child("a", 7)}, "6", []string{"7"}},
		"a child as it was":                                 {[]abi.Write{child("a", 7)}, "7", nil},
		"a new child":                                       {[]abi.Write{child("a", 7)}, "", []string{"7"}},
		"a child of the last run, and the watch was faster": {[]abi.Write{child("b", 8)}, "8", []string{"8"}},
		"a child of the last run as it was":                 {[]abi.Write{child("b", 3)}, "3", nil},
		"a child that is deleted":                           {[]abi.Write{deleted}, "7", []string{""}},
	} {
		t.Run(name, func(t *testing.T) {
			n := writeLog{trial: guard.Trial{Wrote: []abi.Write{child("b", 3)}, Versions: []string{"3"}}}
			for _, w := range c.writes {
				n.note(&w, self, c.cached)
			}
			var got []string
			for _, w := range n.changes {
				got = append(got, w.ResourceVersion)
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// A run that keeps writing its own status is delayed, which is logged once, with the written fields, their managers and
// advice.
func TestApply_HotLoopIsDelayedAndNamedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cl := &cluster{t: t, finalizers: []any{finalizerName}}
		cache := &lagging{reached: map[abi.Key]string{}}
		s := &script{}
		s.reconcile = func(ctx context.Context, _ *abi.Request) (abi.Result, error) {
			cl.version++
			version := strconv.Itoa(cl.version)
			abi.RunFrom(ctx).Wrote(abi.Write{
				Group: "example.com", Resource: "webs", Subresource: "status", Key: testKey, UID: "u1", ResourceVersion: version,
				Body: []byte(`{"metadata":{"resourceVersion":"` + version + `"},"status":{"at":` + version + `}}`),
			})
			return abi.Result{}, nil
		}
		var log logged
		a := newApplier(t, s, cl.on(s), func(c *Config) { c.Cache, c.Logger = cache, log.logger() })
		echo := queue.Reasons{First: abi.Reason{Type: abi.ReasonObjectUpdated}}
		held, begin := 0, time.Now()
		for runs := 0; time.Since(begin) < 10*time.Minute; runs++ {
			out := a.Apply(t.Context(), testKey, echo, time.Time{})
			if out.Loop != nil && (runs != 20 || out.Loop.Cause != guard.CauseWrites || len(out.Loop.Fields) == 0 || out.Loop.Fields[0].Path != ".status.at") {
				t.Errorf("run %d: %+v", runs, out.Loop)
			}
			if out.Delay > 0 {
				held++
			}
			time.Sleep(out.Delay + time.Millisecond)
		}
		if st := a.Stats().Loops; st.Episodes != 1 || held > 20 || uint64(held) != st.Delayed || a.Object(testKey).Loop.Delay != time.Minute {
			t.Errorf("%+v, %d runs were held", st, held)
		}
		want := []string{`WARN the object is in a hot loop: its own writes trigger it; delaying it; write only changes and no timestamps, or ignore the event with a predicate` +
			` controller=test object=default/web reason=ObjectUpdated runs=20 delay=1s written=[webs.example.com default/web] fields=[webs.example.com default/web .status.at]`}
		if diff := cmp.Diff(want, log.lines); diff != "" {
			t.Errorf("log (-want +got):\n%s", diff)
		}
		s.reconcile = await
		for range 8 {
			a.Apply(t.Context(), testKey, echo, time.Time{})
		}
		if len(log.lines) != 2 || log.lines[1] != "INFO the hot loop of the object has ended; no longer delaying it controller=test object=default/web" {
			t.Errorf("log: %q", log.lines)
		}
	})
}
