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

// detailed is the number of controllers up to which all revisions and watches are shown. For more
// controllers, only unusual ones are.
const detailed = 10

// StatusLines returns the lines about the controllers, their revisions and watches. If live is set,
// only unusual revisions and watches are shown, and problems come first.
func StatusLines(st *admin.Status, now time.Time, s Screen, live bool) []string {
	head := processLine(st, now)
	head += ", " + humanize.Plural(len(st.Controllers), "controller")
	if n := Troubled(st); n > 0 {
		head += fmt.Sprintf(", %d %s attention", n, map[bool]string{true: "needs", false: "need"}[n == 1])
	}
	lines := []string{cutTo(head, s.width)}
	if st.Hardening != "" && !live {
		lines = append(lines, cutTo("hardening: "+text.Line(st.Hardening), s.width))
	}
	if len(st.InsecureRegistries) > 0 {
		lines = append(lines, cutTo("registries without verified TLS: "+text.Line(strings.Join(st.InsecureRegistries, ", ")), s.width))
	}
	lines = append(lines, shardLines(st.Shards, s)...)
	if len(st.Controllers) == 0 {
		return lines
	}
	controllers := st.Controllers
	if live {
		controllers = slices.Clone(controllers)
		slices.SortStableFunc(controllers, func(a, b admin.Controller) int { return severity(&b) - severity(&a) })
	}
	all := !live && len(controllers) <= detailed
	for _, t := range []*table{controllerTable(controllers, now), reconcilerTable(st.Reconcilers, now, all), replicaTable(st.Shards, now, false), processTable(controllers), revisionTable(controllers, now, all), quarantineTable(controllers, now), hotTable(controllers), strandedTable(controllers), missingTable(controllers, now), webhookTable(controllers, now, all), watchTable(controllers, now, all), moduleTable(controllers, all)} {
		if len(t.rows) > 0 {
			lines = append(append(lines, ""), t.render(s.width, s.coloured)...)
		}
	}
	return append(lines, messageLines(controllers)...)
}

// ControllerLines returns the table of controllers.
func ControllerLines(list []admin.Controller, now time.Time, s Screen) []string {
	if len(list) == 0 {
		return []string{"no controllers"}
	}
	return append(controllerTable(list, now).render(s.width, s.coloured), messageLines(list)...)
}

// HistoryLines returns the table of the changes of a module.
func HistoryLines(list []admin.Change, now time.Time, s Screen) []string {
	if len(list) == 0 {
		return []string{"no changes"}
	}
	t := &table{columns: []column{
		{title: "AGO", right: true},
		{title: "TIME", omit: 3},
		{title: "REVISION", right: true, omit: 1},
		{title: "RESULT"},
		{title: "DIGEST", omit: 2},
		{title: "MODULE", minWidth: 16},
		{title: "WHY", minWidth: 20},
	}}
	for i := range list {
		c := &list[i]
		module, _, _ := strings.Cut(c.Module, "@")
		colour := ""
		if slices.Contains([]string{"refused", "rolled_back", "stuck", "failed"}, c.Result) {
			colour = colourWarn
		}
		t.row(colour, humanize.Age(now, c.Time), c.Time.UTC().Format(time.RFC3339), revisionName(c.Revision), c.Result,
			strings.TrimPrefix(humanize.Digest(c.Digest), "sha256:"), module, humanize.FirstLine(c.Why))
	}
	return t.render(s.width, s.coloured)
}

// messageLines returns the messages of controllers that do not run and whose STATE has only the
// first line. They are not cut, because they explain the problem.
func messageLines(list []admin.Controller) (lines []string) {
	for i := range list {
		c := &list[i]
		if c.Phase == admin.PhaseRunning || !strings.Contains(c.Message, "\n") {
			continue
		}
		lines = append(lines, "", text.Line(c.Name+": "+c.Phase+":"))
		for line := range strings.Lines(c.Message) {
			lines = append(lines, "  "+text.Line(strings.TrimRight(line, "\n")))
		}
	}
	return lines
}

func controllerTable(list []admin.Controller, now time.Time) *table {
	t := &table{columns: []column{
		{title: "CONTROLLER", minWidth: 14},
		{title: "KIND", minWidth: 10, omit: 6},
		{title: "READY", right: true, omit: 2},
		{title: "OLDEST", omit: 5, right: true},
		{title: "WAITING", right: true, omit: 1},
		{title: "RUNNING", right: true},
		{title: "RUNS", right: true},
		{title: "FAILED", right: true},
		{title: "FAILING", right: true, omit: 3},
		{title: "QUAR", right: true, omit: 4},
		{title: "DENIED", right: true, omit: 7},
		{title: "MEMORY", right: true, omit: 8},
		{title: "REV", right: true, omit: 9},
		{title: "DIGEST", omit: 10},
		{title: "STATE", minWidth: 30},
	}}
	for i := range list {
		c := &list[i]
		var failed uint64
		for _, n := range c.Failures {
			failed += n
		}
		oldest := "-"
		if c.OldestReady > 0 {
			oldest = humanize.Age(now, now.Add(-time.Duration(c.OldestReady)))
		}
		t.row([]string{"", colourWarn, colourBad}[severity(c)], c.Name, c.Kind, c.Ready, oldest, c.Waiting, fmt.Sprintf("%d/%d", c.Running, c.Workers),
			c.Runs, failed, c.Failing, c.Quarantined, c.Denied, humanize.Bytes(c.Memory), revisionName(c.Revision), strings.TrimPrefix(humanize.Digest(c.Digest), "sha256:"), c.State)
	}
	return t
}

