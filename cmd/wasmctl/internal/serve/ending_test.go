// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/wasmctl/wasmctl/api/v1alpha1"
)

// TestEnding_Steps: the next step for what is known about a Reconciler with three objects, one of which is being deleted.
func TestEnding_Steps(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(e *ending)
		want   step
	}{
		{"the module finalizes what is being deleted", func(*ending) {}, stepFinalize},
		{"the module is started for that", func(e *ending) { e.stopped = true }, stepFinalize},
		{"nothing is being deleted", func(e *ending) { e.deleting = 0 }, stepRelease},
		{"orphan", func(e *ending) { e.orphan = true }, stepEnd},
		{"the objects are unknown", func(e *ending) { e.unlisted, e.objects, e.stopped = true, 0, true }, stepWait},
		{"suspended, dry run or audit", func(e *ending) { e.writes = false }, stepRelease},
		{"the rights are gone", func(e *ending) { e.rights = false }, stepRelease},
		{"the module cannot be fetched yet", func(e *ending) { e.failed = true }, stepFinalize},
		{"the module cannot be fetched", func(e *ending) { e.failed, e.since = true, startLimit }, stepRelease},
		{"a cleanup that fails for a day", func(e *ending) { e.since = 24 * time.Hour }, stepFinalize},
		{"the module does not watch the objects", func(e *ending) { e.mine, e.deleting = 0, 0 }, stepRelease},
		{"in a namespace that is being deleted, all objects soon are", func(e *ending) { e.terminating, e.deleting = true, 0 }, stepFinalize},
		{"but nothing can be repaired there", func(e *ending) { e.terminating, e.since = true, finalizeLimit }, stepRelease},
		{"there, the module does not watch the objects", func(e *ending) { e.terminating, e.mine, e.deleting = true, 0, 0 }, stepRelease},
		{"a release goes on", func(e *ending) { e.releasing, e.stopped = true, true }, stepRelease},
		{"the module stops first", func(e *ending) { e.objects, e.mine, e.deleting = 0, 0, 0 }, stepRelease},
		{"everything is released", func(e *ending) { e.objects, e.mine, e.deleting, e.stopped = 0, 0, 0, true }, stepEnd},
		{"another replica may run the module", func(e *ending) { e.objects, e.mine, e.deleting, e.stopped, e.alone = 0, 0, 0, true, false }, stepRelease},
	} {
		e := ending{objects: 3, mine: 3, deleting: 1, rights: true, writes: true, alone: true, since: time.Second}
		c.change(&e)
		if got := e.next(); got != c.want {
			t.Errorf("%s: step %d, want %d", c.name, got, c.want)
		}
	}
}

// world is a dumb model of a cluster with a Reconciler that is being deleted.
type world struct {
	r *rand.Rand
	e ending

	works               bool // the module finalizes objects
	idle, waiting       int  // watched objects, and those of them that are being deleted
	stranded            int  // objects that the module does not watch
	finalized, released int  // objects that were being deleted
}

func (w *world) step() (end bool) {
	w.e.objects, w.e.mine, w.e.deleting = w.idle+w.waiting+w.stranded, w.idle+w.waiting, w.waiting
	switch w.e.next() {
	case stepEnd:
		return true
	case stepWait:
		w.e.unlisted = w.r.IntN(2) == 0
	case stepFinalize:
		if w.e.stopped = w.e.failed; w.works && !w.e.failed {
			w.finalized, w.waiting = w.finalized+w.waiting, 0
		}
	case stepRelease:
		if w.e.releasing, w.e.stopped = true, true; w.e.alone {
			w.released += w.waiting
			w.idle, w.waiting, w.stranded = 0, 0, 0
		}
		w.e.alone = true
	}
	if w.e.terminating { // the namespace controller
		w.waiting, w.idle = w.waiting+w.idle, 0
		w.e.rights = w.e.rights && w.r.IntN(10) > 0
	}
	w.e.since += 10 * time.Second
	return false
}

// TestEnding_NothingIsStrandedAndNothingHangs: whatever is known, the Reconciler goes when no object has the finalizer any more, and it
// waits without end only for a cleanup that fails, where it can be repaired. While the module can, it finalizes what is being deleted.
func TestEnding_NothingIsStrandedAndNothingHangs(t *testing.T) {
	for seed := range uint64(20_000) {
		r := rand.New(rand.NewPCG(seed, 0))
		yes := func() bool { return r.IntN(2) == 0 }
		w := &world{r: r, works: r.IntN(4) > 0, idle: r.IntN(3), waiting: r.IntN(3), stranded: r.IntN(2), e: ending{
			terminating: yes(), unlisted: yes(), rights: r.IntN(4) > 0, writes: r.IntN(4) > 0, failed: r.IntN(4) == 0, stopped: yes(), alone: yes(),
		}}
		start := *w
		ended := false
		for n := 0; n < 100 && !ended; n++ {
			ended = w.step()
		}
		cleans := start.e.writes && start.e.rights && !start.e.failed
		repairable := cleans && !start.works && !start.e.terminating && start.waiting > 0
		if ended == repairable {
			t.Fatalf("seed %d: ended %v: from %+v to %+v", seed, ended, start, w)
		}
		if ended && w.e.objects > 0 {
			t.Fatalf("seed %d: %d objects are stranded: from %+v", seed, w.e.objects, start)
		}
		if cleans && start.works && !start.e.terminating && w.released > 0 {
			t.Fatalf("seed %d: %d objects were released without cleanup: from %+v", seed, w.released, start)
		}
	}
}

// TestRemember_EachFinalizerOnce: a status remembers each finalizer once, within a bound.
func TestRemember_EachFinalizerOnce(t *testing.T) {
	var st v1alpha1.Status
	remember(&st, nil)
	if len(st.Finalizers) > 0 {
		t.Errorf("%+v", st.Finalizers)
	}
	for n := range 2 * maxFinalizers {
		f := &v1alpha1.Finalizer{Name: "example.dev/" + string(rune('a'+n)), For: "configmaps", Namespaces: []string{"shop"}}
		remember(&st, f)
		remember(&st, f)
		if last := st.Finalizers[len(st.Finalizers)-1]; len(st.Finalizers) != min(n+1, maxFinalizers) || last.Name != f.Name {
			t.Fatalf("%+v", st.Finalizers)
		}
	}
}
