// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"encoding/json"
	"strings"
	"testing"
	"time"
)

// TestAtOnce_FindsOverlaps: atOnce finds each pair of overlapping runs of one object, on which other tests
// rely.
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
	if runs := ParseReconciles(apart + `{"cut`); len(runs) != 3 || len(atOnce(runs)) != 0 {
		t.Errorf("%d runs, of which at once: %v", len(runs), atOnce(runs))
	}
	if pairs := atOnce(ParseReconciles(apart + line("a", "4", 25, 6))); len(pairs) != 1 || !strings.Contains(pairs[0][0].Text, `"3"`) {
		t.Errorf("one pair was not found: %v", pairs)
	}
	if pairs := atOnce(ParseReconciles(line("a", "1", 100, 100) + line("a", "2", 20, 5) + line("a", "3", 50, 5))); len(pairs) != 2 {
		t.Errorf("two within a long one: %v", pairs)
	}
}
