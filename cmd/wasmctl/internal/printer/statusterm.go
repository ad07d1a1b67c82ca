// SPDX-License-Identifier: Apache-2.0

package printer

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"golang.org/x/term"

	"github.com/wasmctl/wasmctl/internal/text"
)

// Screen is the output of tables.
type Screen struct {
	w             io.Writer
	width, Height int // 0 if it is not a terminal
	coloured      bool
}

// ScreenOf returns the current size of w, which may change.
func ScreenOf(w io.Writer) Screen {
	s := Screen{w: w} // the result for everything but terminals
	f := terminalOf(w)
	if f == nil {
		return s
	}
	var err error
	if s.width, s.Height, err = term.GetSize(int(f.Fd())); err != nil || s.width <= 0 { //nolint:gosec // as above
		s.width, s.Height = 80, 24
	}
	if t, ok := w.(*Terminal); ok {
		s.w = t.w // it receives commands; its lines are printable
	}
	s.coloured = takesColours(w)
	return s
}

// Write writes lines, each cut to the width of the terminal.
func (s Screen) Write(lines []string) error {
	var b strings.Builder
	for _, line := range lines {
		b.WriteString(keepColour(line) + "\n")
	}
	_, err := io.WriteString(s.w, b.String())
	return err
}

// keepColour escapes all terminal commands in a line but its colour.
func keepColour(line string) string {
	for _, colour := range []string{colourBad, colourWarn} {
		if inner, ok := strings.CutPrefix(line, colour); ok {
			return colour + text.Line(strings.TrimSuffix(inner, colourOff)) + colourOff
		}
	}
	return text.Line(line)
}

// redraw replaces the content of the terminal, and omits lines for which it has no room.
func (s Screen) redraw(lines []string) error {
	if left := len(lines) - (s.Height - 1); left > 0 {
		lines = append(lines[:max(0, s.Height-2)], cut(fmt.Sprintf("... %d more lines: use a taller terminal or -o json", left+1), s.width))
	}
	var b bytes.Buffer
	b.WriteString("\x1b[H") // go to the top
	for _, line := range lines {
		b.WriteString(keepColour(line) + "\x1b[K\r\n") // clear the rest of the line
	}
	b.WriteString("\x1b[J") // clear the rest of the screen
	_, err := s.w.Write(b.Bytes())
	return err
}

// Refresh shows the result of draw repeatedly until ctx ends, on a terminal in the same place.
func Refresh(ctx context.Context, w io.Writer, every time.Duration, draw func(context.Context, Screen) ([]string, error)) error {
	live := ScreenOf(w).Height > 0
	if live {
		screen := ScreenOf(w).w
		_, _ = io.WriteString(screen, "\x1b[?1049h\x1b[?25l") // switch to the alternate screen, and hide the cursor
		defer func() { _, _ = io.WriteString(screen, "\x1b[?25h\x1b[?1049l") }()
	}
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		s := ScreenOf(w)
		lines, err := draw(ctx, s)
		if ctx.Err() != nil {
			return nil // the user stopped it
		}
		if err == nil {
			if live {
				err = s.redraw(lines)
			} else {
				err = s.Write(append(lines, ""))
			}
		}
		if err != nil {
			return err
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return nil
		}
	}
}
