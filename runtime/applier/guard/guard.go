// SPDX-License-Identifier: Apache-2.0

// Package guard detects hot loops, in which the runs of an object keep each other going: see Cause. Such an object runs less and less often
// until the loop ends.
//
// The guard decides by the reasons of a run, the changes that it made and the action that it requested. The current time is an argument.
// See Trial for the duties of the caller.
//
// # What is not a hot loop
//
// A run that changes nothing, and requests no other run within MinRequeue. A run with another cause: a change of an object that the last
// run did not change, unless that run led to it; a resync, a user. A sequence of runs that each change another object, or in which others
// react to the writes without reverting them, as in a rolling update.
package guard

import (
	"cmp"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/wasmctl/wasmctl/abi"
)

// Defaults of Config.
const (
	DefaultRuns     = 20
	DefaultWindow   = 5 * time.Minute
	DefaultMinDelay = time.Second
	DefaultMaxDelay = time.Minute
)

// Bounds of the memory.
const (
	// MaxObjects is the maximum number of observed objects. If it is exceeded, an arbitrary eighth of them is removed.
	MaxObjects = 1 << 13
	// MaxWrites is the maximum number of written objects recorded per run; MaxInspect is how many of them are compared before and after.
	MaxWrites  = 32
	MaxInspect = 4
)

// Cause is the reason why the runs of an object keep each other going.
type Cause uint8

// The causes.
const (
	CauseNone      Cause = iota // the object is not in a hot loop
	CauseWrites                 // the writes of a run trigger the next
	CauseContested              // another writer reverts the writes of a run, which triggers the next
	CauseChain                  // runs of several objects of the controller trigger each other
	CauseRequeue                // a run requests the next one within MinRequeue
	CauseRetry                  // a run fails, and requests a retry within MinRequeue
)

// String describes the runs of the object: "its own writes trigger it".
func (c Cause) String() string {
	return [...]string{
		"it is in no hot loop", "its own writes trigger it", "another writer reverts its writes",
		"objects of this controller trigger each other", "its runs ask for the next one at once",
		"its runs fail and ask for a retry at once",
	}[min(c, CauseRetry)]
}

// Config defines a hot loop. The zero value has the defaults.
type Config struct {
	// Runs is the number of consecutive runs that make a hot loop. A negative value turns the guard off.
	Runs int
	// Window is the maximum time for that many runs that trigger each other: two runs that are more than Window/Runs apart do not belong to
	// the same loop.
	Window time.Duration
	// MinDelay is the first delay of an object. It doubles with each further run of the loop, up to MaxDelay.
	MinDelay, MaxDelay time.Duration
}

// Validate returns an error that names the first invalid field.
func (c Config) Validate() error {
	if c.Window < 0 || c.MinDelay < 0 || c.MaxDelay < 0 {
		return errors.New("guard: window and delays must not be negative")
	}
	if c = c.withDefaults(); c.MinDelay > c.MaxDelay {
		return errors.New("guard: the minimum delay must not exceed the maximum")
	}
	return nil
}

func (c Config) withDefaults() Config {
	c.Runs = cmp.Or(c.Runs, DefaultRuns)
	c.Window = cmp.Or(c.Window, DefaultWindow)
	c.MinDelay = cmp.Or(c.MinDelay, DefaultMinDelay)
	c.MaxDelay = cmp.Or(c.MaxDelay, DefaultMaxDelay)
	return c
}

// gap is the longest time between two consecutive runs of one loop.
func (c Config) gap() time.Duration { return c.Window / time.Duration(c.Runs) }

// Stats are the statistics of a Guard.
type Stats struct {
	// Episodes counts the hot loops that were found; Delayed counts the runs after which an object was delayed.
	Episodes, Delayed uint64
	// Objects is the number of objects whose writes are observed; Asking is the number of objects whose last run requested the next one
	// within MinRequeue; Hot is the number of objects that were in a hot loop at their last run.
	Objects, Asking, Hot int
}

// Guard observes the objects of one controller. It is safe for concurrent use, as long as no key has two Trials at once.
type Guard struct {
	cfg Config

	mu     sync.Mutex
	byKey  map[abi.Key]*loop // guarded by mu; see loop for its fields
	rates  map[abi.Key]rate  // guarded by mu; none is zero
	chains chains            // guarded by mu
	stats  Stats             // guarded by mu
	sweep  int               // guarded by mu: the number of loops at which to remove old ones
	swept  time.Time         // guarded by mu: when old rates were last removed
}

