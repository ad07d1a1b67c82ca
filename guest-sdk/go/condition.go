// SPDX-License-Identifier: Apache-2.0

package wasmctl

import (
	"time"

	"github.com/wasmctl/wasmctl/guest-sdk/go/internal/wire"
)

// Values of Condition.Status.
const (
	ConditionTrue    = "True"
	ConditionFalse   = "False"
	ConditionUnknown = "Unknown"
)

// Condition is one condition of a status, as in meta/v1.
type Condition struct {
	// Type is a CamelCase word, for example "Ready".
	Type string
	// Status is ConditionTrue, ConditionFalse or ConditionUnknown.
	Status string
	// Reason is a CamelCase word. The API server requires one.
	Reason string
	// Message is for people.
	Message string
	// ObservedGeneration is the metadata.generation that the condition
	// describes.
	ObservedGeneration int64
	// LastTransitionTime is the time of the last change of Status.
	// Conditions.Set sets it.
	LastTransitionTime time.Time
}

// AppendMsgpack writes the condition in the form of the Kubernetes API.
func (c Condition) AppendMsgpack(dst []byte) ([]byte, error) {
	b := wire.NewBuilder(dst)
	if err := b.Texts("type", c.Type, "status", c.Status, "reason", c.Reason); err != nil {
		return nil, err
	}
	if err := b.Value("message", c.Message); err != nil { // the API server requires the field, even if it is empty
		return nil, err
	}
	b.Int("observedGeneration", c.ObservedGeneration)
	b.Text("lastTransitionTime", c.LastTransitionTime.UTC().Format(time.RFC3339))
	return b.End(), nil
}

// Conditions is a list of conditions with at most one of each type.
type Conditions []Condition

// Conditions returns status.conditions. The list is a copy.
func (o Object) Conditions() Conditions {
	var list Conditions
	for _, c := range o.Elements("status", "conditions") {
		list = append(list, readCondition(c))
	}
	return list
}

// readCondition iterates over the entries once: a lookup for each field would
// iterate six times.
func readCondition(v Value) (c Condition) {
	for it := wire.Walk(v.view); it.Next(); {
		value := Value{it.Value}
		switch string(it.Key) {
		case "type":
			c.Type = value.String()
		case "status":
			c.Status = value.String()
		case "reason":
			c.Reason = value.String()
		case "message":
			c.Message = value.String()
		case "observedGeneration":
			c.ObservedGeneration = value.Int()
		case "lastTransitionTime":
			c.LastTransitionTime = value.Time()
		}
	}
	return c
}

// Get returns the condition of a type, or the zero Condition and false if there
// is none.
func (c Conditions) Get(typ string) (Condition, bool) {
	for _, cond := range c {
		if cond.Type == typ {
			return cond, true
		}
	}
	return Condition{}, false
}

// IsTrue reports whether the condition of that type exists and is true.
func (c Conditions) IsTrue(typ string) bool {
	cond, _ := c.Get(typ)
	return cond.Status == ConditionTrue
}

// Set adds a condition, or replaces the one of its type, and reports whether
// that changed anything. As in meta/v1, LastTransitionTime changes only if
// Status does; it becomes now, unless cond has a time. Write the status only if
// something changed: each write causes another run.
func (c *Conditions) Set(cond Condition, now time.Time) (changed bool) {
	return c.SetFunc(cond, func() time.Time { return now })
}

// SetFunc is Set with a clock, which it calls only if it needs the time:
// SetFunc(cond, ctx.Now). With --memo, the host can skip a run that did not
// read the time.
func (c *Conditions) SetFunc(cond Condition, now func() time.Time) (changed bool) {
	for i := range *c {
		old := &(*c)[i]
		if old.Type != cond.Type {
			continue
		}
		if old.Status == cond.Status && !old.LastTransitionTime.IsZero() {
			cond.LastTransitionTime = old.LastTransitionTime
		} else {
			cond.since(now)
		}
		changed = !old.equal(cond)
		*old = cond
		return changed
	}
	cond.since(now)
	*c = append(*c, cond)
	return true
}

// since sets a missing transition time. It truncates the time to seconds, as
// the API server does, so that a condition that was read back is equal.
func (c *Condition) since(now func() time.Time) {
	if c.LastTransitionTime.IsZero() {
		c.LastTransitionTime = now()
	}
	c.LastTransitionTime = c.LastTransitionTime.UTC().Truncate(time.Second)
}

func (c *Condition) equal(d Condition) bool {
	return c.Type == d.Type && c.Status == d.Status && c.Reason == d.Reason && c.Message == d.Message &&
		c.ObservedGeneration == d.ObservedGeneration && c.LastTransitionTime.Equal(d.LastTransitionTime)
}

// Remove removes the condition of a type, and reports whether there was one.
func (c *Conditions) Remove(typ string) bool {
	for i := range *c {
		if (*c)[i].Type == typ {
			*c = append((*c)[:i:i], (*c)[i+1:]...)
			return true
		}
	}
	return false
}
