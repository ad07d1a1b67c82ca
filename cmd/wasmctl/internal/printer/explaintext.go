// SPDX-License-Identifier: Apache-2.0

// Package printer writes the output of commands: tables, explanations, JSON and YAML.
package printer

import (
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/internal/humanize"
	"github.com/wasmctl/wasmctl/internal/text"
	"github.com/wasmctl/wasmctl/runtime/admin"
	"github.com/wasmctl/wasmctl/runtime/diff"
	"github.com/wasmctl/wasmctl/runtime/history"
)

// Explanations returns explanations as text.
func Explanations(list []admin.Explanation) []byte {
	var b strings.Builder
	for i := range list {
		if i > 0 {
			b.WriteByte('\n')
		}
		writeExplanation(&b, &list[i], time.Now())
	}
	return []byte(b.String())
}

func writeExplanation(b *strings.Builder, e *admin.Explanation, now time.Time) {
	writeLine(b, "%s %s, controller %s: %s", e.Kind, e.Object, e.Controller, e.State)
	for _, why := range e.Why {
		fmt.Fprintf(b, "  %s\n", indent(text.Printable(why), "  "))
	}
	if r := e.Running; r != nil {
		b.WriteByte('\n')
		writeLine(b, "Now, for %s: %s %s", humanize.Age(now, r.Since), strings.Join(r.Reasons.Texts(), ", "), r.ID)
		writeOperations(b, r.Operations, 0)
	}
	writeMissing(b, e.MissingRights, now)
	writeDenials(b, e.Controller, e.Denials, now)
	for i := range e.Runs {
		b.WriteByte('\n')
		writeRun(b, &e.Runs[i], now)
	}
}

// writeMissing writes each right once, in the form of a manifest or a grant.
func writeMissing(b *strings.Builder, rights []admin.MissingRight, now time.Time) {
	if len(rights) == 0 {
		return
	}
	b.WriteString("\nThe module was denied requests because it lacks these rights:\n")
	for i := range rights {
		r := &rights[i]
		writeLine(b, "  - %s", r.Rule)
		writeLine(b, "    # %s: %s, the last for %s %s ago", r.Missing, humanize.Plural(int(min(r.Count, math.MaxInt32)), "time"), r.Last, humanize.Age(now, r.LastTime))
		if r.Message != "" {
			writeLine(b, "    # %s", r.Message)
		}
	}
}

// writeDenials writes the requests that the module has denied.
func writeDenials(b *strings.Builder, controller string, list []history.Denial, now time.Time) {
	for i := range list {
		d := &list[i]
		verdict, operation := "denied by", string(d.Operation)
		if d.Failed {
			verdict = "could not be judged by"
		}
		if d.Subresource != "" {
			operation += " of " + d.Subresource
		}
		if d.DryRun {
			operation += " (dry run)"
		}
		b.WriteByte('\n')
		writeLine(b, "%s ago: %s by %s was %s %s, revision %d, webhook %s", humanize.Age(now, d.Time), operation, d.User, verdict, controller, d.Revision, d.Webhook)
		fmt.Fprintf(b, "  because   %s\n", indent(text.Printable(d.Message), "            "))
		writeLine(b, "  request   %s", d.ID)
	}
}

