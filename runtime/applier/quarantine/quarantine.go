// SPDX-License-Identifier: Apache-2.0

// Package quarantine decides which objects to quarantine: those whose runs keep ending in a trap, or at a limit. Such an object backs off much
// longer than one that merely fails, until it or the module changes.
//
// It is a pure data structure: time and random numbers are arguments.
//
//	healthy     -- a harmful run --> suspect
//	suspect     -- any other run --> healthy
//	suspect     -- Config.After consecutive harmful runs --> quarantined
//	quarantined -- a run that is not harmful, or a change of the object or the module --> healthy
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
	// DefaultAfter is the number of consecutive harmful runs that lead to quarantine.
	DefaultAfter = 5
	// DefaultInitial is the first quarantine time of an object.
	DefaultInitial = time.Minute
	// DefaultMax is the longest quarantine time.
	DefaultMax = 30 * time.Minute
)

// Bounds of a Table.
const (
	maxRows   = 1 << 16 // objects
	maxTexts  = 1 << 10 // objects with a long error text
	maxText   = 4 << 10 // bytes of a long error text
	shortText = 256     // bytes of any other error text
)

// Config configures quarantine. The zero value has the defaults.
type Config struct {
	// After is the number of consecutive harmful runs that lead to quarantine; a negative value turns quarantine off.
	After int
	// Initial is how long an object is first quarantined; it doubles with each further harmful run, up to Max. A fifth of it is random, so
	// that objects that were quarantined together are not retried together.
	Initial, Max time.Duration
}

// Validate returns an error if a value is invalid.
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

// delay is how long an object stays quarantined after this number of consecutive harmful runs. r is a random number in [0, 1).
func (c Config) delay(runs int, r float64) time.Duration {
	d := math.Min(float64(c.Initial)*math.Pow(2, float64(runs-c.After)), float64(c.Max))
	return time.Duration(d * (0.8 + 0.2*r))
}

// Subject identifies the state of the object and the module that a run used.
type Subject struct {
	// Object identifies the desired state of the object: its uid and its generation or content, excluding status, labels and annotations.
	Object uint64
	// Module is the revision of the module.
	Module uint64
}

// Failure describes the end of a harmful run.
type Failure struct {
	Kind abi.FailureKind
	// Text is the error, including the guest's stack trace.
	Text string
}

// State is the state of an object in quarantine.
type State struct {
	Key abi.Key
	// Since is when it was quarantined; Until is when it is retried.
	Since, Until time.Time
	// Runs is the number of consecutive harmful runs.
	Runs int
	// Failure describes the last of them.
	Failure
}

// Table holds the objects that are suspect or quarantined. It is not safe for concurrent use.
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

// Len returns the number of suspect and quarantined objects.
func (t *Table) Len() int { return len(t.rows) }

// Quarantined returns the number of quarantined objects.
func (t *Table) Quarantined() int { return t.quarantined }

// Known reports whether an object is suspect or quarantined. For other objects, the Subject is not needed.
func (t *Table) Known(key abi.Key) bool { return t.rows[key] != nil }

// Check returns how much longer the object stays quarantined; 0 if it can run. If the object or its module has changed, it is healthy
// again; freed reports whether it was quarantined before.
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

// Failed records a harmful run, and returns how long the object is quarantined, 0 if it is only suspect. entered reports whether this run
// led to quarantine. random is in [0, 1).
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

// makeRoom removes an object if the table is full. It prefers one that is only suspect, if one is found quickly.
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

// Forget makes an object healthy, after a run that was not harmful or when it is gone. It reports whether the object was quarantined.
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

// Get returns the state of an object in quarantine, or false for any other.
func (t *Table) Get(key abi.Key) (State, bool) {
	r := t.rows[key]
	if r == nil || r.Since.IsZero() {
		return State{}, false
	}
	return r.State, true
}

// List returns up to limit objects in quarantine, in the order in which they entered it.
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
