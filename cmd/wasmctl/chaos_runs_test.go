package main

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"
)

// run is one reconcile, as the log has it.
type run struct {
	object     string
	begin, end time.Time // begin is not before, and end not after, what they say
	failed     bool
	text       string
}

// runs returns the reconciles that the log of a process tells of, in the order
// in which they ended. A run is logged while its object is still held.
func (c *child) runs() []run {
	c.t.Helper()
	var runs []run
	for line := range strings.Lines(c.text()) {
		var l struct {
			Time        time.Time
			Msg, Object string
			Duration    time.Duration
			ReconcileID string `json:"reconcile_id"`
		}
		if json.Unmarshal([]byte(line), &l) != nil || l.ReconcileID == "" || l.Duration == 0 {
			continue // the last line may be cut off by a kill
		}
		runs = append(runs, run{object: l.Object, begin: l.Time.Add(-l.Duration), end: l.Time, failed: l.Msg == "reconcile failed", text: strings.TrimSpace(line)})
	}
	return runs
}

// wantNoneTwice checks that no object was reconciled twice at once, within a
// process or by two (rule 1).
func wantNoneTwice(t *testing.T, processes ...*child) {
	t.Helper()
	last := map[string]run{}
	var all []run
	for _, c := range processes {
		all = append(all, c.runs()...)
	}
	if len(all) == 0 {
		t.Error("the logs tell of no reconcile")
	}
	slices.SortFunc(all, func(a, b run) int { return cmp.Or(a.begin.Compare(b.begin), a.end.Compare(b.end)) })
	for _, r := range all {
		if before, ok := last[r.object]; ok && r.begin.Before(before.end) {
			t.Errorf("rule 1: two at once:\n%s\n%s", before.text, r.text)
		}
		last[r.object] = r
	}
}
