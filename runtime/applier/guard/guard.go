// Package guard finds objects whose reconciles keep each other going: the
// writes of one run trigger the next, which writes again; or somebody else
// changes back what a run wrote, and it writes again. Such an object is held: it
// runs less and less often, until it calms down.
//
// It decides by what a run was told and what it changed, and takes the time as
// an argument. Trial documents the duties of the caller.
//
// # What is not a hot loop
//
// A run that changes nothing. A run that comes no sooner than the one before
// asked for. A run that something else caused: a change of an object that the
// last run did not change, a resync, a user. And a row of runs in which others
// answer to what was written without changing it back, as in a rolling update.
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

// Bounds of what is remembered.
const (
	// MaxObjects is how many objects are watched over at once. Beyond it an eighth
	// of them is forgotten, whichever.
	MaxObjects = 1 << 13
	// MaxWrites is how many written objects are remembered of one run, MaxInspect
	// how many of them are compared before and after.
	MaxWrites  = 32
	MaxInspect = 4
)

// Config says what a hot loop is. The zero value has the defaults.
type Config struct {
	// Runs is how many runs in a row make a hot loop. Negative turns the guard off.
	Runs int
	// Window is the time that so many runs take at most: two runs that are more
	// than Window/Runs apart are not of one loop.
	Window time.Duration
	// MinDelay is how long an object is first held. It doubles with each further
	// run of the loop up to MaxDelay.
	MinDelay, MaxDelay time.Duration
}

// Validate returns an error that names the first field with a value that cannot
// be used.
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

// gap is the longest time between two runs of one loop.
func (c Config) gap() time.Duration { return c.Window / time.Duration(c.Runs) }

// Stats is what a Guard found.
type Stats struct {
	// Episodes counts the hot loops that were found, Held the runs of them after
	// which the object was held.
	Episodes, Delayed uint64
	// Objects is how many objects are watched over now, Hot how many of them were
	// in a hot loop when they last ran.
	Objects, Hot int
}

// Guard watches over the objects of one controller. It is safe for use by
// several goroutines, as long as no key has two Trials at once.
type Guard struct {
	cfg Config

	mu    sync.Mutex
	byKey map[abi.Key]*loop // guarded by mu; see loop for what is in it
	stats Stats             // guarded by mu
	sweep int               // guarded by mu: the number of loops at which old ones are looked for
}

// New returns a Guard. The error is that of Config.Validate.
func New(cfg Config) (*Guard, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	return &Guard{cfg: cfg.withDefaults(), byKey: map[abi.Key]*loop{}, sweep: 1024}, nil
}

// Off reports whether the guard does nothing.
func (g *Guard) Off() bool { return g.cfg.Runs < 0 }

// Stats returns the present figures.
func (g *Guard) Stats() Stats {
	g.mu.Lock()
	defer g.mu.Unlock()
	st := g.stats
	st.Objects = len(g.byKey)
	for _, l := range g.byKey {
		if l.hot {
			st.Hot++
		}
	}
	return st
}

// Delayed returns how long the object is held after its runs; 0 where it is not in
// a hot loop.
func (g *Guard) Delayed(key abi.Key) time.Duration {
	g.mu.Lock()
	defer g.mu.Unlock()
	if l := g.byKey[key]; l != nil && l.hot {
		return l.delay
	}
	return 0
}

// Begin returns the trial of a run that is about to start. Nothing is allocated
// for an object that is not watched over.
func (g *Guard) Begin(key abi.Key, s *Start) Trial {
	if g.Off() {
		return Trial{}
	}
	g.mu.Lock()
	l := g.byKey[key]
	g.mu.Unlock()
	if l == nil {
		return Trial{}
	}
	return l.begin(g.cfg, s)
}

// End judges the run of a trial and returns how long to delay its object.
func (g *Guard) End(key abi.Key, t Trial, e *End) Decision {
	if g.Off() || t.loop == nil && len(e.Changes) == 0 {
		return Decision{}
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	l := t.loop
	if l == nil {
		l = &loop{}
	}
	d := l.end(g.cfg, t, e)
	if d.Opened {
		g.stats.Episodes++
	}
	if d.Delay > 0 {
		g.stats.Delayed++
	}
	if d.Closed {
		delete(g.byKey, key)
		return d
	}
	g.keep(key, l)
	return d
}

// Forget ends the watch over an object that is gone.
func (g *Guard) Forget(key abi.Key) {
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.byKey, key)
}

// keep stores l, and makes room for it. The caller holds mu.
func (g *Guard) keep(key abi.Key, l *loop) {
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

// sameObject reports whether both writes are of one object, by name.
func sameObject(a, b *abi.Write) bool {
	return a.Key == b.Key && a.Resource == b.Resource && a.Group == b.Group
}

// Put adds w to writes, of which there is one per object, the newest. Beyond
// MaxWrites it is left out; Put reports whether it was not. Data of a write that
// is valid only during the call is not kept.
func Put(writes []abi.Write, w *abi.Write) ([]abi.Write, bool) {
	kept := *w
	kept.Body, kept.Labels = nil, nil
	i := slices.IndexFunc(writes, func(old abi.Write) bool { return sameObject(&old, w) })
	if i >= 0 {
		writes[i] = kept
		return writes, true
	}
	if len(writes) >= MaxWrites {
		return writes, false
	}
	return append(writes, kept), true
}
