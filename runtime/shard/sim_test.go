// SPDX-License-Identifier: Apache-2.0

package shard

import (
	"container/heap"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/wasmctl/wasmctl/abi"
)

// world contains an API server, the replicas, and the virtual time.
type world struct {
	t      *testing.T
	rng    *rand.Rand
	now    time.Duration
	events eventHeap
	seq    int

	// The API server: each write creates a new snapshot. Snapshots are immutable.
	snaps    []snapshot
	writes   [][]write   // by slot, in order
	changes  [][]*change // by slot, in order
	replicas []*replica
	slots    int
	calm     bool            // no more faults
	unowned  []time.Duration // by slot: since when no replica has run it
	terms    []int           // by slot: how often it was opened
	rejoins  int
	longest  time.Duration
	slowest  time.Duration // the longest time from a change to its run
	failed   string
}

// change is a change of an object by a user.
type change struct {
	rev  int
	at   time.Duration
	done bool // the object has run since
}

// incarnation is a replica from one loss of its lease to the next.
type incarnation struct {
	core    *Core
	id      string
	version string // of its own lease
}

// effect is an effect of an incarnation.
type effect struct {
	Effect

	of *incarnation
}

type snapshot struct {
	leases  map[string]Lease
	record  *Record
	version string
}

// write is a write that the API server has carried out.
type write struct {
	by   *replica
	term int
	rev  int
}

// replica is one process.
type replica struct {
	*incarnation

	w      *world
	offset time.Duration
	rate   float64
	timing Timing

	dead    bool
	frozen  time.Duration // until then it does nothing
	cut     time.Duration // until then no request arrives, and no watch event
	view    int           // the snapshot that its watch has reached
	cache   []int         // by slot: the last revision in its cache
	listed  []time.Time   // by slot: when its list was requested
	since   []int         // by slot: the revision from which it receives events
	due     [][]*change   // by slot: the changes to run next, or to hand over
	running []bool        // by slot
	term    []int         // by slot: the number of its last opening
	runs    []int         // by slot: running runs
	wrote   []int         // by slot: the revision of the last write
	wakeAt  time.Duration
	ending  bool // its runs are ending because it has lost its lease
}

type event struct {
	at  time.Duration
	seq int
	do  func()
}
type eventHeap []event

func (h eventHeap) Len() int { return len(h) }
func (h eventHeap) Less(i, j int) bool {
	return h[i].at < h[j].at || h[i].at == h[j].at && h[i].seq < h[j].seq
}
func (h eventHeap) Swap(i, j int) { h[i], h[j] = h[j], h[i] }
func (h *eventHeap) Push(x any)   { *h = append(*h, x.(event)) }
func (h *eventHeap) Pop() any {
	old := *h
	x := old[len(old)-1]
	*h = old[:len(old)-1]
	return x
}

func (w *world) after(d time.Duration, do func()) {
	w.seq++
	heap.Push(&w.events, event{w.now + d, w.seq, do})
}

func (w *world) fail(format string, args ...any) {
	if w.failed == "" {
		w.failed = fmt.Sprintf("at %v: ", w.now) + fmt.Sprintf(format, args...)
	}
}

func (w *world) within(d time.Duration) time.Duration { return time.Duration(w.rng.Int64N(int64(d))) }

func (w *world) head() *snapshot { return &w.snaps[len(w.snaps)-1] }

// change creates a new snapshot, which the watches deliver to each replica a little later.
func (w *world) change(edit func(s *snapshot, version string)) string {
	old := w.head()
	s := snapshot{leases: make(map[string]Lease, len(old.leases)), record: old.record, version: old.version}
	maps.Copy(s.leases, old.leases)
	version := fmt.Sprint(len(w.snaps))
	edit(&s, version)
	w.snaps = append(w.snaps, s)
	n := len(w.snaps) - 1
	for _, r := range w.replicas {
		w.bring(r, n)
	}
	return version
}