func writeRun(b *strings.Builder, r *history.Run, now time.Time) {
	kind := ""
	if r.Kind != "" {
		kind = fmt.Sprintf(" (%s)", r.Kind)
	}
	head := []string{fmt.Sprintf("%s ago: %s%s in %v, after waiting %v", humanize.Age(now, r.Started), r.Result, kind, short(r.Took), short(r.Queued))}
	for _, part := range []struct {
		on   bool
		text string
	}{
		{r.Attempt > 1, fmt.Sprintf("attempt %d", r.Attempt)},
		{r.Finalize, "finalize"},
		{r.Stale, "with a stale cache"},
		{r.Revision > 0, fmt.Sprintf("revision %d", r.Revision)},
		{r.ID != "", r.ID},
		{r.TraceID != "", "trace " + r.TraceID},
	} {
		if part.on {
			head = append(head, part.text)
		}
	}
	writeLine(b, "%s", strings.Join(head, ", "))
	writeLine(b, "  because   %s", strings.Join(r.Reasons.Texts(), ", "))
	switch {
	case len(r.Changes) > 0:
		b.WriteString("  changed since the run before\n")
		writeChanges(b, "          ", r.Changes)
	case r.First:
		b.WriteString("  changed   unknown: no earlier state of the object\n")
	}
	writeRelated(b, r.Related)
	writeOperations(b, r.Operations, r.MoreOperations)
	if r.Error != "" {
		label := "error"
		if r.Result == history.ResultSkipped {
			label = "why"
		}
		fmt.Fprintf(b, "  %-9s %s\n", label, indent(text.Printable(r.Error), "            "))
	}
	if r.Result != history.ResultSkipped {
		next := fmt.Sprint(r.Next)
		if r.DecidedBy != "" {
			next += ", decided by " + r.DecidedBy
		}
		if r.Delay > 0 {
			next += fmt.Sprintf("; delayed %v by the hot-loop guard", short(r.Delay))
		}
		writeLine(b, "  next      %s", next)
	}
}

// writeRelated writes the changes of the related objects.
func writeRelated(b *strings.Builder, list []history.Related) {
	for i := range list {
		c := &list[i]
		part := ""
		if c.Effect == history.Unchanged {
			part = " in the watched part"
		}
		writeLine(b, "  related   %s %s was %s%s", c.Resource, c.Object, c.Effect, part)
		writeChanges(b, "          ", c.Changes)
	}
}

func writeOperations(b *strings.Builder, ops []history.Operation, more int) {
	for i := range ops {
		note := ""
		if ops[i].Took > 0 {
			note = fmt.Sprintf(", %v", short(ops[i].Took))
		}
		Operation(b, "  ", &ops[i], note)
	}
	if more > 0 {
		fmt.Fprintf(b, "  ...       and %s\n", humanize.Plural(more, "operation"))
	}
}

// Operation writes the result of an operation, the operation, and its changes,
// indented.
func Operation(b *strings.Builder, by string, o *history.Operation, note string) {
	what := strings.TrimPrefix(o.Name, "api_")
	if o.Resource != "" {
		what += " " + o.Resource
	}
	if name := o.Object.String(); name != "" {
		what += " " + name
	}
	if o.Subresource != "" {
		what += "/" + o.Subresource
	}
	if o.DryRun {
		what += " (dry run)"
	}
	if len(o.TakenFrom) > 0 {
		note += "; took over the fields of " + strings.Join(o.TakenFrom, ", ") + ", so that those that are not declared are removed"
	}
	switch {
	case o.Effect != history.Written:
	case len(o.Changes) > 0:
		note += "; previous content unknown, the request was:"
	case o.Name != string(abi.OpEventRecord):
		note += "; the version changed, the known content did not: a change by another client was undone, or fields changed their owner"
	}
	writeLine(b, "%s%-9s %s%s", by, o.Effect, what, note)
	if o.Error != "" {
		why, _, _ := strings.Cut(o.Error, "; to allow it, add this to ") // writeMissing has the rule, once
		fmt.Fprintf(b, "%s          %s\n", by, indent(text.Printable(why), by+"          "))
	}
	writeChanges(b, by+"        ", o.Changes)
}

func writeChanges(b *strings.Builder, by string, changes []diff.Change) {
	for _, c := range changes {
		b.WriteString(by + c.String() + "\n")
	}
}

// short rounds a duration to a readable precision.
func short(d history.Duration) time.Duration {
	switch t := time.Duration(d); {
	case t > time.Second:
		return t.Round(10 * time.Millisecond)
	case t > time.Millisecond:
		return t.Round(10 * time.Microsecond)
	default:
		return t.Round(time.Microsecond)
	}
}

// writeLine writes a line, whatever texts it has.
func writeLine(b *strings.Builder, format string, parts ...any) {
	b.WriteString(text.Line(fmt.Sprintf(format, parts...)) + "\n")
}

func indent(s, by string) string { return strings.ReplaceAll(strings.TrimSpace(s), "\n", "\n"+by) }
