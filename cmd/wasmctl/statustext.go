package main

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/wasmctl/wasmctl/runtime/admin"
)

// detailed is up to how many controllers all of their generations and watches
// are shown; of more, only those that are out of the ordinary.
const detailed = 10

// hangsAfter is how long a run takes that is shown as one that hangs.
const hangsAfter = 5 * time.Second

// statusLines are the controllers, and their generations and watches. With live
// only what is out of the ordinary is shown of these, and what is wrong comes
// first.
func statusLines(st *admin.Status, now time.Time, s screen, live bool) []string {
	head := fmt.Sprintf("wasmctl %s, pid %d, up %s", st.Version, st.PID, age(now, st.Started))
	if st.Leader != nil {
		head += map[bool]string{true: ", leads", false: ", stands by"}[*st.Leader]
	}
	head += ", " + plural(len(st.Controllers), "controller")
	if n := troubled(st, now); n > 0 {
		head += fmt.Sprintf(", %d %s a look", n, map[bool]string{true: "needs", false: "need"}[n == 1])
	}
	lines := []string{cutTo(head, s.width)}
	if len(st.Controllers) == 0 {
		return lines
	}
	controllers := st.Controllers
	if live {
		controllers = slices.Clone(controllers)
		slices.SortStableFunc(controllers, func(a, b admin.Controller) int { return severity(&b, now) - severity(&a, now) })
	}
	all := !live && len(controllers) <= detailed
	for _, t := range []*table{controllerTable(controllers, now), generationTable(controllers, now, all), quarantineTable(controllers, now), missingTable(controllers, now), watchTable(controllers, now, all)} {
		if len(t.rows) > 0 {
			lines = append(append(lines, ""), t.render(s.width, s.coloured)...)
		}
	}
	return lines
}

func controllerTable(list []admin.Controller, now time.Time) *table {
	t := &table{columns: []column{
		{title: "CONTROLLER", least: 14},
		{title: "KIND", least: 10, drop: 6},
		{title: "READY", right: true, drop: 2},
		{title: "OLDEST", drop: 5, right: true},
		{title: "WAITING", right: true, drop: 1},
		{title: "RUNNING", right: true},
		{title: "RUNS", right: true},
		{title: "FAILED", right: true},
		{title: "FAILING", right: true, drop: 3},
		{title: "QUAR", right: true, drop: 4},
		{title: "DENIED", right: true, drop: 7},
		{title: "MEMORY", right: true, drop: 8},
		{title: "GEN", right: true, drop: 9},
		{title: "DIGEST", drop: 10},
		{title: "STATE", least: 30},
	}}
	for i := range list {
		c := &list[i]
		var failed uint64
		for _, n := range c.Failures {
			failed += n
		}
		oldest, gen := "-", "-"
		if c.OldestReady > 0 {
			oldest = age(now, now.Add(-time.Duration(c.OldestReady)))
		}
		if c.Generation > 0 {
			gen = strconv.FormatUint(c.Generation, 10)
		}
		t.row([]string{"", colourWarn, colourBad}[severity(c, now)], c.Name, c.Kind, c.Ready, oldest, c.Waiting, fmt.Sprintf("%d/%d", c.Running, c.Workers),
			c.Runs, failed, c.Failing, c.Quarantined, c.Denied, byteSize(c.Memory), gen, strings.TrimPrefix(shortDigest(c.Digest), "sha256:"), controllerState(c, now))
	}
	return t
}

func generationTable(list []admin.Controller, now time.Time, all bool) *table {
	t := &table{columns: []column{
		{title: "GENERATION", least: 16},
		{title: "STATE"},
		{title: "FOR"},
		{title: "RUNS", right: true},
		{title: "FAILED", right: true},
		{title: "DIGEST", least: 14, drop: 1},
		{title: "", least: 10},
	}}
	for _, c := range list {
		for _, g := range c.Generations {
			if all || g.State != "live" && g.State != "kept" {
				t.row("", c.Name+": "+generationName(g.Number), g.State, age(now, g.Since), g.Runs, g.Errors, shortDigest(g.Digest), generationNote(&g))
			}
		}
	}
	return t
}