// bring delivers a snapshot to a replica.
func (w *world) bring(r *replica, n int) {
	w.after(time.Millisecond+w.within(30*time.Millisecond), func() {
		if r.dead {
			return
		}
		if stop := max(r.cut, r.frozen); w.now < stop { // the watch is restarted later
			w.after(stop-w.now, func() { w.bring(r, n) })
			return
		}
		if n > r.view {
			r.view = n
			r.see()
			r.step()
		}
	})
}

func (r *replica) clock() time.Time {
	return time.Unix(0, 0).Add(r.offset + time.Duration(float64(r.w.now)*r.rate))
}

func (r *replica) see() {
	s := &r.w.snaps[r.view]
	var leases []Lease
	for _, l := range s.leases {
		leases = append(leases, l)
	}
	r.core.Saw(r.clock(), leases, s.record, s.version)
}

// active reports whether the process is active now; otherwise, do is called later.
func (r *replica) active(do func()) bool {
	if r.dead {
		return false
	}
	if r.w.now < r.frozen {
		r.w.after(r.frozen-r.w.now, do)
		return false
	}
	return true
}

func (r *replica) step() {
	if !r.active(r.step) {
		return
	}
	if r.ending {
		return
	}
	effects, again := r.core.Step(r.clock())
	r.sees()
	if r.core.Lost() {
		r.ending = true
		for i := range r.running {
			r.stop(i)
		}
		r.rejoin()
		return
	}
	if r.core.Left() {
		r.request(func() { r.w.change(func(s *snapshot, _ string) { delete(s.leases, r.id) }) }, func(bool) {})
		r.die()
		return
	}
	for _, e := range effects {
		r.carryOut(effect{e, r.incarnation})
	}
	if again.IsZero() {
		return
	}
	at := r.w.now + time.Duration(float64(again.Sub(r.clock()))/r.rate) + 1
	if r.wakeAt <= r.w.now || at < r.wakeAt {
		r.wakeAt = at
		r.w.after(at-r.w.now, func() {
			if r.wakeAt == at {
				r.step()
			}
		})
	}
}

// rejoin makes the replica take part again once its runs have ended.
func (r *replica) rejoin() {
	if !r.active(r.rejoin) {
		return
	}
	if slices.Max(r.runs) > 0 {
		r.w.after(20*time.Millisecond, r.rejoin)
		return
	}
	r.w.rejoins++
	id := fmt.Sprintf("%s-%d", r.id, r.w.rejoins)
	r.incarnation, r.ending = &incarnation{core: r.core.Rejoin(id, r.clock()), id: id}, false
	r.see()
	r.step()
}

// sees checks the replica's view of the coverage: it never reports that two run a slot.
func (r *replica) sees() {
	record, leases, own := r.core.Slots(r.clock())
	v := View{ID: r.id, Record: record, Leases: leases, Own: own, Lapsed: !r.core.MayWrite(r.clock()), Slots: len(r.core.phases)}
	if c := v.Coverage(r.clock()); c.Count(Double) > 0 {
		r.w.fail("%s sees that %s", r.id, c)
	}
}

// die ends the process. Another one replaces it.
func (r *replica) die() {
	if r.dead {
		return
	}
	r.dead = true
	for i := range r.running {
		r.stop(i)
	}
	if len(r.w.alive()) == 0 {
		r.w.after(r.w.within(3*time.Second), func() { r.w.start() })
	}
}

func (w *world) alive() (out []*replica) {
	for _, r := range w.replicas {
		if !r.dead {
			out = append(out, r)
		}
	}
	return out
}

// request sends a request, which is carried out once or, if it is lost, never, and whose response may be lost.
func (r *replica) request(serve func(), answer func(ok bool)) {
	w := r.w
	there, back := time.Millisecond+w.within(20*time.Millisecond), time.Millisecond+w.within(20*time.Millisecond)
	if !w.calm && w.rng.IntN(40) == 0 {
		there += w.within(900 * time.Millisecond)
	}
	lost := !w.calm && w.rng.IntN(50) == 0
	mute := !w.calm && w.rng.IntN(50) == 0
	sentCut := w.now < r.cut
	w.after(there, func() {
		arrives := !lost && !sentCut
		if arrives {
			serve()
		}
		if !arrives || mute || w.now < r.cut {
			back += time.Second // a timeout
			arrives = false
		}
		w.after(back, func() { r.answered(func() { answer(arrives) }) })
	})
}

