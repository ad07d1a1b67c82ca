// SPDX-License-Identifier: Apache-2.0

package share

import (
	"testing"
	"time"
)

// call is an instance whose call began so long ago.
type call struct{ overdue int64 }

func (c *call) Overdue() int64 { return c.overdue }
func (c *call) Where() string  { return "module web in f" }
func (c *call) ReportStuck()   {}

// A call counts as stuck after more than twice its time, is reported once, and a call that
// has ended or whose instance is gone is none of the Watchdog's business.
func TestWatchdog_NamesStuckCalls(t *testing.T) {
	w := NewWatchdog()
	now := w.base
	in := &call{overdue: w.Due(now, time.Second)}
	w.Add(in)
	if err := w.Check(); err != nil || len(w.unreported()) != 0 {
		t.Errorf("at once: %v", err)
	}
	w.base = now.Add(-2*time.Second - WatchGrace)
	if err := w.Check(); err == nil || err.Error() != "calls do not end with their time: module web in f" {
		t.Errorf("got %v", err)
	}
	if first, second := len(w.unreported()), len(w.unreported()); first != 1 || second != 0 {
		t.Errorf("reported %d and %d times", first, second)
	}
	in.overdue = 0
	if err := w.Check(); err != nil {
		t.Errorf("after its end: %v", err)
	}
	w.Remove(in)
	if n := len(w.instances); n != 0 {
		t.Errorf("%d instances left", n)
	}
}
