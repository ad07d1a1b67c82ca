// SPDX-License-Identifier: Apache-2.0

package adminserver

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/internal/engine"
	"github.com/wasmctl/wasmctl/internal/humanize"
	"github.com/wasmctl/wasmctl/runtime/admin"
	"github.com/wasmctl/wasmctl/runtime/shard"
	"github.com/wasmctl/wasmctl/runtime/shard/slots"
)

// shardStatus returns the slots as this replica sees them.
func shardStatus(v *shard.View, now time.Time) *admin.Shards {
	cover := v.Coverage(now)
	out := &admin.Shards{Replica: v.ID, Slots: v.Slots, Here: cover.Count(shard.Here), States: map[string]int{}, Coverage: cover.String(), Replicas: []admin.Replica{}}
	for _, state := range shard.SlotStates {
		out.States[string(state)] = cover.Count(state)
	}
	out.Covered = out.States[string(shard.Unowned)]+out.States[string(shard.Double)] == 0
	if v.Record != nil {
		out.Epoch, out.By = v.Record.Epoch, map[string]string{}
		for controller, field := range v.Record.Keys {
			out.By[controller] = fieldWord(field)
		}
	}
	for i := range v.Leases {
		out.Replicas = append(out.Replicas, replicaStatus(v, &v.Leases[i], now))
	}
	out.Modules = sharedModules(v, now)
	return out
}

// sharedModules returns the modules that the live replicas run.
func sharedModules(v *shard.View, now time.Time) (list []admin.SharedModule) {
	for i := range v.Leases { // ordered by ID
		l := &v.Leases[i]
		if !l.Live(now) {
			continue
		}
		for name, m := range v.StateOf(l).Summary.Modules {
			if m.Digest == "" {
				continue
			}
			at := slices.IndexFunc(list, func(s admin.SharedModule) bool { return s.Controller == name && s.Digest == m.Digest })
			if at < 0 {
				at, list = len(list), append(list, admin.SharedModule{Controller: name, Digest: m.Digest})
			}
			list[at].Replicas = append(list[at].Replicas, admin.ModuleAt{ID: l.ID, Revision: m.Revision, Paused: m.Paused})
		}
	}
	slices.SortFunc(list, func(a, b admin.SharedModule) int {
		return cmp.Or(cmp.Compare(a.Controller, b.Controller), cmp.Compare(len(b.Replicas), len(a.Replicas)), cmp.Compare(a.Digest, b.Digest))
	})
	return list
}

// minUneven is the number of objects up to which a slot is not called large.
const minUneven = 100

// unevenText describes the slot of a controller that has far more objects than the others of this replica. It is empty if there is none. n
// is the number of objects of each slot here, and by the word for the field that decides the slot.
func unevenText(controller, by string, n map[int]int) string {
	largest, sum := -1, 0
	for slot, count := range n {
		if sum += count; largest < 0 || count > n[largest] || count == n[largest] && slot < largest {
			largest = slot
		}
	}
	if largest < 0 || n[largest] <= minUneven || n[largest]*len(n) <= 4*sum { // four times the mean
		return ""
	}
	text := fmt.Sprintf("%s: slot %d has %d of the %d objects here", controller, largest, n[largest], sum)
	if by == fieldWord(slots.Namespace) {
		text += ": a namespace, and those with similar names, cannot be divided; if the module allows it, --shard-by uid spreads them"
	}
	return text
}

func replicaStatus(v *shard.View, l *shard.Lease, now time.Time) admin.Replica {
	state := v.StateOf(l)
	sum := &state.Summary
	r := admin.Replica{
		ID: l.ID, Version: sum.Version, State: "takes none", Open: state.Open.Len(), Ranges: state.Open.String(), Load: state.Cost().Seconds(),
		Controllers: sum.Controllers, Objects: sum.Objects, Ready: sum.Due, Running: sum.Running, Failing: sum.Failing, Runs: sum.Runs,
	}
	if v.Record != nil {
		owned := v.Record.OwnedBy(l.ID)
		r.Slots = owned.Len()
	}
	if l.Heard {
		r.Heard = l.Seen
	}
	switch {
	case !l.Live(now):
		r.State = "silent"
	case l.ID != v.ID && v.Overdue(l, now):
		r.State = "overdue"
	case state.Takes:
		r.State = "takes slots"
	}
	return r
}