// New returns a Guard. The error is that of Config.Validate.
func New(cfg Config) (*Guard, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	return &Guard{cfg: cfg.withDefaults(), byKey: map[abi.Key]*loop{}, rates: map[abi.Key]rate{}, sweep: 1024}, nil
}

// Off reports whether the guard does nothing.
func (g *Guard) Off() bool { return g.cfg.Runs < 0 }

// Stats returns the current figures.
func (g *Guard) Stats() Stats {
	g.mu.Lock()
	defer g.mu.Unlock()
	st := g.stats
	st.Objects, st.Asking = len(g.byKey), len(g.rates)
	for range g.hot {
		st.Hot++
	}
	return st
}

// Begin returns the trial of a run that is about to start. It allocates nothing for an object that is not observed.
func (g *Guard) Begin(key abi.Key, s *Start) Trial {
	if g.Off() {
		return Trial{}
	}
	g.mu.Lock()
	l := g.byKey[key]
	_, asking := g.rates[key]
	g.mu.Unlock()
	if l == nil {
		return Trial{asking: asking, others: s.byOthers()}
	}
	t := l.begin(g.cfg, s, g.madeBy)
	t.asking = asking
	return t
}

// End judges the run of a trial and returns how long to delay its object. The trial is the zero value for a run that called no guest.
func (g *Guard) End(key abi.Key, t Trial, e *End) Decision {
	if g.Off() || t.loop == nil && !t.asking && len(e.Changes) == 0 && !e.asks() {
		return Decision{}
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if e.Gone { // no write can trigger it, but it may still ask for runs
		t.loop, e.Changes = nil, nil
		delete(g.byKey, key)
	}
	l := t.loop
	if l == nil && len(e.Changes) > 0 {
		l = &loop{}
	}
	var d Decision
	var progress bool
	if l != nil {
		d, progress = l.end(g.cfg, t, e)
	}
	paced := g.pace(key, e, progress && t.loop != nil || t.others)
	switch {
	case l == nil:
	case d.Closed:
		delete(g.byKey, key)
	default:
		l.expect(e, d.Delay, paced.Floor)
		g.store(key, l)
	}
	return g.decide(key, d, paced)
}

// decide combines the decisions on the writes and on the rate of an object, and counts them. The caller must hold mu.
func (g *Guard) decide(key abi.Key, d, paced Decision) Decision {
	closed := d.Closed || paced.Closed
	d.Floor = paced.Floor
	if !d.Opened && paced.Opened {
		d.Opened, d.Runs, d.Cause = true, paced.Runs, paced.Cause
	}
	d.Closed = closed && g.state(key).Cause == CauseNone
	if d.Opened {
		g.stats.Episodes++
	}
	if d.Delay > 0 || d.Floor >= g.cfg.MinDelay {
		g.stats.Delayed++
	}
	return d
}

// Forget stops observing an object that is gone.
func (g *Guard) Forget(key abi.Key) {
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.byKey, key)
	delete(g.rates, key)
}

// store stores l and makes room for it. The caller must hold mu.
func (g *Guard) store(key abi.Key, l *loop) {
	if _, known := g.byKey[key]; !known && len(g.byKey) >= g.sweep {
		for k, old := range g.byKey {
			if l.seen.Sub(old.seen) > g.cfg.gap()+g.cfg.MaxDelay {
				delete(g.byKey, k)
			}
		}
		for k := range g.byKey {
			if len(g.byKey) <= MaxObjects*7/8 {
				break
			}
			delete(g.byKey, k)
		}
		g.sweep = min(max(1024, 2*len(g.byKey)), MaxObjects)
	}
	g.byKey[key] = l
}

// sameObject reports whether both writes are to the same object, by name.
func sameObject(a, b *abi.Write) bool {
	return a.Key == b.Key && a.Resource == b.Resource && a.Group == b.Group
}

// Put adds w to writes, replacing an earlier write to the same object. Fields that are valid only during the call are cleared. If there are
// already MaxWrites other objects, Put does nothing and returns false.
func Put(writes []abi.Write, w *abi.Write) ([]abi.Write, bool) {
	stored := *w
	stored.Body, stored.Labels = nil, nil
	i := slices.IndexFunc(writes, func(old abi.Write) bool { return sameObject(&old, w) })
	if i >= 0 {
		writes[i] = stored
		return writes, true
	}
	if len(writes) >= MaxWrites {
		return writes, false
	}
	return append(writes, stored), true
}
