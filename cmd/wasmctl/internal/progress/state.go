// SPDX-License-Identifier: Apache-2.0

package progress

import (
	"fmt"
	"strings"
	"time"

	"github.com/mattn/go-runewidth"

	"github.com/wasmctl/wasmctl/internal/humanize"
	"github.com/wasmctl/wasmctl/internal/text"
)

// Unit is the unit of an amount.
type Unit string

// Units. Others are nouns in the plural.
const (
	Bytes   Unit = "bytes"
	Objects Unit = "objects"
	Cases   Unit = "cases"
)

// state is what is known about a task.
type state struct {
	what        string
	took        time.Duration
	done, total int64 // total is 0 if it is unknown
	unit        Unit  // "" if nothing is counted
	others      int   // the number of further tasks
}

// text returns the state as a sentence.
func (s *state) text() string { return text.Line(s.what) + s.figures() }

// figures returns the end of the sentence.
func (s *state) figures() (out string) {
	if s.unit != "" {
		out = ": " + s.amount()
	}
	out += ", " + s.took.Truncate(time.Second).String()
	if s.others > 0 {
		out += fmt.Sprintf(", and %d more", s.others)
	}
	return out
}

func (s *state) amount() string {
	format := func(n int64) string { return fmt.Sprint(n) }
	unit := " " + string(s.unit)
	if s.unit == Bytes {
		format, unit = func(n int64) string { return humanize.Bytes(n).String() }, ""
	}
	if s.total > 0 {
		return fmt.Sprintf("%s of %s%s", format(min(s.done, s.total)), format(s.total), unit)
	}
	return format(s.done) + unit + " so far"
}

const (
	barWidth  = 20
	frameTime = 100 * time.Millisecond
	frames    = `|/-\`
)

// line returns the state for a terminal of this width: a bar if the total is known, otherwise a spinner, and the text. If
// the text is too long, its figures remain.
func (s *state) line(width int) string {
	head := string(frames[int(s.took/frameTime)%len(frames)])
	if s.total > 0 {
		filled := int(min(s.done, s.total) * barWidth / s.total)
		head = "[" + strings.Repeat("#", filled) + strings.Repeat(".", barWidth-filled) + "]"
	}
	if width--; width < 1 { // the last column would wrap
		return ""
	}
	figures := s.figures()
	begin := runewidth.Truncate(head+" "+text.Line(s.what), max(1, width-runewidth.StringWidth(figures)), "…")
	return runewidth.Truncate(begin+figures, width, "…")
}
