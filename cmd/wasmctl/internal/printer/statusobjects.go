// SPDX-License-Identifier: Apache-2.0

package printer

import (
	"fmt"
	"strings"
	"time"

	"github.com/wasmctl/wasmctl/internal/humanize"
	"github.com/wasmctl/wasmctl/runtime/admin"
)

// hotTable lists the objects in hot loops.
func hotTable(list []admin.Controller) *table {
	t := &table{columns: []column{{title: "HOT LOOP", minWidth: 20}, {title: "RUNS", right: true}, {title: "EVERY", right: true}, {title: "CAUSE", minWidth: 10}}}
	for _, c := range list {
		for _, h := range c.Hot {
			t.row("", c.Name+": "+h.Object, h.Runs, short(h.Delay), h.Cause)
		}
		if more := c.HotObjects - len(c.Hot); more > 0 {
			t.row("", fmt.Sprintf("%s: %d more", c.Name, more))
		}
	}
	return t
}

// webhookTable lists the webhooks of the controllers, or only those that somebody must do something about.
func webhookTable(list []admin.Controller, now time.Time, all bool) *table {
	t := &table{columns: []column{
		{title: "WEBHOOK", minWidth: 20}, {title: "TYPE"}, {title: "OF", minWidth: 10, omit: 1}, {title: "REGISTERED FOR"}, {title: "", minWidth: 10},
	}}
	for i := range list {
		for j := range list[i].Webhooks {
			w := &list[i].Webhooks[j]
			since, colour := "-", ""
			if w.Since != nil {
				since = humanize.Age(now, *w.Since)
			}
			if w.Missing() {
				colour = colourWarn
			}
			if all || w.Missing() {
				t.row(colour, list[i].Name+": "+w.Name, w.Type, strings.Join(w.Resources, ","), since, humanize.FirstLine(w.Message))
			}
		}
	}
	return t
}

// strandedTable lists the objects with the finalizer of a controller that are outside of its watched set.
func strandedTable(list []admin.Controller) *table {
	t := &table{columns: []column{{title: "STRANDED", minWidth: 20}, {title: "DELETION"}, {title: "FINALIZER", minWidth: 10}}}
	for _, c := range list {
		if c.Stranded == nil {
			continue
		}
		for _, o := range c.Stranded.Objects {
			t.row("", c.Name+": "+o.Object, map[bool]string{true: "waits", false: "not requested"}[o.Deleting], c.Stranded.Finalizer)
		}
		if more := c.Stranded.Total - len(c.Stranded.Objects); more > 0 {
			t.row("", fmt.Sprintf("%s: %d more", c.Name, more))
		}
	}
	return t
}

// quarantineTable lists the objects in quarantine.
func quarantineTable(list []admin.Controller, now time.Time) *table {
	t := &table{columns: []column{
		{title: "QUARANTINED", minWidth: 20}, {title: "KIND"}, {title: "FOR"}, {title: "RUNS", right: true}, {title: "NEXT"}, {title: "ERROR", minWidth: 10},
	}}
	for _, c := range list {
		for _, q := range c.Quarantine {
			next := "now"
			if q.Until.After(now) {
				next = "in " + humanize.Age(q.Until, now)
			}
			t.row("", c.Name+": "+q.Object, q.Kind, humanize.Age(now, q.Since), q.Runs, next, humanize.FirstLine(q.Error))
		}
		if more := c.Quarantined - len(c.Quarantine); more > 0 {
			t.row("", fmt.Sprintf("%s: %d more", c.Name, more))
		}
	}
	return t
}
