package main

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"
)

// run is one reconcile, as the log has it. A run is logged while its object is
// still held, and its duration was taken before that: it began at begin or
// earlier, and the next run of the object cannot begin before end.
type run struct {
	object     string
	begin, end time.Time
	text       string
}

// runs returns the reconciles that the log of a process reports.
func (c *child) runs() []run {
	c.t.Helper()
	return parseRuns(c.text())
}

func parseRuns(log string) []run {
	var runs []run
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
		runs = append(runs, run{object: l.Object, begin: l.Time.Add(-*l.Duration), end: l.Time, text: strings.TrimSpace(line)})
	}
	return runs
}

// atOnce returns the pairs of runs of one object that overlap.
func atOnce(runs []run) [][2]run {
	runs = slices.SortedFunc(slices.Values(runs), func(a, b run) int { return a.begin.Compare(b.begin) })
	var pairs [][2]run
	last := map[string]run{} // of those so far, the one that ended last
	for _, r := range runs {
		before := last[r.object]
		if r.begin.Before(before.end) {
			pairs = append(pairs, [2]run{before, r})
		}
		last[r.object] = slices.MaxFunc([]run{before, r}, func(a, b run) int { return a.end.Compare(b.end) })
	}
	return pairs
}

// wantNoneTwice checks that no object was reconciled twice at once (rule 1), as
// the logs of one process or more tell it.
func wantNoneTwice(t *testing.T, runs ...[]run) {
	t.Helper()
	all := slices.Concat(runs...)
	if len(all) == 0 {
		t.Error("the logs report no reconcile")
	}
	for _, pair := range atOnce(all) {
		t.Errorf("rule 1: two at once:\n%s\n%s", pair[0].text, pair[1].text)
	}
}

// TestAtOnce_FindsOverlaps: what the tests of this package rely on.
func TestAtOnce_FindsOverlaps(t *testing.T) {
	line := func(object, id string, end, took time.Duration) string {
		b, err := json.Marshal(map[string]any{"time": time.Unix(100, 0).Add(end), "object": object, "reconcile_id": id, "duration": took})
		if err != nil {
			t.Fatal(err)
		}
		return string(b) + "\n"
	}
	apart := line("a", "1", 10, 10) + line("b", "2", 15, 10) + line("a", "3", 20, 10) + `{"time":"2026-11-21T15:39:36Z","object":"a"}` + "\n" +
		`{"time":"1970-01-01T00:01:40.000000018Z","object":"a","reconcile_id":"3","msg":"said within a run"}` + "\n"
	if runs := parseRuns(apart + `{"cut`); len(runs) != 3 || len(atOnce(runs)) != 0 {
		t.Errorf("%d runs, of which at once: %v", len(runs), atOnce(runs))
	}
	if pairs := atOnce(parseRuns(apart + line("a", "4", 25, 6))); len(pairs) != 1 || !strings.Contains(pairs[0][0].text, `"3"`) {
		t.Errorf("one pair was not found: %v", pairs)
	}
	if pairs := atOnce(parseRuns(line("a", "1", 100, 100) + line("a", "2", 20, 5) + line("a", "3", 50, 5))); len(pairs) != 2 {
		t.Errorf("two within a long one: %v", pairs)
	}
}