func (r *replica) answered(do func()) {
	if r.active(func() { r.answered(do) }) {
		do()
		r.step()
	}
}

func (r *replica) done(e effect, res Result) {
	if e.of == r.incarnation {
		r.core.Done(r.clock(), e.Effect, res)
	}
}

func (r *replica) carryOut(e effect) {
	w := r.w
	var res Result
	answer := func(ok bool) {
		res.Err = !ok
		r.done(e, res)
	}
	switch e.Kind {
	case Renew:
		r.request(func() {
			old, there := w.head().leases[e.of.id]
			if there && old.Ended || !there && e.of.version != "" {
				res.Lost = true
				return
			}
			e.of.version = w.change(func(s *snapshot, version string) {
				s.leases[e.of.id] = Lease{ID: e.of.id, Version: version, Lasts: r.timing.Lease, State: e.State}
			})
		}, answer)
	case Fence, Forget:
		r.request(func() {
			old, there := w.head().leases[e.ID]
			if !there || old.Version != e.Version {
				res.Lost = there
				return
			}
			w.change(func(s *snapshot, version string) {
				old.Version, old.Ended = version, true
				if s.leases[e.ID] = old; e.Kind == Forget {
					delete(s.leases, e.ID)
				}
			})
		}, answer)
	case Commit:
		r.request(func() {
			if w.head().version != e.Version {
				res.Lost = true
				return
			}
			text, err := e.Record.encode()
			if err != nil {
				w.fail("%v", err)
				return
			}
			record, err := decodeRecord(text)
			if err != nil {
				w.fail("%v", err)
				return
			}
			res.Version = w.change(func(s *snapshot, version string) {
				if record.ID = version; s.record != nil {
					record.ID = s.record.ID
				}
				s.record, s.version = record, version
			})
		}, answer)
	case Warm:
		r.listed[e.Slot], r.since[e.Slot] = r.clock(), 1<<62
		w.after(w.within(50*time.Millisecond), func() {
			list := w.last(e.Slot)
			r.since[e.Slot] = len(w.snaps)
			w.after(w.within(450*time.Millisecond), func() {
				r.answered(func() { r.cache[e.Slot] = max(r.cache[e.Slot], list); r.done(e, res) })
			})
		})
	case Open:
		r.open(e)
	case Close:
		r.stop(e.Slot)
		r.drained(e)
	case Cool:
		r.since[e.Slot], r.due[e.Slot] = 1<<62, nil
		w.after(w.within(20*time.Millisecond), func() { r.answered(func() { r.done(e, res) }) })
	}
}

// open waits until the cache includes the last writes, and then runs the slot.
func (r *replica) open(e effect) {
	w, i := r.w, e.Slot
	var want int
	then := func() {
		r.catchUp(want, i, func() {
			if e.of != r.incarnation || r.ending {
				return
			}
			r.start(i)
			r.done(e, Result{})
		})
	}
	heard := 1 << 62
	_, _ = fmt.Sscan(e.Gained.Heard, &heard)
	for _, c := range w.changes[i] {
		if c.rev > heard {
			r.due[i] = append(r.due[i], c)
		}
	}
	if left, ok := e.Handover["c"]; ok {
		for _, l := range left.Writes {
			_, _ = fmt.Sscan(l.ResourceVersion, &want)
		}
		for _, key := range left.Due {
			for _, c := range w.changes[i] {
				if key.Name == fmt.Sprint(c.rev) {
					r.due[i] = append(r.due[i], c)
				}
			}
		}
		then()
		return
	}
	if r.listed[i].After(e.Gained.Since) { // it includes all of that
		then()
		return
	}
	var ask func()
	ask = func() { // the writes so far, as known by the API server
		r.request(func() { want = w.last(i) }, func(ok bool) {
			if !ok {
				ask()
				return
			}
			then()
		})
	}
	ask()
}

