// SPDX-License-Identifier: Apache-2.0

package wasmctl

import (
	"testing"
	"time"
)

var noon = time.Date(2026, 1, 1, 12, 0, 0, 987, time.UTC)

// TestConditions_TransitionTimeMovesOnlyWithTheStatus checks the rules of
// meta/v1.
func TestConditions_TransitionTimeMovesOnlyWithTheStatus(t *testing.T) {
	var c Conditions
	ready := Condition{Type: "Ready", Status: ConditionFalse, Reason: "Starting", Message: "m", ObservedGeneration: 1}
	at := func(d time.Duration) time.Time { return noon.Add(d).Truncate(time.Second) }
	equal(t, c.Set(ready, noon), true)
	equal(t, c.Set(ready, noon.Add(time.Hour)), false)
	equal(t, c[0].LastTransitionTime, at(0))

	for _, change := range []func(){
		func() { ready.Reason = "Waiting" }, func() { ready.Message = "n" }, func() { ready.ObservedGeneration = 2 },
	} {
		change()
		equal(t, c.Set(ready, noon.Add(2*time.Hour)), true)
		got, ok := c.Get("Ready")
		want := ready
		want.LastTransitionTime = at(0)
		equal(t, []any{got, ok}, []any{want, true})
	}
	ready.Status = ConditionTrue
	equal(t, []bool{c.IsTrue("Ready"), c.Set(ready, noon.Add(3*time.Hour)), c.IsTrue("Ready")}, []bool{false, true, true})
	equal(t, c[0].LastTransitionTime, at(3*time.Hour))
	ready.Status, ready.LastTransitionTime = ConditionUnknown, noon.Add(time.Minute)
	equal(t, []any{c.Set(ready, noon), c[0].LastTransitionTime}, []any{true, at(time.Minute)})
}

func TestConditions_SurviveTheClusterUnchanged(t *testing.T) {
	var c Conditions
	c.Set(Condition{Type: "A", Status: ConditionTrue, Reason: "R", ObservedGeneration: 3}, noon)
	c.Set(Condition{Type: "B", Status: ConditionUnknown, Reason: "S", Message: "m"}, noon)
	back := testObject(t, Map{"status": Map{"conditions": c}}).Conditions()
	equal(t, back, c)
	equal(t, back.Set(Condition{Type: "B", Status: ConditionUnknown, Reason: "S", Message: "m"}, noon.Add(time.Hour)), false)
	equal(t, []any{back.Remove("A"), back.Remove("A"), len(back), len(c)}, []any{true, false, 1, 2})
	if _, err := NewValue(Conditions{{Message: "\xff"}}); err == nil {
		t.Error("text that is not UTF-8 was written")
	}
	if len(testObject(t, Map{"status": Map{"conditions": "none"}}).Conditions()) != 0 {
		t.Error("no list has conditions")
	}
}
