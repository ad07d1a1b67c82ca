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
	// Type is a CamelCase word, "Ready".
	Type string
	// Status is ConditionTrue, ConditionFalse or ConditionUnknown.
	Status string
	// Reason is a CamelCase word. The API server requires one.
	Reason string
	// Message is for people.
	Message string
	// ObservedGeneration is the metadata.generation that the condition is
	// about.
	ObservedGeneration int64
	// LastTransitionTime is when Status last changed. Conditions.Set sets it.
	LastTransitionTime time.Time
}

// AppendMsgpack writes the condition as Kubernetes has it.
func (c Condition) AppendMsgpack(dst []byte) ([]byte, error) {
	b := wire.NewBuilder(dst)
	if err := b.Texts("type", c.Type, "status", c.Status, "reason", c.Reason); err != nil {
		return nil, err
	}
	if err := b.Value("message", c.Message); err != nil { // the API server wants one, be it empty
		return nil, err
	}
	b.Int("observedGeneration", c.ObservedGeneration)
	b.Text("lastTransitionTime", c.LastTransitionTime.UTC().Format(time.RFC3339))
	return b.End(), nil
}

// Conditions is a list of conditions, one of each type.
type Conditions []Condition

// Conditions returns status.conditions. The list is a copy.
func (o Object) Conditions() Conditions {
	var list Conditions
	for _, c := range o.Elements("status", "conditions") {
		list = append(list, readCondition(c))
	}
	return list
}

// readCondition goes over the entries once: a look-up for each field would go
// over them six times.
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

// Get returns the condition of a type; the zero Condition and false if there is
// none.
func (c Conditions) Get(typ string) (Condition, bool) {
	for _, cond := range c {
		if cond.Type == typ {
			return cond, true
		}
	}
	return Condition{}, false
}

// IsTrue reports whether the condition of that type is there and true.
func (c Conditions) IsTrue(typ string) bool {
	cond, _ := c.Get(typ)
	return cond.Status == ConditionTrue
}

// Set adds a condition, or replaces the one of its type, and reports whether
// that changed anything. As in meta/v1, LastTransitionTime changes only if
// Status does: to now, if cond has none. Write a status only if something
// changed, so that the object rests.
func (c *Conditions) Set(cond Condition, now time.Time) (changed bool) {
	return c.SetFunc(cond, func() time.Time { return now })
}

// SetFunc is Set that asks for the time only where it is needed: SetFunc(cond,
// ctx.Now). A run that did not ask can be skipped with --memo.
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

// since sets the time of the transition, where there is none, as the API server keeps
// it: in seconds, so that what is read back is equal.
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
