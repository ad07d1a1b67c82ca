// SPDX-License-Identifier: Apache-2.0

package cases

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"
)

// compare returns nil if the observed result is the expected one, and otherwise a diff of both. A
// nil expectation expects a run that writes nothing.
func compare(want, seen *Expect) []string {
	if want == nil {
		want = &Expect{}
	}
	w, s := lines(normal(want, seen)), lines(normal(seen, seen))
	if slices.Equal(w, s) {
		return nil
	}
	return lineDiff(w, s)
}

// normal returns an expectation in its canonical form: fields that it does not check have the
// observed values.
func normal(e, seen *Expect) Expect {
	n := *e
	n.Action = normalAction(n.Action, seen)
	if e.Error != nil && seen.Error != nil {
		err := *e.Error
		err.Kind, err.Class, err.Reason = cmp.Or(err.Kind, seen.Error.Kind), cmp.Or(err.Class, seen.Error.Class), cmp.Or(err.Reason, seen.Error.Reason)
		if err.Message == "" || strings.Contains(seen.Error.Message, err.Message) {
			err.Message = seen.Error.Message
		}
		n.Error = &err
	}
	if e.Denied != nil && seen.Denied != nil {
		d := *e.Denied
		d.Code, d.Reason = cmp.Or(d.Code, seen.Denied.Code), cmp.Or(d.Reason, seen.Denied.Reason)
		if d.Message == "" || strings.Contains(seen.Denied.Message, d.Message) {
			d.Message = seen.Denied.Message
		}
		if d.Causes == nil {
			d.Causes = seen.Denied.Causes
		}
		n.Denied = &d
	}
	n.Changes = normalDiff(n.Changes)
	n.Writes = make([]Write, len(e.Writes))
	for i, w := range e.Writes {
		n.Writes[i] = Write{strings.Join(strings.Fields(w.Write), " "), normalDiff(w.Diff)}
	}
	if e.Status == nil {
		n.Status = seen.Status
	}
	if e.Metrics == nil {
		n.Metrics = seen.Metrics
	}
	return n
}

// normalAction returns the canonical form of a duration. "no run" matches any reason for no run,
// and an event without objects.
func normalAction(action string, seen *Expect) string {
	action = strings.Join(strings.Fields(action), " ")
	if action == "" {
		action = awaitChange
		if seen.Action == noRun { // of an event
			action = noRun
		}
	}
	if action == noRun && strings.HasPrefix(seen.Action, noRun) {
		return seen.Action
	}
	if text, ok := strings.CutPrefix(action, "requeue"); ok {
		text = strings.TrimSpace(strings.TrimPrefix(strings.TrimSpace(text), "after"))
		if d, err := time.ParseDuration(cmp.Or(text, "0s")); err == nil {
			return "requeue after " + d.String()
		}
	}
	return action
}

func normalDiff(diff string) string {
	var out strings.Builder
	for line := range strings.Lines(diff) {
		if line = strings.TrimSpace(line); line != "" {
			out.WriteString(line + "\n")
		}
	}
	return out.String()
}

// lines returns an expectation in the form of a file.
func lines(e Expect) []string {
	text, err := encode(&e)
	if err != nil {
		return []string{fmt.Sprintf("cannot be written: %v", err)}
	}
	return strings.Split(strings.TrimSuffix(text, "\n"), "\n")
}

func encode(v any) (string, error) {
	var b strings.Builder
	e := yaml.NewEncoder(&b)
	e.SetIndent(2)
	err := e.Encode(v)
	return b.String(), err
}
