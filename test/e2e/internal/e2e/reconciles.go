// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"
)

// Reconcile is a run, from the log. A run is logged before its object is released, after
// its duration was measured: it began at begin or earlier, and the next run of the object
// cannot begin before end.
type Reconcile struct {
	object     string
	Begin, end time.Time
	Text       string
}

// Reconciles returns the reconciles that the log of a process reports.
func (c *Process) Reconciles() []Reconcile {
	c.T.Helper()
	return ParseReconciles(c.Text())
}

// ParseReconciles returns the reconciles in a log.
func ParseReconciles(log string) []Reconcile {
	var runs []Reconcile
	for line := range strings.Lines(log) {
		var l struct {
			Time        time.Time
			Object      string
			Duration    *time.Duration
			ReconcileID string `json:"reconcile_id"`
		}
		if json.Unmarshal([]byte(line), &l) != nil || l.ReconcileID == "" || l.Duration == nil {
			continue // not of the end of a run; or the last line, cut off by a kill
		}
		runs = append(runs, Reconcile{object: l.Object, Begin: l.Time.Add(-*l.Duration), end: l.Time, Text: strings.TrimSpace(line)})
	}
	return runs
}

// atOnce returns the pairs of runs of one object that overlap.
func atOnce(runs []Reconcile) [][2]Reconcile {
	runs = slices.SortedFunc(slices.Values(runs), func(a, b Reconcile) int { return a.Begin.Compare(b.Begin) })
	var pairs [][2]Reconcile
	last := map[string]Reconcile{} // of those so far, the one that ended last
	for _, r := range runs {
		before := last[r.object]
		if r.Begin.Before(before.end) {
			pairs = append(pairs, [2]Reconcile{before, r})
		}
		last[r.object] = slices.MaxFunc([]Reconcile{before, r}, func(a, b Reconcile) int { return a.end.Compare(b.end) })
	}
	return pairs
}

// WantNoneTwice checks that no object was reconciled twice at once (rule 1), by the logs
// of all processes.
func WantNoneTwice(t *testing.T, runs ...[]Reconcile) {
	t.Helper()
	all := slices.Concat(runs...)
	if len(all) == 0 {
		t.Error("the logs report no reconcile")
	}
	for _, pair := range atOnce(all) {
		t.Errorf("rule 1: two at once:\n%s\n%s", pair[0].Text, pair[1].Text)
	}
}
