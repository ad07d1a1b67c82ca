package cases

import (
	"fmt"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
	"k8s.io/apimachinery/pkg/api/resource"
)

// Cost is what a run has cost. It is the same each time, on every machine.
type Cost struct {
	// Fuel is what the module used, Requests how many requests were sent for the run.
	Fuel     int64 `json:"fuel"`
	Requests int64 `json:"requests"`
	// Memory is the linear memory of the module after the run, Result the length of
	// its longest result, in bytes.
	Memory int64 `json:"memory"`
	Result int64 `json:"result"`
}

// Budget is what a run may cost. What is nil is not bounded.
type Budget struct {
	Fuel     *Amount `yaml:"fuel" json:"fuel,omitempty"`
	Requests *Amount `yaml:"requests" json:"requests,omitempty"`
	Memory   *Amount `yaml:"memory" json:"memory,omitempty"`
	Result   *Amount `yaml:"result" json:"result,omitempty"`
}

// Amount is a number that a file has as 200000, 200k or 4Mi.
type Amount int64

// UnmarshalYAML implements yaml.Unmarshaler.
func (a *Amount) UnmarshalYAML(n *yaml.Node) error {
	q, err := resource.ParseQuantity(n.Value)
	if err != nil || q.Sign() < 0 {
		return fmt.Errorf("line %d: cost: %q: want a number such as 200000, 200k or 4Mi", n.Line, n.Value)
	}
	*a = Amount(q.Value())
	return nil
}

// page is the unit of linear memory.
const page = 64 << 10

// Item is one part of a cost.
type Item struct {
	Name  string
	Spent int64
	// Limit is what it may be, -1 if it is not bounded. Next is a limit with room for
	// what a new compiler changes.
	Limit, Next int64
}

// Over reports whether the run has cost more than it may.
func (i *Item) Over() bool { return i.Limit >= 0 && i.Spent > i.Limit }

// String says by how much a run has cost more than it may.
func (i *Item) String() string {
	more := "more than the limit of 0"
	if i.Limit > 0 {
		more = fmt.Sprintf("%.3g%% more than the limit of %s", 100*float64(i.Spent-i.Limit)/float64(i.Limit), i.text(i.Limit))
	}
	return fmt.Sprintf("cost.%s: %s: %s", i.Name, i.text(i.Spent), more)
}

// Share is what was spent and, behind a slash, what may be.
func (i *Item) Share() string {
	if i.Limit < 0 {
		return i.text(i.Spent)
	}
	return i.text(i.Spent) + "/" + i.text(i.Limit)
}

// text is a number as a file has it.
func (i *Item) text(n int64) string {
	if i.Name == "memory" && n%1024 == 0 {
		return resource.NewQuantity(n, resource.BinarySI).String()
	}
	return strconv.FormatInt(n, 10)
}

// Items are the parts of a cost, beside what they may be.
func (b *Budget) Items(c *Cost) []Item {
	limit := func(a *Amount) int64 {
		if a == nil {
			return -1
		}
		return int64(*a)
	}
	return []Item{
		{"fuel", c.Fuel, limit(b.Fuel), withRoom(c.Fuel)},
		{"requests", c.Requests, limit(b.Requests), c.Requests},
		{"memory", c.Memory, limit(b.Memory), (c.Memory + c.Memory/10 + page - 1) / page * page},
		{"result", c.Result, limit(b.Result), withRoom(c.Result)},
	}
}

// withRoom is a tenth more, rounded up to two digits.
func withRoom(n int64) int64 {
	unit := int64(1)
	n += (n + 9) / 10
	for n/unit >= 100 {
		unit *= 10
	}
	return (n + unit - 1) / unit * unit
}

// or is the budget with what another one bounds beside it.
func (b Budget) or(other Budget) Budget {
	for _, p := range [...]struct{ to, from **Amount }{
		{&b.Fuel, &other.Fuel}, {&b.Requests, &other.Requests}, {&b.Memory, &other.Memory}, {&b.Result, &other.Result},
	} {
		if *p.to == nil {
			*p.to = *p.from
		}
	}
	return b
}

// Budget is what the case may cost: its own limits, and those of its file.
func (c *Case) Budget() Budget { return c.Cost.or(c.file.Cost) }

// Items are the parts of the verdict's cost; none if no run was made.
func (v *Verdict) Items() []Item {
	if v.Cost == nil {
		return nil
	}
	b := v.Case.Budget()
	return b.Items(v.Cost)
}

// Exceeded are the parts of which the run has cost more than it may.
func (v *Verdict) Exceeded() (over []Item) {
	for _, i := range v.Items() {
		if i.Over() {
			over = append(over, i)
		}
	}
	return over
}

// CostText is the line of the case's file with a budget in which the run fits: with
// the limits that the case has itself, or that the run exceeds, or, with all, with
// every one that neither the case nor its file has. It is "" where nothing is to
// change.
func (v *Verdict) CostText(all bool) string {
	own := v.Case.Cost
	var parts []string
	changed := false
	for n, i := range v.Items() {
		is := [...]*Amount{own.Fuel, own.Requests, own.Memory, own.Result}[n]
		switch {
		case i.Over(), all && i.Limit < 0:
			changed = true
			parts = append(parts, i.Name+": "+i.text(i.Next))
		case is != nil:
			parts = append(parts, i.Name+": "+i.text(int64(*is)))
		}
	}
	if !changed {
		return ""
	}
	return "cost: {" + strings.Join(parts, ", ") + "}"
}
