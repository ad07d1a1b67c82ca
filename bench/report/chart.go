// SPDX-License-Identifier: Apache-2.0

package report

import (
	_ "embed"
	"strings"
	"text/template"
)

//go:embed chart.svg.tmpl
var chartText string

var chartTemplate = template.Must(template.New("chart").Parse(chartText))

// Dimensions of a chart in SVG units.
const (
	panelWidth  = labelWidth + barWidth + 60 // includes room for a value after its bar
	panelGap    = 24
	titleHeight = 30
	rowHeight   = 20
	labelWidth  = 215
	barWidth    = 140 // of the largest value
	columns     = 2
)

// panel shows one metric; panels are next to each other.
type panel struct {
	X, Y  int
	Title string
	Bars  []bar
}

// bar shows the median of a contender's values, with a line for their range.
type bar struct {
	Class, Label, Value  string
	Y, Width, Least, End int
}

// Chart returns the chart of a workload as SVG, which is readable on light and dark pages.
func (w *Workload) Chart() (string, error) {
	chart := struct {
		Title                string
		Width, Height, Label int
		Panels               []panel
	}{Title: w.Title, Width: columns*panelWidth + panelGap, Label: labelWidth}
	for _, m := range w.Metrics {
		if !m.Chart {
			continue
		}
		k := len(chart.Panels)
		p := w.panel(m)
		p.X, p.Y = k%columns*(panelWidth+panelGap), k/columns*(titleHeight+rowHeight*len(w.Rows)+panelGap)
		chart.Panels = append(chart.Panels, p)
		chart.Height = p.Y + titleHeight + rowHeight*len(w.Rows)
	}
	var s strings.Builder
	err := chartTemplate.Execute(&s, chart)
	return s.String(), err
}

// panel returns the bars of a metric. The highest value has the full width.
func (w *Workload) panel(m Metric) panel {
	p := panel{Title: m.title()}
	longest := 0.0
	for _, row := range w.Rows {
		if values := row.Values[m.Name]; len(values) > 0 {
			longest = max(longest, spreadOf(values).most)
		}
	}
	scale := func(v float64) int { return int(v / max(longest, 1e-9) * barWidth) }
	for i, row := range w.Rows {
		b := bar{Class: "peer", Label: row.Contender, Value: "-", Y: titleHeight + i*rowHeight}
		if strings.HasPrefix(row.Contender, "wasmctl") {
			b.Class = "ours"
		}
		if values := row.Values[m.Name]; len(values) > 0 {
			v := spreadOf(values)
			b.Value, b.Width, b.Least, b.End = number(v.median), scale(v.median), scale(v.least), scale(v.most)
		}
		p.Bars = append(p.Bars, b)
	}
	return p
}
