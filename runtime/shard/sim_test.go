// SPDX-License-Identifier: Apache-2.0

package shard

import (
	"container/heap"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"strconv"
	"testing"
	"time"
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
	writes   [][]write // by slot, in order
	replicas []*replica
	slots    int
	calm     bool            // no more faults
	unowned  []time.Duration // by slot: since when no replica has run it
	terms    []int           // by slot: how often it was opened
	longest  time.Duration
	failed   string
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
	w      *world
	core   *Core
	id     string
	offset time.Duration
	rate   float64
	timing Timing

	dead    bool
	frozen  time.Duration // until then it does nothing
	cut     time.Duration // until then no request arrives, and no watch event
	view    int           // the snapshot that its watch has reached
	cache   []int         // by slot: the last revision in its cache
	listed  []time.Time   // by slot: when its list was requested
	running []bool        // by slot
	term    []int         // by slot: the number of its last opening
	runs    []int         // by slot: running runs
	wrote   []int         // by slot: the revision of the last write
	wakeAt  time.Duration
	version string // of the replica's own lease
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
	effects, again := r.core.Step(r.clock())
	if r.core.Lost(r.clock()) || r.core.Left() {
		if r.core.Left() && !r.core.Lost(r.clock()) {
			r.request(func() { r.w.change(func(s *snapshot, _ string) { delete(s.leases, r.id) }) }, func(bool) {})
		}
		r.die()
		return
	}
	for _, e := range effects {
		r.carryOut(e)
	}
	r.sees()
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

// sees checks the replica's view of the coverage: it never reports that two run a slot.
func (r *replica) sees() {
	record, leases, own := r.core.Slots(r.clock())
	v := View{ID: r.id, Record: record, Leases: leases, Own: own, Slots: len(r.core.phases)}
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

func (r *replica) done(e Effect, res Result) { r.core.Done(r.clock(), e, res) }

func (r *replica) carryOut(e Effect) {
	w := r.w
	var res Result
	answer := func(ok bool) {
		res.Err = !ok
		r.done(e, res)
	}
	switch e.Kind {
	case Renew:
		r.request(func() {
			old, there := w.head().leases[r.id]
			if there && old.Ended || !there && r.version != "" {
				res.Lost = true
				return
			}
			r.version = w.change(func(s *snapshot, version string) {
				s.leases[r.id] = Lease{ID: r.id, Version: version, Lasts: r.timing.Lease, State: e.State}
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
			res.Version = w.change(func(s *snapshot, version string) { s.record, s.version = record, version })
		}, answer)
	case Warm:
		r.listed[e.Slot] = r.clock()
		w.after(w.within(50*time.Millisecond), func() {
			list := w.last(e.Slot)
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
		w.after(w.within(20*time.Millisecond), func() { r.answered(func() { r.done(e, res) }) })
	}
}

// open waits until the cache includes the last writes, and then runs the slot.
func (r *replica) open(e Effect) {
	w, i := r.w, e.Slot
	var want int
	then := func() { r.catchUp(want, i, func() { r.start(i); r.done(e, Result{}) }) }
	if left, ok := e.Handover["c"]; ok {
		for _, l := range left.Writes {
			_, _ = fmt.Sscan(l.ResourceVersion, &want)
		}
		then()
		return
	}
	if r.listed[i].After(e.Since) { // it includes all of that
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

func (r *replica) drained(e Effect) {
	if r.dead {
		return
	}
	if r.runs[e.Slot] > 0 || r.w.now < r.frozen {
		r.w.after(20*time.Millisecond, func() { r.drained(e) })
		return
	}
	left := Handover{}
	if rev := r.wrote[e.Slot]; rev > 0 {
		left.Writes = []Write{{Resource: "r", ResourceVersion: fmt.Sprint(rev)}}
	}
	r.answered(func() { r.done(e, Result{Handover: map[string]Handover{"c": left}}) })
}

func (w *world) start() *replica {
	id := fmt.Sprintf("r%d", len(w.replicas))
	r := &replica{
		w: w, id: id, offset: w.within(time.Hour), rate: 0.97 + 0.06*w.rng.Float64(),
		timing: Timing{Lease: 15 * time.Second, Renew: 2 * time.Second, Settle: 4 * time.Second},
		cache:  make([]int, w.slots), listed: make([]time.Time, w.slots), running: make([]bool, w.slots), term: make([]int, w.slots), runs: make([]int, w.slots), wrote: make([]int, w.slots),
		view: len(w.snaps) - 1,
	}
	for i := range r.cache {
		r.cache[i] = w.last(i)
	}
	r.core = NewCore(id, w.slots, r.timing, r.clock())
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
	switch w.rng.IntN(8) {
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
	}
	w.after(w.within(12*time.Second), w.fault)
}

func newWorld(t *testing.T, seed uint64) *world {
	w := &world{t: t, rng: rand.New(rand.NewPCG(seed, 16)), snaps: []snapshot{{leases: map[string]Lease{}}}}
	w.slots = 1 + w.rng.IntN(12)
	w.writes, w.unowned, w.terms = make([][]write, w.slots), make([]time.Duration, w.slots), make([]int, w.slots)
	for range 1 + w.rng.IntN(4) {
		w.start()
	}
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
// cache includes all earlier writes, and once the faults are over, each slot is run by one. WASMCTL_SIM_SEEDS sets the
// number of seeds.
func TestCore_OneRunsEachSlot(t *testing.T) {
	n := uint64(300)
	if testing.Short() {
		n = 100
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
		w.rest()
		w.run(4 * time.Minute)
		w.checkCovered()
		if w.failed != "" {
			t.Fatalf("seed %d: %s", seed, w.failed)
		}
	}
}

// rest ends all faults, and load that would move slots.
func (w *world) rest() {
	w.calm = true
	for _, r := range w.replicas {
		r.core.SetLoad(nil)
	}
}

// A slot whose owner was killed is run by another one when its lease has expired, and one whose owner stops, within a
// second.
func TestCore_NoSlotIsLeftAlone(t *testing.T) {
	for seed := range uint64(300) {
		w := newWorld(t, seed)
		w.calm = true
		for len(w.alive()) < 3 {
			w.start()
		}
		w.run(20 * time.Second)
		w.longest = 0
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
		if w.failed != "" {
			t.Fatalf("seed %d: %s", seed, w.failed)
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