// fieldWord names the field that decides the slot of an object, for people.
func fieldWord(field string) string { return strings.TrimPrefix(field, "metadata.") }

// slotOf returns the slot of an object of a controller, or nil if the slot is unknown. The
// uid is empty if it is not known.
func slotOf(v *shard.View, controller, uid, namespace string, now time.Time) *admin.Slot {
	if v == nil || v.Record == nil || len(v.Record.Slots) != v.Slots {
		return nil
	}
	field, key := v.Record.Keys[controller], namespace
	if field == slots.UID {
		key = uid
	}
	if field == "" || field == slots.UID && uid == "" {
		return nil
	}
	n := slots.Of(key, v.Slots)
	s, cover := &v.Record.Slots[n], v.Coverage(now)[n]
	out := &admin.Slot{Number: n, Of: v.Slots, By: fieldWord(field), State: string(cover.State), Replicas: cover.By, Next: s.Next, Epoch: s.Epoch}
	if !s.Moved.IsZero() {
		out.Moved = &s.Moved
	}
	return out
}

// slotText describes for people which replica runs a slot, as the replica self sees it.
func slotText(s *admin.Slot, self string, now time.Time) string {
	text := fmt.Sprintf("slot %d of %d by %s", s.Number, s.Of, s.By)
	who := strings.Join(s.Replicas, " and ")
	since := fmt.Sprintf(", since epoch %d", s.Epoch)
	if s.Moved != nil {
		since += ", " + humanize.Age(now, *s.Moved) + " ago"
	}
	switch shard.SlotState(s.State) {
	case shard.Here:
		text += ": this replica runs it" + since
	case shard.Elsewhere:
		text += "; replica " + who + " runs it" + since
	case shard.Believed:
		text += "; replica " + who + " is believed to run it" + since + ", but has not been heard of lately"
	case shard.Moving:
		text += "; its owner, replica " + strings.Replace(who, self, self+" (this one)", 1) + ", does not run it yet" + since
	case shard.Unowned:
		text += " has no owner" + since + ": a live replica takes it over within seconds, if there is one"
	case shard.Double:
		text += " is run by several replicas, " + who + since + ": this is a bug; report it, with the logs of these replicas"
	}
	if s.Next != "" {
		text += "; it will move to replica " + s.Next
	}
	return text
}

// elsewhere reports whether another replica runs the object, and explains it. missing is
// the reason why the cache does not have the object.
func (v *verdict) elsewhere(missing string) bool {
	if v.uid == "" && missing != notCached { // no replica runs it
		return false
	}
	v.e.Slot = slotOf(v.view, v.c.Name(), v.uid, v.key.Namespace, v.now)
	s := v.e.Slot
	if s == nil || s.State == string(shard.Here) {
		return false
	}
	v.report(s.State, "%s", slotText(s, v.view.ID, v.now))
	return true
}

// elsewhere returns an error if this replica does not run an object, so that the user asks
// another replica.
func (s Service) elsewhere(ctx context.Context, c *engine.Controller, key abi.Key) error {
	view := s.view()
	if view == nil {
		return nil
	}
	if err := c.CheckKey(key); err != nil {
		return err
	}
	v := verdict{e: &admin.Explanation{}, c: c, view: view, key: key, now: time.Now(), stored: c.Runtime.Stored(key)}
	if missing, _ := v.missing(ctx); !v.elsewhere(missing) {
		return nil
	}
	return fmt.Errorf("%s[%s]: this replica does not run it: %s", c.Kind().Name(), key, v.e.Why[0])
}

// here explains that this replica runs the object.
func (v *verdict) here() {
	if s := v.e.Slot; s != nil {
		v.report("", "%s", slotText(s, v.view.ID, v.now))
	}
}