// reconcilerTable lists Reconcilers, or only those that are not ready.
func reconcilerTable(list []admin.Reconciler, now time.Time, all bool) *table {
	t := &table{columns: []column{{title: "RECONCILER", minWidth: 16}, {title: "READY"}, {title: "REASON"}, {title: "FOR", omit: 1}, {title: "MESSAGE", minWidth: 20}}}
	for i := range list {
		r := &list[i]
		ready, colour := "True", ""
		if !r.Ready {
			ready = "False"
		}
		if r.Trouble {
			colour = colourWarn
		}
		if all || !r.Ready {
			t.row(colour, r.Name, ready, r.Reason, humanize.Age(now, r.Since), r.Message)
		}
	}
	return t
}

func processTable(list []admin.Controller) *table {
	t := &table{columns: []column{{title: "ISOLATED", minWidth: 14}, {title: "PID", right: true}, {title: "RESIDENT", right: true}}}
	for i := range list {
		if p := list[i].Process; p != nil {
			t.row("", list[i].Name, p.PID, humanize.Bytes(p.Memory))
		}
	}
	return t
}

// moduleTable lists the modules that come from a registry.
func moduleTable(list []admin.Controller, all bool) *table {
	t := &table{columns: []column{{title: "CONTROLLER", minWidth: 14}, {title: "MODULE", minWidth: 20}}}
	for i := range list {
		if all && strings.HasPrefix(list[i].Module, "oci://") {
			t.row("", list[i].Name, list[i].Module)
		}
	}
	return t
}

func revisionTable(list []admin.Controller, now time.Time, all bool) *table {
	t := &table{columns: []column{
		{title: "REVISION", minWidth: 16},
		{title: "STATE"},
		{title: "FOR"},
		{title: "RUNS", right: true},
		{title: "FAILED", right: true},
		{title: "DIGEST", minWidth: 14, omit: 1},
		{title: "", minWidth: 10},
	}}
	for _, c := range list {
		for _, g := range c.Revisions {
			if all || g.State != "live" && g.State != "kept" {
				t.row("", c.Name+": "+revisionName(g.Number), g.State, humanize.Age(now, g.Since), g.Runs, g.Errors, humanize.Digest(g.Digest), revisionNote(&g))
			}
		}
	}
	return t
}

func watchTable(list []admin.Controller, now time.Time, all bool) *table {
	t := &table{columns: []column{
		{title: "WATCH", minWidth: 20}, {title: "STATE"}, {title: "FOR"}, {title: "PROGRESS", omit: 1, right: true}, {title: "OBJECTS", right: true, omit: 2}, {title: "", minWidth: 10},
	}}
	for _, c := range list {
		for _, w := range c.Watches {
			progress, colour := "-", ""
			if w.LastProgress != nil {
				progress = humanize.Age(now, *w.LastProgress)
			}
			if w.Phase != "ready" {
				colour = colourBad
			}
			if all || w.Phase != "ready" || w.Unmapped > 0 {
				t.row(colour, c.Name+": "+w.Source, w.Phase, humanize.Age(now, w.Since), progress, w.Objects, w.Message)
			}
		}
	}
	return t
}

// missingTable lists the rights that modules lack.
func missingTable(list []admin.Controller, now time.Time) *table {
	t := &table{columns: []column{
		{title: "DENIED", minWidth: 14}, {title: "COUNT", right: true}, {title: "AGO", right: true, omit: 2}, {title: "LAST", minWidth: 12, omit: 1}, {title: "NOT IN", minWidth: 8, omit: 3}, {title: "MISSING RIGHT", minWidth: 20},
	}}
	for i := range list {
		for _, r := range list[i].MissingRights {
			last, ago := "-", "-"
			if r.Count > 0 {
				last, ago = r.Last, humanize.Age(now, r.LastTime)
			}
			t.row(colourWarn, list[i].Name, r.Count, ago, last, r.Missing, string(r.Rule))
		}
	}
	return t
}

func revisionName(number uint64) string {
	if number == 0 {
		return "-" // it never became ready
	}
	return strconv.FormatUint(number, 10)
}

func revisionNote(g *admin.Revision) string {
	switch {
	case g.Reason != "":
		return humanize.FirstLine(g.Reason)
	case g.Canary != "":
		return g.Canary
	case g.Kept && g.State != "kept":
		return "kept"
	}
	return ""
}

// severity returns 2 for a problem that stops a controller, 1 for a smaller problem, and otherwise
// 0.
func severity(c *admin.Controller) int {
	switch {
	case c.State == admin.StateOK, c.Phase == admin.PhaseLoading:
		return 0
	case c.Phase != admin.PhaseRunning, strings.HasPrefix(c.State, "watches not ready"), strings.HasPrefix(c.State, "hangs"):
		return 2
	}
	return 1
}

// Troubled counts the controllers that need attention, and the Reconcilers that need it and have no
// controller.
func Troubled(st *admin.Status) int {
	n := 0
	for i := range st.Controllers {
		n += min(1, severity(&st.Controllers[i]))
	}
	for i := range st.Reconcilers {
		r := &st.Reconcilers[i]
		if r.Trouble && !slices.ContainsFunc(st.Controllers, func(c admin.Controller) bool { return c.Name == r.Controller }) {
			n++
		}
	}
	return n
}
