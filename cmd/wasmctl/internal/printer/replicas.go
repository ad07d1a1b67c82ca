// SPDX-License-Identifier: Apache-2.0

package printer

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/wasmctl/wasmctl/internal/humanize"
	"github.com/wasmctl/wasmctl/internal/text"
	"github.com/wasmctl/wasmctl/runtime/admin"
)

// processLine describes the process, and its role among the replicas.
func processLine(st *admin.Status, now time.Time) string {
	head := fmt.Sprintf("wasmctl %s, pid %d, up %s", st.Version, st.PID, humanize.Age(now, st.Started))
	switch {
	case st.Shards != nil:
		head += fmt.Sprintf(", runs %d of %d slots", st.Shards.Here, st.Shards.Slots)
	case st.Leader != nil:
		head += map[bool]string{true: ", leads", false: ", standby"}[*st.Leader]
		if !*st.Leader && st.LeaderID != "" {
			head += " of " + text.Line(st.LeaderID)
		}
	}
	return head
}

// shardLines describe the replica, and whether all objects have one.
func shardLines(sh *admin.Shards, s Screen) []string {
	if sh == nil {
		return nil
	}
	cover := cutTo("shards: "+sh.Coverage, s.width)
	if !sh.Covered && s.coloured {
		cover = colourBad + cover + colourOff
	}
	lines := []string{cutTo(fmt.Sprintf("replica %s, epoch %d", sh.Replica, sh.Epoch), s.width), cover}
	for _, hint := range sh.Hints {
		lines = append(lines, cutTo("uneven: "+text.Line(hint), s.width))
	}
	return lines
}

// sharedTable has a row for each module of a controller that replicas share. If all replicas run the same one, their names are omitted.
func sharedTable(sh *admin.Shards) *table {
	t := &table{columns: []column{{title: "CONTROLLER", minWidth: 14}, {title: "DIGEST"}, {title: "COUNT", right: true, omit: 1}, {title: "REPLICAS", minWidth: 20}}}
	if sh == nil {
		return t
	}
	for i := range sh.Modules {
		m := &sh.Modules[i]
		differs := slices.ContainsFunc(sh.Modules, func(o admin.SharedModule) bool { return o.Controller == m.Controller && o.Digest != m.Digest })
		paused, names := 0, make([]string, len(m.Replicas))
		for j, at := range m.Replicas {
			names[j] = fmt.Sprintf("%s (revision %d)", at.ID, at.Revision)
			if at.Paused {
				paused++
				names[j] = fmt.Sprintf("%s (revision %d, paused)", at.ID, at.Revision)
			}
		}
		colour, which := "", strings.Join(names, ", ")
		switch {
		case differs:
			colour, which = colourWarn, "differs: "+which
		case paused == 0:
			which = "the same module at each replica"
		case paused == len(names):
			which = "the same module at each replica, paused"
		}
		t.row(colour, m.Controller, m.Digest, len(m.Replicas), which)
	}
	return t
}

// replicaTable has a row for each replica. If all is set, it shows the state of its controllers.
func replicaTable(sh *admin.Shards, now time.Time, all bool) *table {
	t := &table{columns: []column{
		{title: "REPLICA", minWidth: 14}, {title: "SLOTS", right: true}, {title: "OPEN", right: true}, {title: "LOAD", right: true}, {title: "HEARD", right: true, omit: 5},
	}}
	if all {
		t.columns = append(t.columns, column{title: "CONTROLLERS", right: true, omit: 4}, column{title: "CACHED", right: true, omit: 3}, column{title: "READY", right: true, omit: 2},
			column{title: "RUNNING", right: true, omit: 2}, column{title: "RUNS", right: true, omit: 1}, column{title: "FAILING", right: true, omit: 1},
			column{title: "VERSION", omit: 1})
	}
	t.columns = append(t.columns, column{title: "STATE", minWidth: 12})
	if sh == nil {
		return t
	}
	for i := range sh.Replicas {
		r := &sh.Replicas[i]
		heard := "-"
		if !r.Heard.IsZero() {
			heard = humanize.Age(now, r.Heard)
		}
		cells := []any{r.ID, r.Slots, r.Open, strconv.FormatFloat(r.Load, 'f', 2, 64), heard}
		if all {
			cells = append(cells, r.Controllers, r.Objects, r.Ready, r.Running, r.Runs, r.Failing, r.Version)
		}
		colour, state := map[string]string{"silent": colourBad, "overdue": colourWarn}[r.State], r.State
		if r.ID == sh.Replica {
			state += ", this one"
		}
		t.row(colour, append(cells, state)...)
	}
	return t
}

// ReplicaLines returns the lines about the replicas that share the objects, as known to one of
// them.
func ReplicaLines(st *admin.Status, now time.Time, s Screen) []string {
	lines := append([]string{cutTo(processLine(st, now), s.width)}, shardLines(st.Shards, s)...)
	for _, t := range []*table{replicaTable(st.Shards, now, true), sharedTable(st.Shards)} {
		if len(t.rows) > 0 {
			lines = append(append(lines, ""), t.render(s.width, s.coloured)...)
		}
	}
	return lines
}