func (r *replica) catchUp(want, slot int, do func()) {
	if r.cache[slot] >= want {
		r.answered(do)
		return
	}
	r.w.after(10*time.Millisecond, func() {
		if r.active(func() { r.catchUp(want, slot, do) }) {
			r.catchUp(want, slot, do)
		}
	})
}

func (w *world) last(slot int) int {
	if n := len(w.writes[slot]); n > 0 {
		return w.writes[slot][n-1].rev
	}
	return 0
}

// start runs a slot: from now on its objects are reconciled.
func (r *replica) start(i int) {
	w := r.w
	for _, o := range w.replicas {
		if o != r && o.running[i] && o.core.MayWrite(o.clock()) && r.core.MayWrite(r.clock()) {
			w.fail("slot %d runs at %s and %s", i, o.id, r.id)
		}
	}
	r.running[i] = true
	w.terms[i]++
	r.term[i] = w.terms[i]
	w.longest = max(w.longest, w.now-w.unowned[i])
	w.unowned[i] = 1 << 62
	r.reconcile(i)
	term := r.term[i]
	r.runDue(i, term)
	w.after(sweep, func() { r.runAll(i, term) })
}

// sweep is how long it takes to run all objects of a slot.
const sweep = 10 * time.Second

// mayRun reports whether the replica may run a slot that it opened as the given term.
func (r *replica) mayRun(i, term int, again func()) bool {
	switch {
	case !r.active(again) || !r.running[i] || r.term[i] != term:
		return false
	case !r.core.MayWrite(r.clock()):
		r.w.after(500*time.Millisecond, again)
		return false
	}
	return true
}

// runDue runs the objects of a slot that are due.
func (r *replica) runDue(i, term int) {
	if !r.mayRun(i, term, func() { r.runDue(i, term) }) {
		return
	}
	for _, c := range r.due[i] {
		r.w.ran(c)
	}
	r.due[i] = nil
}

// runAll runs all objects of a slot.
func (r *replica) runAll(i, term int) {
	if !r.mayRun(i, term, func() { r.runAll(i, term) }) {
		return
	}
	for _, c := range r.w.changes[i] {
		if c.at < r.w.now-time.Second {
			r.w.ran(c)
		}
	}
}

func (w *world) ran(c *change) {
	if !c.done {
		c.done = true
		w.slowest = max(w.slowest, w.now-c.at)
	}
}

// users change objects.
func (w *world) users() {
	i := w.rng.IntN(w.slots)
	w.snaps = append(w.snaps, *w.head())
	c := &change{rev: len(w.snaps) - 1, at: w.now}
	w.changes[i] = append(w.changes[i], c)
	for _, r := range w.replicas {
		w.notify(r, i, c)
	}
	w.after(w.within(2*time.Second), w.users)
}

// notify delivers the event of a change to a replica.
func (w *world) notify(r *replica, i int, c *change) {
	w.after(w.within(100*time.Millisecond), func() {
		if stop := max(r.cut, r.frozen); w.now < stop && !r.dead {
			w.after(stop-w.now, func() { w.notify(r, i, c) })
			return
		}
		if r.dead || c.rev < r.since[i] {
			return
		}
		r.due[i] = append(r.due[i], c)
		if r.running[i] {
			term := r.term[i]
			w.after(w.within(50*time.Millisecond), func() { r.runDue(i, term) })
		}
	})
}

// stop stops a slot.
func (r *replica) stop(i int) {
	if r.running[i] {
		r.running[i] = false
		r.w.unowned[i] = r.w.now
	}
}

