// Package quarantine decides which objects to quarantine: those whose runs keep
// ending in a trap, or at a limit. Such an object backs off alone, much longer
// than one that merely fails, until it or the module changes.
//
// It is a pure data structure: time and chance are arguments.
//
//	healthy     -- a harmful run --> suspect
//	suspect     -- any other run --> healthy
//	suspect     -- Config.After harmful runs in a row --> quarantined
//	quarantined -- a run that is not harmful, another object or module --> healthy
package quarantine

import (
	"cmp"
	"errors"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/internal/text"
)

// Defaults of Config.
const (
	// DefaultAfter is how many harmful runs in a row it takes.
	DefaultAfter = 5
	// DefaultInitial is how long an object is left alone at first.
	DefaultInitial = time.Minute
	// DefaultMax is how long it is left alone at most.
	DefaultMax = 30 * time.Minute
)

// Bounds of a Table.
const (
	maxRows   = 1 << 16 // objects
	maxTexts  = 1 << 10 // objects of which the whole error is kept
	maxText   = 4 << 10 // bytes of that
	shortText = 256     // bytes of the error of the others
)

// Config says what is harmful. The zero value has the defaults.
type Config struct {
	// After is how many harmful runs in a row it takes; negative turns quarantine
	// off.
	After int
	// Initial is how long an object is left alone when it gets into quarantine; it
	// doubles with each further harmful run, up to Max. A fifth of it is random,
	// so that objects that got in together do not come back together.
	Initial, Max time.Duration
}

// Validate returns an error where a value cannot be used.
func (c Config) Validate() error {
	if c.Initial < 0 || c.Max < 0 {
		return errors.New("quarantine: initial and max must not be negative")
	}
	return nil
}

func (c Config) withDefaults() Config {
	c.After, c.Initial, c.Max = cmp.Or(c.After, DefaultAfter), cmp.Or(c.Initial, DefaultInitial), cmp.Or(c.Max, DefaultMax)
	return c
}

// delay is how long an object stays quarantined after this many harmful runs in
// a row. r is a random number in [0, 1).
func (c Config) delay(runs int, r float64) time.Duration {
	d := math.Min(float64(c.Initial)*math.Pow(2, float64(runs-c.After)), float64(c.Max))
	return time.Duration(d * (0.8 + 0.2*r))
}

// Subject is what a run was of: the same object and the same module as before,
// or another.
type Subject struct {
	// Object stands for what the object asks for: its uid and its generation or
	// content. Status, labels and annotations are no part of it.
	Object uint64
	// Module is the revision of the module.
	Module uint64
}

// Failure is how a harmful run ended.
type Failure struct {
	Kind abi.FailureKind
	// Text is the error, the guest's stack trace included.
	Text string
}

// State is an object in quarantine.
type State struct {
	Key abi.Key
	// Since is when it got in, Until when it is retried.
	Since, Until time.Time
	// Runs counts its harmful runs in a row.
	Runs int
	// Failure is how the last of them ended.
	Failure
}

// Table has the objects that are suspect or quarantined. It is not safe for
// concurrent use.
type Table struct {
	cfg         Config
	rows        map[abi.Key]*row
	quarantined int
	texts       int
}

type row struct {
	State
	subject Subject
	long    bool // its text may be long
}

// New returns an empty table.
func New(cfg Config) *Table { return &Table{cfg: cfg.withDefaults(), rows: map[abi.Key]*row{}} }

// Len returns how many objects are suspect or quarantined.
func (t *Table) Len() int { return len(t.rows) }

// Quarantined returns how many are quarantined.
func (t *Table) Quarantined() int { return t.quarantined }

// Known reports whether an object is suspect or quarantined: only then does
// anybody need its Subject.
func (t *Table) Known(key abi.Key) bool { return t.rows[key] != nil }

// Check returns how long the object stays quarantined from now on; 0 if it can
// run. One that has changed, or whose module has, is healthy again; then freed
// says whether it was quarantined.
func (t *Table) Check(key abi.Key, s Subject, now time.Time) (wait time.Duration, freed bool) {
	r := t.rows[key]
	switch {
	case r == nil:
		return 0, false
	case r.subject != s:
		return 0, t.Forget(key)
	}
	return max(0, r.Until.Sub(now)), false
}

// Failed records a harmful run, and returns for how long the object is left
// alone, 0 where it is suspect only. entered is true where it got into
// quarantine by this run. random is in [0, 1).
func (t *Table) Failed(key abi.Key, s Subject, p Failure, now time.Time, random float64) (wait time.Duration, entered bool) {
	if t.cfg.After < 0 {
		return 0, false
	}
	r := t.rows[key]
	if r != nil && r.subject != s {
		t.Forget(key)
		r = nil
	}
	if r == nil {
		t.makeRoom()
		r = &row{subject: s}
		r.Key = key
		t.rows[key] = r
	}
	if r.Runs++; r.Runs < t.cfg.After {
		return 0, false
	}
	if entered = r.Since.IsZero(); entered {
		r.Since = now
		t.quarantined++
		if r.long = t.texts < maxTexts; r.long {
			t.texts++
		}
	}
	wait = t.cfg.delay(r.Runs, random)
	r.Until, r.Kind, r.Text = now.Add(wait), p.Kind, r.truncate(p.Text)
	return wait, entered
}

func (r *row) truncate(s string) string {
	n := shortText
	if r.long {
		n = maxText
	}
	return strings.Clone(text.Truncate(s, n))
}

// makeRoom forgets an object if the table is full: one that is suspect only, if
// one is found soon.
func (t *Table) makeRoom() {
	if len(t.rows) < maxRows {
		return
	}
	const checked = 16
	var victim abi.Key
	n := 0
	for key, r := range t.rows {
		victim = key
		if n++; r.Since.IsZero() || n == checked {
			break
		}
	}
	t.Forget(victim)
}

// Forget makes an object healthy: after a run that was not harmful, or when it
// is gone. It reports whether the object was quarantined.
func (t *Table) Forget(key abi.Key) bool {
	r := t.rows[key]
	if r == nil {
		return false
	}
	delete(t.rows, key)
	if r.long {
		t.texts--
	}
	if r.Since.IsZero() {
		return false
	}
	t.quarantined--
	return true
}

// Get returns the state of an object in quarantine, false for any other.
func (t *Table) Get(key abi.Key) (State, bool) {
	r := t.rows[key]
	if r == nil || r.Since.IsZero() {
		return State{}, false
	}
	return r.State, true
}

// List returns the objects in quarantine, those that have been there longest
// first, at most so many.
func (t *Table) List(limit int) []State {
	if t.quarantined == 0 {
		return nil
	}
	list := make([]State, 0, t.quarantined)
	for _, r := range t.rows {
		if !r.Since.IsZero() {
			list = append(list, r.State)
		}
	}
	slices.SortFunc(list, func(a, b State) int {
		return cmp.Or(a.Since.Compare(b.Since), cmp.Compare(a.Key.String(), b.Key.String()))
	})
	return slices.Clip(list[:min(limit, len(list))])
}