func watchTable(list []admin.Controller, now time.Time, all bool) *table {
	t := &table{columns: []column{
		{title: "WATCH", least: 20}, {title: "STATE"}, {title: "FOR"}, {title: "PROGRESS", drop: 1, right: true}, {title: "OBJECTS", right: true, drop: 2}, {title: "", least: 10},
	}}
	for _, c := range list {
		for _, w := range c.Watches {
			progress, colour := "-", ""
			if w.LastProgress != nil {
				progress = age(now, *w.LastProgress)
			}
			if w.Phase != "ready" {
				colour = colourBad
			}
			if all || w.Phase != "ready" || w.Unmapped > 0 {
				t.row(colour, c.Name+": "+w.Source, w.Phase, age(now, w.Since), progress, w.Objects, w.Message)
			}
		}
	}
	return t
}

// missingTable are the rights that modules were denied for want of.
func missingTable(list []admin.Controller, now time.Time) *table {
	t := &table{columns: []column{
		{title: "DENIED", least: 14}, {title: "COUNT", right: true}, {title: "AGO", right: true, drop: 2}, {title: "LAST", least: 12, drop: 1}, {title: "NOT IN", least: 8, drop: 3}, {title: "MISSING RIGHT", least: 20},
	}}
	for i := range list {
		for _, r := range list[i].MissingRights {
			t.row(colourWarn, list[i].Name, r.Count, age(now, r.LastTime), r.Last, r.Missing, string(r.Rule))
		}
	}
	return t
}

func generationName(number uint64) string {
	if number == 0 {
		return "-" // it never became one
	}
	return strconv.FormatUint(number, 10)
}

func generationNote(g *admin.Generation) string {
	switch {
	case g.Reason != "":
		return firstLine(g.Reason)
	case g.Canary != "":
		return g.Canary
	case g.Kept && g.State != "kept":
		return "kept"
	}
	return ""
}

// severity is 2 for what keeps a controller from its work, 1 for what it does
// not do well, else 0.
func severity(c *admin.Controller, now time.Time) int {
	switch state := controllerState(c, now); {
	case state == "ok", c.Phase == phaseLoading:
		return 0
	case c.Phase != phaseRunning, strings.HasPrefix(state, "watches not ready"), strings.HasPrefix(state, "hangs"):
		return 2
	}
	return 1
}

func troubled(st *admin.Status, now time.Time) int {
	n := 0
	for i := range st.Controllers {
		n += min(1, severity(&st.Controllers[i], now))
	}
	return n
}

// controllerState is what is to be known of a controller first.
func controllerState(c *admin.Controller, now time.Time) string {
	if c.Phase != phaseRunning {
		return strings.TrimSuffix(c.Phase+": "+firstLine(c.Message), ": ")
	}
	if c.Paused {
		return "paused"
	}
	for _, w := range c.Watches {
		if w.Phase != "ready" {
			return strings.TrimSuffix(fmt.Sprintf("watches not ready: %s: %s: %s", w.Phase, w.Source, w.Message), ": ")
		}
	}
	if r := c.LongestRun; r != nil && now.Sub(r.Since) > hangsAfter {
		return fmt.Sprintf("hangs: %s has been running for %s", r.Object, age(now, r.Since))
	}
	last := ""
	if e := c.LastFailure; e != nil {
		last = fmt.Sprintf(": %s %s ago: %s: %s", e.Object, age(now, e.At), e.Kind, firstLine(e.Error))
	}
	switch {
	case c.Quarantined > 0:
		return plural(c.Quarantined, "object") + " quarantined" + last
	case c.Failing > 0:
		return "fails" + last
	case slices.ContainsFunc(c.Watches, func(w admin.Watch) bool { return w.Unmapped > 0 }):
		return "map fails"
	case c.HotLoops > 0:
		return "hot loops: " + strconv.FormatUint(c.HotLoops, 10)
	}
	return "ok"
}

// age is a duration with at most two units, as kubectl shows it.
func age(now, since time.Time) string {
	if since.IsZero() {
		return "-"
	}
	switch d := now.Sub(since); {
	case d < time.Minute:
		return fmt.Sprintf("%ds", int(d.Seconds()))
	case d < time.Hour:
		return fmt.Sprintf("%dm%ds", int(d.Minutes()), int(d.Seconds())%60)
	case d < 24*time.Hour:
		return fmt.Sprintf("%dh%dm", int(d.Hours()), int(d.Minutes())%60)
	default:
		return fmt.Sprintf("%dd%dh", int(d.Hours())/24, int(d.Hours())%24)
	}
}