// reconcile performs one run after the other.
func (r *replica) reconcile(i int) {
	w := r.w
	w.after(w.within(700*time.Millisecond), func() {
		if !r.active(func() { r.reconcile(i) }) || !r.running[i] || r.runs[i] > 0 {
			return
		}
		r.runs[i]++
		term := r.term[i]
		w.after(w.within(300*time.Millisecond), func() { r.write(i, term) })
	})
}

// write is the write of a run. The gate is checked before it is sent, and cancels it when it closes, except for
// requests in flight.
func (r *replica) write(i, term int) {
	w := r.w
	if !r.active(func() { r.write(i, term) }) {
		return
	}
	end := func() {
		r.runs[i]--
		r.reconcile(i)
	}
	if !r.core.MayWrite(r.clock()) {
		end()
		return
	}
	seen := r.cache[i]
	w.after(time.Millisecond+w.within(200*time.Millisecond), func() { // on its way
		if n := len(w.writes[i]); n > 0 && w.now >= r.cut {
			last := w.writes[i][n-1]
			if last.term > term {
				w.fail("slot %d: %s writes of term %d after %s of term %d has", i, r.id, term, last.by.id, last.term)
			}
			if last.by != r && seen < last.rev {
				w.fail("slot %d: %s has seen %d, and %s has written %d", i, r.id, seen, last.by.id, last.rev)
			}
		}
		if w.now >= r.cut {
			w.snaps = append(w.snaps, *w.head()) // one revision counter for all
			rev := len(w.snaps) - 1
			w.writes[i] = append(w.writes[i], write{r, term, rev})
			r.wrote[i] = rev
			for _, o := range w.replicas {
				w.show(o, i, rev)
			}
		}
		w.after(time.Millisecond, func() {
			if r.active(end) {
				end()
			}
		})
	})
}

// show delivers a write to the cache of a replica.
func (w *world) show(r *replica, slot, rev int) {
	w.after(w.within(100*time.Millisecond), func() {
		if stop := max(r.cut, r.frozen); w.now < stop && !r.dead {
			w.after(stop-w.now, func() { w.show(r, slot, rev) })
			return
		}
		r.cache[slot] = max(r.cache[slot], rev)
	})
}

func (r *replica) drained(e effect) {
	if r.dead {
		return
	}
	if r.runs[e.Slot] > 0 || r.w.now < r.frozen {
		r.w.after(20*time.Millisecond, func() { r.drained(e) })
		return
	}
	left := Handover{}
	for _, c := range r.due[e.Slot] {
		left.Due = append(left.Due, abi.Key{Name: fmt.Sprint(c.rev)})
	}
	if rev := r.wrote[e.Slot]; rev > 0 {
		left.Writes = []Write{{Resource: "r", ResourceVersion: fmt.Sprint(rev)}}
	}
	r.answered(func() { r.done(e, Result{Handover: map[string]Handover{"c": left}}) })
}

func (w *world) start() *replica {
	id := fmt.Sprintf("r%d", len(w.replicas))
	r := &replica{
		w: w, offset: w.within(time.Hour), rate: 0.97 + 0.06*w.rng.Float64(),
		timing: Timing{Lease: 15 * time.Second, Renew: 2 * time.Second, Settle: 4 * time.Second},
		cache:  make([]int, w.slots), listed: make([]time.Time, w.slots), running: make([]bool, w.slots), term: make([]int, w.slots), runs: make([]int, w.slots), wrote: make([]int, w.slots),
		since: make([]int, w.slots), due: make([][]*change, w.slots),
		view: len(w.snaps) - 1,
	}
	for i := range r.cache {
		r.cache[i], r.since[i] = w.last(i), 1<<62
	}
	r.incarnation = &incarnation{core: NewCore(id, w.slots, r.timing, r.clock()), id: id}
	w.replicas = append(w.replicas, r)
	r.see()
	w.after(w.within(time.Second), func() { r.core.Ready(); r.step() })
	return r
}

