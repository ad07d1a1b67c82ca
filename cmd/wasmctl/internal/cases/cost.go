// SPDX-License-Identifier: Apache-2.0

package cases

import (
	"fmt"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
	"k8s.io/apimachinery/pkg/api/resource"
)

// Cost is the cost of a run. It is the same each time, on every machine.
type Cost struct {
	// Fuel is the module's computation, and Requests is the number of requests for the run.
	Fuel     int64 `json:"fuel"`
	Requests int64 `json:"requests"`
	// Memory is the size of the module's linear memory after the run, and Result is the length of
	// its longest result, in bytes.
	Memory int64 `json:"memory"`
	Result int64 `json:"result"`
}

// Budget limits the cost of a run. A nil field has no limit.
type Budget struct {
	Fuel     *Amount `yaml:"fuel" json:"fuel,omitempty"`
	Requests *Amount `yaml:"requests" json:"requests,omitempty"`
	Memory   *Amount `yaml:"memory" json:"memory,omitempty"`
	Result   *Amount `yaml:"result" json:"result,omitempty"`
}

// Amount is a number that a file writes as 200000, 200k or 4Mi.
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

// page is the size of a page of linear memory.
const page = 64 << 10

// Item is one part of a cost.
type Item struct {
	Name  string
	Spent int64
	// Limit is the limit, or -1 without one. Next is a limit with room for the differences between
	// compilers.
	Limit, Next int64
}

// Over reports whether the cost exceeds the limit.
func (i *Item) Over() bool { return i.Limit >= 0 && i.Spent > i.Limit }

// String describes by how much the cost exceeds the limit.
func (i *Item) String() string {
	more := "more than the limit of 0"
	if i.Limit > 0 {
		more = fmt.Sprintf("%.3g%% more than the limit of %s", 100*float64(i.Spent-i.Limit)/float64(i.Limit), i.text(i.Limit))
	}
	return fmt.Sprintf("cost.%s: %s: %s", i.Name, i.text(i.Spent), more)
}

// Share returns the cost and, after a slash, the limit.
func (i *Item) Share() string {
	if i.Limit < 0 {
		return i.text(i.Spent)
	}
	return i.text(i.Spent) + "/" + i.text(i.Limit)
}

// text returns a number in the form of a file.
func (i *Item) text(n int64) string {
	if i.Name == "memory" && n%1024 == 0 {
		return resource.NewQuantity(n, resource.BinarySI).String()
	}
	return strconv.FormatInt(n, 10)
}

// Items returns the parts of a cost with their limits.
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

// withRoom adds a tenth, and rounds up to two digits.
func withRoom(n int64) int64 {
	unit := int64(1)
	n += (n + 9) / 10
	for n/unit >= 100 {
		unit *= 10
	}
	return (n + unit - 1) / unit * unit
}

// or returns the budget with additional limits from another one.
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

// Budget returns the limits of the case, and those of its file.
func (c *Case) Budget() Budget { return c.Cost.or(c.file.Cost) }

// Items returns the parts of the verdict's cost. Without a run, there are none.
func (v *Verdict) Items() []Item {
	if v.Cost == nil {
		return nil
	}
	b := v.Case.Budget()
	return b.Items(v.Cost)
}

// Exceeded returns the parts of the cost that exceed their limits.
func (v *Verdict) Exceeded() (over []Item) {
	for _, i := range v.Items() {
		if i.Over() {
			over = append(over, i)
		}
	}
	return over
}

// CostText returns the line of the case's file with a budget that the run fits into. It has the
// limits that the case itself has or that the run exceeds. If all is set, it also has each limit
// that neither the case nor its file has. It is empty if nothing changes.
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
