// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/wasmctl/wasmctl/internal/memapi"
	"github.com/wasmctl/wasmctl/runtime/scheduler"
)

// plot is the part of a scenario that is decided in advance: the controllers, and their actions over time.
type plot struct {
	noStreams bool
	pool      int     // 0 means none
	mood      float64 // probability of faults; 0 means none
	guestMood float64 // the same for guests
	pageSize  int
	slow      bool // runs take long, and there are few workers
	// slowMappers makes the events of related kinds accumulate.
	slowMappers bool

	namespaces []string
	names      int // objects of a kind in a namespace

	ctrls     []ctrlSpec
	before    []op // before the controllers start
	ops       []op
	stopOrder []int
	force     bool
}

// writing is what a controller's guest writes to the cluster.
type writing uint8

const (
	writesNothing writing = iota
	writesStatus
	writesChildren   // by itself
	declaresChildren // in its results
)

// ctrlSpec is a controller.
type ctrlSpec struct {
	name        string
	kind        memapi.Kind
	namespaces  []string
	selector    string
	predicates  []string
	relations   []relationSpec
	writes      writing
	hot         bool // each run writes something new, and so leads to the next
	finalizer   bool
	deletes     bool
	concurrency int
	debounce    scheduler.Debounce
	awaitWrites time.Duration
	drain       time.Duration
	standby     bool          // is elected later
	startAt     time.Duration // 0 means with the others; otherwise by an op
}

// relationSpec is a watch of another kind.
type relationSpec struct {
	kind       memapi.Kind
	spec       string // "owner", "label:KEY", "annotation:KEY" or "func"
	namespaces []string
	selector   string
	predicates []string
	metadata   bool
	optional   bool
	owned      bool
	late       bool // added by an op
}

// mapKey is the label and the annotation with which objects name others.
const mapKey = group + "/for"

func newPlot(r *rand.Rand) plot {
	p := plot{
		noStreams: chance(r, 0.25), mood: pick(r, 0, 0.3, 1, 1), guestMood: pick(r, 0, 0.3, 1, 1), pageSize: r.IntN(4),
		namespaces: []string{"a", "b"}[:1+r.IntN(2)], names: 1 + r.IntN(3), force: chance(r, 0.3), slow: chance(r, 0.2),
		slowMappers: chance(r, 0.3),
	}
	for i := range 1 + r.IntN(3) {
		p.ctrls = append(p.ctrls, p.newCtrl(r, i))
	}
	if chance(r, 0.5) {
		p.pool = len(p.ctrls) + r.IntN(3)
	}
	if p.slow {
		p.pool, p.names = len(p.ctrls)+r.IntN(2), 3
		for i := range p.ctrls {
			p.ctrls[i].concurrency = 3
		}
	}
	p.stopOrder = r.Perm(len(p.ctrls))
	p.write(r)
	return p
}

func (p *plot) newCtrl(r *rand.Rand, i int) ctrlSpec {
	c := ctrlSpec{
		name: fmt.Sprintf("ctrl%d", i), kind: widgets, concurrency: 1 + r.IntN(3), deletes: chance(r, 0.3),
		awaitWrites: pick(r, 0, 0, 100*time.Millisecond, -1), drain: pick(r, 0, time.Second, 10*time.Second),
		standby: chance(r, 0.2), writes: pick(r, writesNothing, writesStatus, writesStatus),
	}
	if chance(r, 0.2) {
		c.startAt = 1
	}
	if chance(r, 0.25) {
		c.debounce = scheduler.Debounce{Quiet: pick(r, 10*time.Millisecond, time.Second), Max: pick(r, 0, 2*time.Second)}
	}
	if i > 0 && chance(r, 0.3) {
		c.kind = pick(r, zones, configs)
	}
	if c.kind.Kind == widgets.Kind {
		if i == 0 { // two that own the same objects would fight
			c.writes = pick(r, writesChildren, declaresChildren)
		}
		c.finalizer = chance(r, 0.3)
	}
	if c.kind.Namespaced && chance(r, 0.3) {
		c.namespaces = p.namespaces[:1+r.IntN(len(p.namespaces))]
	}
	if c.writes < writesChildren && chance(r, 0.3) {
		c.selector = "tier=gold"
	}
	c.predicates = c.newPredicates(r)
	c.hot = c.predicates == nil && chance(r, 0.1)
	c.relations = p.newRelations(r, &c)
	return c
}

func (c *ctrlSpec) newPredicates(r *rand.Rand) []string {
	sets := [][]string{nil, nil, {"resourceVersion"}, {"generation"}, {"generation", "labels", "ttl=1m"}, {"func"}, {"func", "labels"}}
	if !c.finalizer {
		sets = append(sets, []string{"labels"}, []string{"labels", "ttl=never"})
	}
	return sets[r.IntN(len(sets))]
}

func (p *plot) newRelations(r *rand.Rand, c *ctrlSpec) []relationSpec {
	var all []relationSpec
	if c.writes >= writesChildren {
		all = append(all, relationSpec{kind: parts, spec: "owner", owned: true, namespaces: c.namespaces, metadata: c.writes == declaresChildren && chance(r, 0.2)})
	}
	if c.kind.Kind != configs.Kind && chance(r, 0.7) {
		w := relationSpec{kind: configs, spec: pick(r, "label:"+mapKey, "annotation:"+mapKey, "func", "func")}
		w.optional, w.late = chance(r, 0.2), chance(r, 0.35)
		switch {
		case w.spec == "func":
		case chance(r, 0.2):
			w.metadata = true
		case w.spec == "label:"+mapKey && chance(r, 0.3):
			w.predicates = []string{"labels"}
		}
		if chance(r, 0.2) {
			w.selector = "tier=gold"
		}
		if chance(r, 0.2) {
			w.namespaces = p.namespaces
		}
		all = append(all, w)
	}
	return all
}

func (p *plot) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "noStreams %t, pool %d, mood %g, guestMood %g, pageSize %d, slow %t, slowMappers %t, namespaces %v, names %d, force %t",
		p.noStreams, p.pool, p.mood, p.guestMood, p.pageSize, p.slow, p.slowMappers, p.namespaces, p.names, p.force)
	for _, c := range p.ctrls {
		fmt.Fprintf(&b, "\n%s of %s in %v (%s) by %v: writes %d, hot %t, finalizer %t, deletes %t, concurrency %d, debounce %v, awaitWrites %v, drain %v, standby %t, startAt %v",
			c.name, c.kind.Resource, c.namespaces, c.selector, c.predicates, c.writes, c.hot, c.finalizer, c.deletes, c.concurrency, c.debounce, c.awaitWrites, c.drain, c.standby, c.startAt)
		for _, w := range c.relations {
			fmt.Fprintf(&b, "\n\t%s by %s in %v (%s) by %v: metadata %t, optional %t, owned %t, late %t",
				w.kind.Resource, w.spec, w.namespaces, w.selector, w.predicates, w.metadata, w.optional, w.owned, w.late)
		}
	}
	return b.String()
}

func chance(r *rand.Rand, p float64) bool { return r.Float64() < p }

func pick[T any](r *rand.Rand, of ...T) T { return of[r.IntN(len(of))] }

// upTo returns a random time, with short and long ones equally likely.
func upTo(r *rand.Rand, limit time.Duration) time.Duration {
	return time.Duration(float64(limit) * r.Float64() * r.Float64())
}