// fault causes a fault in a replica.
func (w *world) fault() {
	alive := w.alive()
	if w.calm || len(alive) == 0 {
		return
	}
	r := alive[w.rng.IntN(len(alive))]
	switch w.rng.IntN(11) {
	case 0:
		r.die()
	case 1:
		r.frozen = w.now + w.within(25*time.Second)
	case 2:
		r.cut = w.now + w.within(25*time.Second)
	case 3, 4:
		r.core.Leave(r.clock(), w.rng.IntN(3) == 0)
	case 5, 6:
		if len(alive) < 6 {
			w.start()
		}
	case 7:
		load := map[int]int{}
		for range 3 {
			load[w.rng.IntN(w.slots)] = w.rng.IntN(2000)
		}
		r.core.SetLoad(load)
	case 8:
		w.outage(w.within(100 * time.Second))
	case 9:
		if w.head().record != nil || w.traces(r.id) {
			w.change(func(s *snapshot, _ string) { delete(s.leases, r.id) })
		}
	case 10:
		if w.traces("") {
			w.change(func(s *snapshot, _ string) { s.record, s.version = nil, "" })
		}
	}
	w.after(w.within(12*time.Second), w.fault)
}

// traces reports whether there is a lease other than that of the given replica. If everything was deleted while a replica is cut off, one that
// starts cannot know of it: docs/scale.md excludes that.
func (w *world) traces(except string) bool {
	for id, l := range w.head().leases {
		if id != except && !l.Ended {
			return true
		}
	}
	return false
}

// outage cuts all replicas off.
func (w *world) outage(d time.Duration) {
	for _, r := range w.alive() {
		r.cut = max(r.cut, w.now+d)
	}
}

func newWorld(t *testing.T, seed uint64) *world {
	w := &world{t: t, rng: rand.New(rand.NewPCG(seed, 16)), snaps: []snapshot{{leases: map[string]Lease{}}}}
	w.slots = 1 + w.rng.IntN(12)
	w.changes = make([][]*change, w.slots)
	w.writes, w.unowned, w.terms = make([][]write, w.slots), make([]time.Duration, w.slots), make([]int, w.slots)
	for range 1 + w.rng.IntN(4) {
		w.start()
	}
	w.users()
	return w
}

func (w *world) run(until time.Duration) {
	for len(w.events) > 0 && w.failed == "" {
		if w.events[0].at > until {
			break
		}
		e := heap.Pop(&w.events).(event)
		w.now = e.at
		e.do()
	}
	w.now = until
}

// Whatever happens to replicas: no two of them run a slot at once, none writes after the next one has, the next one's
// cache includes all earlier writes. A minute after the last fault, each slot is run by one, and all changes have been
// run; from then on, each is run soon. WASMCTL_SIM_SEEDS sets the number of seeds.
func TestCore_OneRunsEachSlot(t *testing.T) {
	n := uint64(200)
	if testing.Short() {
		n = 60
	}
	if text := os.Getenv("WASMCTL_SIM_SEEDS"); text != "" {
		var err error
		if n, err = strconv.ParseUint(text, 10, 64); err != nil {
			t.Fatalf("WASMCTL_SIM_SEEDS: %v", err)
		}
	}
	for seed := range n {
		w := newWorld(t, seed)
		w.after(w.within(10*time.Second), w.fault)
		w.run(3 * time.Minute)
		w.run(w.rest() + time.Minute)
		w.checkRun(w.now - soon)
		w.slowest = 0
		w.run(w.now + time.Minute)
		w.checkCovered()
		w.checkRun(w.now - soon)
		if w.slowest > soon {
			w.fail("a change was run after %v, when all faults were over", w.slowest)
		}
		if w.failed != "" {
			t.Fatalf("seed %d: %s", seed, w.failed)
		}
	}
}

// soon is how long a change may wait while there are no faults.
const soon = time.Second

// rest ends all faults, and load that would move slots. It returns when the last outage ends.
func (w *world) rest() (end time.Duration) {
	w.calm = true
	for _, r := range w.replicas {
		r.core.SetLoad(nil)
		end = max(end, r.cut, r.frozen)
	}
	return max(end, w.now)
}

