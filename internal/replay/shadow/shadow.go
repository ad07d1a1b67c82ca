// SPDX-License-Identifier: Apache-2.0

// Package shadow compares two runs of one object with the same input: one of the live module, and one of another module whose writes were not
// carried out. It does no I/O.
//
//	diff := shadow.Compare(&live, &other, apart)
package shadow

import (
	"maps"
	"math"
	"reflect"
	"slices"
	"strconv"
	"time"

	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/runtime/diff"
)

// Write is one requested change of a run.
type Write struct {
	// What is the verb, for people, such as "create", "apply" or "declare".
	What string
	// Kind is for example "v1/ConfigMap" or, with a subresource, "v1/Pod/status".
	Kind string
	Key  abi.Key
	// Body is the content of the write, as returned by abi.DecodeValue; nil if there is none.
	Body any
}

// String describes the write, such as "apply v1/ConfigMap shop/a".
func (w *Write) String() string {
	text := w.What
	if w.Kind != "" {
		text += " " + w.Kind
	}
	if key := w.Key.String(); key != "" {
		text += " " + key
	}
	return text
}

// Run is the result of a run.
type Run struct {
	// Writes are the requested changes, in order.
	Writes []Write
	// Action is the requested action; for a failed run, that of its error_policy.
	Action abi.Action
	// Error is empty for success.
	Error string
}

// Subjects of a Difference.
const (
	OfWrite  = "write"
	OfAction = "action"
	OfError  = "error"
)

// Difference is one difference between two runs.
type Difference struct {
	// Of is one of OfWrite, OfAction and OfError.
	Of string `json:"of"`
	// Write describes the write, and Path is the path in its body, such as "data.color"; Path is empty if one of the runs does not have the
	// write.
	Write string `json:"write,omitempty"`
	Path  string `json:"path,omitempty"`
	// Live and Shadow are the values in both runs; nil means none.
	Live   any `json:"live,omitempty"`
	Shadow any `json:"shadow,omitempty"`
}

// maxDifferences is the maximum number of differences of one run.
const maxDifferences = 100

// Compare returns the differences between two runs, or nil if there are none. Timestamps in writes that differ by no more than the times of
// the runs count as equal, and so do delays that differ by at most a tenth.
func Compare(live, other *Run, apart time.Duration) []Difference {
	c := comparison{apart: apart.Abs() + 2*time.Second} // timestamps have a resolution of seconds, from two clocks
	c.writes(live.Writes, other.Writes)
	if live.Error != other.Error {
		c.add(Difference{Of: OfError, Live: orNothing(live.Error), Shadow: orNothing(other.Error)})
	}
	if !sameAction(live.Action, other.Action) {
		c.add(Difference{Of: OfAction, Live: live.Action.String(), Shadow: other.Action.String()})
	}
	return c.found
}

func orNothing(text string) any {
	if text == "" {
		return nil
	}
	return text
}

func sameAction(a, b abi.Action) bool {
	if a.Requeue != b.Requeue {
		return false
	}
	return !a.Requeue || math.Abs(float64(a.After-b.After)) <= 0.1*float64(max(a.After, b.After))
}

// comparison is the state of one call of Compare.
type comparison struct {
	apart time.Duration
	found []Difference
}

func (c *comparison) add(d Difference) {
	if len(c.found) < maxDifferences {
		c.found = append(c.found, d)
	}
}

// identity matches the writes of two runs: the n-th of the same name.
type identity struct {
	name string
	n    int
}

func identities(writes []Write) (list []identity, at map[identity]int) {
	seen := map[string]int{}
	at = make(map[identity]int, len(writes))
	for i := range writes {
		name := writes[i].String()
		id := identity{name, seen[name]}
		seen[name]++
		list, at[id] = append(list, id), i
	}
	return list, at
}

func (c *comparison) writes(live, other []Write) {
	liveIDs, inLive := identities(live)
	otherIDs, inOther := identities(other)
	var both, bothInOther []identity
	for i, id := range liveIDs {
		j, ok := inOther[id]
		if !ok {
			c.add(Difference{Of: OfWrite, Write: id.name, Live: orTrue(live[i].Body)})
			continue
		}
		both = append(both, id)
		c.values(Difference{Of: OfWrite, Write: id.name}, live[i].Body, other[j].Body)
	}
	for j, id := range otherIDs {
		if _, ok := inLive[id]; ok {
			bothInOther = append(bothInOther, id)
		} else {
			c.add(Difference{Of: OfWrite, Write: id.name, Shadow: orTrue(other[j].Body)})
		}
	}
	if !slices.Equal(both, bothInOther) {
		c.add(Difference{Of: OfWrite, Path: "order", Live: names(both), Shadow: names(bothInOther)})
	}
}

// orTrue returns the body, or true if it is nil, so that an existing write differs from a missing one.
func orTrue(body any) any {
	if body == nil {
		return true
	}
	return body
}

func names(ids []identity) (out []any) {
	for _, id := range ids {
		out = append(out, id.name)
	}
	return out
}

// values compares two values at the path of d.
func (c *comparison) values(d Difference, live, other any) {
	switch a := live.(type) {
	case map[string]any:
		if b, ok := other.(map[string]any); ok {
			c.maps(d, a, b)
			return
		}
	case []any:
		if b, ok := other.([]any); ok && len(a) == len(b) {
			for i := range a {
				element := d
				element.Path += "[" + strconv.Itoa(i) + "]"
				c.values(element, a[i], b[i])
			}
			return
		}
	case string:
		if b, ok := other.(string); ok && c.sameText(a, b) {
			return
		}
	}
	if !equal(live, other) {
		d.Live, d.Shadow = live, other
		c.add(d)
	}
}

func (c *comparison) maps(d Difference, a, b map[string]any) {
	keys := slices.Sorted(maps.Keys(a))
	for key := range b {
		if _, ok := a[key]; !ok {
			keys = append(keys, key)
		}
	}
	slices.Sort(keys)
	for _, key := range keys {
		c.values(d.at(key), a[key], b[key])
	}
}

// at returns a difference for a key of the map at d.
func (d Difference) at(key string) Difference {
	d.Path = diff.Join(d.Path, key)
	return d
}

// sameText reports whether two texts are equal, or are timestamps that differ by no more than the times of the runs.
func (c *comparison) sameText(a, b string) bool {
	if a == b {
		return true
	}
	x, err := time.Parse(time.RFC3339, a)
	y, err2 := time.Parse(time.RFC3339, b)
	return err == nil && err2 == nil && y.Sub(x).Abs() <= c.apart
}

// equal compares values of any type; as in JSON, 1 and 1.0 are the same number.
func equal(a, b any) bool {
	x, ok := number(a)
	y, ok2 := number(b)
	if ok && ok2 {
		return x == y
	}
	return reflect.DeepEqual(a, b)
}

func number(v any) (float64, bool) {
	switch n := v.(type) {
	case int64:
		return float64(n), true
	case float64:
		return n, true
	}
	return 0, false
}
