// SPDX-License-Identifier: Apache-2.0

package printer

import (
	"fmt"
	"strings"

	"github.com/mattn/go-runewidth"

	"github.com/wasmctl/wasmctl/internal/text"
)

// table lays out text in columns for a terminal. No line is longer than the width: columns are
// omitted, and cells are cut, the last ones first.
type table struct {
	columns []column
	rows    [][]string
	colours []string // of rows; "" for none
}

// column is one column of a table.
type column struct {
	title string
	// minWidth is the minimum width of a cell that is cut. If 0, cells are never cut.
	minWidth int
	// omit is the order in which columns are omitted to save space, the highest first. If 0, the
	// column is never omitted.
	omit int
	// right aligns the cells to the right, for numbers.
	right bool
}

const columnGap = 2

// row adds a row. colour may be "".
func (t *table) row(colour string, cells ...any) {
	texts := make([]string, len(t.columns))
	for i, c := range cells {
		texts[i] = oneLine(fmt.Sprint(c))
	}
	t.rows = append(t.rows, texts)
	t.colours = append(t.colours, colour)
}

// render returns the lines, at most width columns wide. If width is 0, it is not limited. coloured
// enables colours.
func (t *table) render(width int, coloured bool) []string {
	shown, widths := t.layout(width)
	lines := make([]string, 0, len(t.rows)+1)
	titles := make([]string, len(t.columns))
	for i := range t.columns {
		titles[i] = t.columns[i].title
	}
	lines = append(lines, cutTo(t.line(titles, shown, widths), width))
	for i, row := range t.rows {
		line := cutTo(t.line(row, shown, widths), width)
		if coloured && t.colours[i] != "" {
			line = t.colours[i] + line + colourOff
		}
		lines = append(lines, line)
	}
	return lines
}

// layout returns the shown columns and their widths.
func (t *table) layout(width int) (shown, widths []int) {
	natural, minWidth := t.natural()
	for i := range t.columns {
		shown = append(shown, i)
	}
	for width > 0 && sum(minWidth, shown) > width {
		worst := 0
		for at, i := range shown {
			if t.columns[i].omit > t.columns[shown[worst]].omit {
				worst = at
			}
		}
		if t.columns[shown[worst]].omit == 0 {
			break
		}
		shown = append(shown[:worst], shown[worst+1:]...)
	}
	for at := len(shown) - 1; at >= 0 && width > 0; at-- {
		i := shown[at]
		if excess := sum(natural, shown) - width; excess > 0 {
			natural[i] = max(minWidth[i], natural[i]-excess)
		}
	}
	return shown, natural
}

// natural returns the natural and the minimum widths of the columns.
func (t *table) natural() (natural, minWidth []int) {
	natural, minWidth = make([]int, len(t.columns)), make([]int, len(t.columns))
	for i, c := range t.columns {
		natural[i] = textWidth(c.title)
		for _, row := range t.rows {
			natural[i] = max(natural[i], textWidth(row[i]))
		}
		minWidth[i] = natural[i]
		if c.minWidth > 0 {
			minWidth[i] = min(natural[i], max(c.minWidth, textWidth(c.title)))
		}
	}
	return natural, minWidth
}

// sum returns the width of a line of these columns.
func sum(widths, shown []int) int {
	total := columnGap * max(0, len(shown)-1)
	for _, i := range shown {
		total += widths[i]
	}
	return total
}

func (t *table) line(cells []string, shown, widths []int) string {
	var b strings.Builder
	for at, i := range shown {
		cell := cut(cells[i], widths[i])
		pad := strings.Repeat(" ", widths[i]-textWidth(cell))
		if at > 0 {
			b.WriteString(strings.Repeat(" ", columnGap))
		}
		if t.columns[i].right {
			cell, pad = pad, cell
		}
		b.WriteString(cell)
		b.WriteString(pad)
	}
	return strings.TrimRight(b.String(), " ")
}

// cutTo calls cut if the width is limited.
func cutTo(s string, width int) string {
	if width == 0 {
		return s
	}
	return cut(s, width)
}

// columns measures text like most terminals, independent of the locale.
var columns = &runewidth.Condition{StrictEmojiNeutral: true}

// cut cuts a text to a width, and then ends it with an ellipsis.
func cut(s string, width int) string { return columns.Truncate(s, width, "…") }

// textWidth returns the number of columns that a text takes.
func textWidth(s string) int { return columns.StringWidth(s) }

var spaces = strings.NewReplacer("\n", " ", "\t", " ")

// oneLine returns a text as one line, without terminal commands.
func oneLine(s string) string {
	return text.Printable(spaces.Replace(strings.TrimSpace(s)))
}