// A slot whose owner was killed is run by another one when its lease has expired, and one whose owner stops, within a
// second.
func TestCore_NoSlotIsLeftAlone(t *testing.T) {
	for seed := range uint64(100) {
		w := newWorld(t, seed)
		w.calm = true
		for len(w.alive()) < 3 {
			w.start()
		}
		w.run(20 * time.Second)
		w.longest, w.slowest = 0, 0
		kill, bound := seed%2 == 0, time.Second
		if kill {
			bound = 15*time.Second*105/100 + 2*time.Second
		}
		for range 3 {
			alive := w.alive()
			if r := alive[w.rng.IntN(len(alive))]; kill {
				r.die()
			} else {
				r.core.Leave(r.clock(), false)
			}
			w.start()
			w.run(w.now + 25*time.Second)
		}
		w.checkCovered()
		if w.longest > bound {
			w.fail("a slot was not run for %v, killed: %t", w.longest, kill)
		}
		if w.slowest > bound+200*time.Millisecond {
			w.fail("a change was run after %v, killed: %t", w.slowest, kill)
		}
		if w.failed != "" {
			t.Fatalf("seed %d: %s", seed, w.failed)
		}
	}
}

// After the record or the Lease of a replica was deleted, each slot is run again soon: nobody waits for the leases of replicas that have joined
// again.
func TestCore_DeletedLeasesAreNoOutage(t *testing.T) {
	for seed := range uint64(100) {
		w := newWorld(t, seed)
		w.calm = true
		w.run(30 * time.Second)
		w.longest = 0
		if seed%2 == 0 {
			w.change(func(s *snapshot, _ string) { s.record, s.version = nil, "" })
		} else {
			w.change(func(s *snapshot, _ string) { delete(s.leases, w.replicas[w.rng.IntN(len(w.replicas))].id) })
		}
		w.run(w.now + 20*time.Second)
		w.checkCovered()
		if w.longest > 5*time.Second || w.rejoins == 0 {
			w.fail("a slot was not run for %v; %d replicas joined again", w.longest, w.rejoins)
		}
		if w.failed != "" {
			t.Fatalf("seed %d: %s", seed, w.failed)
		}
	}
}

// After an outage of the API server, each replica goes on with the slots that it had, and changes are run soon.
func TestCore_OutlivesAnOutage(t *testing.T) {
	for seed := range uint64(50) {
		w := newWorld(t, seed)
		w.calm = true
		w.run(30 * time.Second)
		terms := slices.Clone(w.terms)
		w.outage(10*time.Second + w.within(90*time.Second))
		w.run(w.alive()[0].cut)
		w.checkRun(w.now - 2*time.Minute)
		for i := range w.changes {
			for _, c := range w.changes[i] {
				c.at = max(c.at, w.now) // as if made after the outage
			}
		}
		w.slowest = 0
		w.run(w.now + 40*time.Second)
		w.checkCovered()
		w.checkRun(w.now - 10*time.Second)
		if w.slowest > 3*time.Second || w.rejoins > 0 || !slices.Equal(terms, w.terms) {
			w.fail("a change was run after %v; %d replicas joined again; slots were opened %v times, and %v before", w.slowest, w.rejoins, w.terms, terms)
		}
		if w.failed != "" {
			t.Fatalf("seed %d: %s", seed, w.failed)
		}
	}
}

// checkRun checks that all changes before a time were run.
func (w *world) checkRun(before time.Duration) {
	for i := range w.changes {
		for _, c := range w.changes[i] {
			if !c.done && c.at < before {
				w.fail("the change %d of slot %d at %v was not run", c.rev, i, c.at)
			}
		}
	}
}

func (w *world) checkCovered() {
	alive := w.alive()
	for i := range w.slots {
		n := 0
		for _, r := range alive {
			if r.running[i] {
				n++
			}
		}
		if n != 1 {
			w.fail("slot %d is run by %d replicas of %d", i, n, len(alive))
		}
	}
}
