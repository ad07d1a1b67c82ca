// SPDX-License-Identifier: Apache-2.0

package report

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"
)

// Markdown returns the part of docs/performance.md that shows the run; charts is the path of the charts' folder relative to the page.
func (r *Run) Markdown(charts string) string {
	var s strings.Builder
	about := []string{
		fmt.Sprintf("Measured on %s at commit %.12s: %s; Kubernetes %s; rounds: %d.", date(r.Time), r.Commit, r.Machine, r.Kubernetes, r.Rounds),
		fmt.Sprintf("Load averages of the machine before the run and after each workload: %s.", strings.Join(r.Load, ", ")),
	}
	for _, text := range r.Skipped {
		about = append(about, "Not measured: "+text+".")
	}
	s.WriteString(wrap(strings.Join(about, " ")))
	for i := range r.Workloads {
		w := &r.Workloads[i]
		fmt.Fprintf(&s, "\n### %s\n\n%s\n![%s](%s/%s.svg)\n\n%s", w.Title, wrap(w.About), w.Title, charts, w.Name, w.table())
	}
	return s.String()
}

// wrap breaks a text into lines of at most 120 columns.
func wrap(text string) string {
	var s strings.Builder
	column := 0
	for word := range strings.FieldsSeq(text) {
		switch n := utf8.RuneCountInString(word); {
		case column == 0:
			column = n
		case column+1+n > 120:
			s.WriteByte('\n')
			column = n
		default:
			s.WriteByte(' ')
			column += 1 + n
		}
		s.WriteString(word)
	}
	return s.String() + "\n"
}

// date returns the day of a time in RFC 3339.
func date(t string) string {
	day, _, _ := strings.Cut(t, "T")
	return day
}

// table has a row for each contender. Below the median of a figure is the median of its ratios to the first row, with their range.
func (w *Workload) table() string {
	var s strings.Builder
	s.WriteString("| |")
	for _, m := range w.Metrics {
		fmt.Fprintf(&s, " %s |", m.title())
	}
	s.WriteString("\n|---|" + strings.Repeat("---|", len(w.Metrics)) + "\n")
	for i, row := range w.Rows {
		fmt.Fprintf(&s, "| %s |", row.Contender)
		for _, m := range w.Metrics {
			first := w.Rows[0].Values[m.Name]
			if i == 0 {
				first = nil
			}
			fmt.Fprintf(&s, " %s |", cell(row.Values[m.Name], first))
		}
		s.WriteString("\n")
	}
	return s.String()
}

func (m *Metric) title() string {
	if m.Unit == "" {
		return m.Name
	}
	return m.Name + ", " + m.Unit
}

// cell formats a figure with its ratio to the first row or, if that is missing or contains 0, with its own range.
func cell(values, first []float64) string {
	if len(values) == 0 {
		return "-"
	}
	v := spreadOf(values)
	if len(first) == 0 || slices.Min(first) == 0 { // there are no ratios
		return fmt.Sprintf("**%s**<br>%s-%s", number(v.median), number(v.least), number(v.most))
	}
	r := spreadOf(ratios(values, first))
	return fmt.Sprintf("**%s**<br>×%.2f (%.2f-%.2f)", number(v.median), r.median, r.least, r.most)
}

// number formats a number with three significant digits, or all digits before the point, in groups.
func number(v float64) string {
	switch {
	case v < 10:
		return fmt.Sprintf("%.2f", v)
	case v < 100:
		return fmt.Sprintf("%.1f", v)
	}
	s := fmt.Sprintf("%.0f", v)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}
