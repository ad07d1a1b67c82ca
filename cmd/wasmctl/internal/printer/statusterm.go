package printer

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"golang.org/x/term"

	"github.com/wasmctl/wasmctl/internal/text"
)

// Colours of lines on a terminal.
const (
	colourBad  = "\x1b[31m"
	colourWarn = "\x1b[33m"
	colourOff  = "\x1b[0m"
)

// Screen is where tables are shown.
type Screen struct {
	w             io.Writer
	width, Height int // 0 where it is no terminal
	coloured      bool
}

// ScreenOf returns the current size of w: users resize terminals.
func ScreenOf(w io.Writer) Screen {
	s := Screen{w: w} // all that is no terminal
	if t, ok := w.(*Terminal); ok {
		w = t.w
	}
	f, ok := w.(*os.File)
	if !ok || !term.IsTerminal(int(f.Fd())) { //nolint:gosec // a file descriptor is small
		return s
	}
	var err error
	if s.width, s.Height, err = term.GetSize(int(f.Fd())); err != nil || s.width <= 0 { //nolint:gosec // as above
		s.width, s.Height = 80, 24
	}
	s.w = f // it gets commands; its lines are printable
	s.coloured = os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"
	return s
}

// Write writes lines, each no longer than the terminal is wide.
func (s Screen) Write(lines []string) error {
	var b strings.Builder
	for _, line := range lines {
		b.WriteString(keepColour(line) + "\n")
	}
	_, err := io.WriteString(s.w, b.String())
	return err
}

// keepColour is a line that commands a terminal to nothing but the colour that the
// line was given here.
func keepColour(line string) string {
	for _, colour := range []string{colourBad, colourWarn} {
		if inner, ok := strings.CutPrefix(line, colour); ok {
			return colour + text.Line(strings.TrimSuffix(inner, colourOff)) + colourOff
		}
	}
	return text.Line(line)
}

// redraw writes lines over what is on the terminal, and no more than it has room
// for.
func (s Screen) redraw(lines []string) error {
	if left := len(lines) - (s.Height - 1); left > 0 {
		lines = append(lines[:max(0, s.Height-2)], cut(fmt.Sprintf("... %d more lines: use a taller terminal or -o json", left+1), s.width))
	}
	var b bytes.Buffer
	b.WriteString("\x1b[H") // to the top
	for _, line := range lines {
		b.WriteString(keepColour(line) + "\x1b[K\r\n") // and nothing behind it
	}
	b.WriteString("\x1b[J") // nor below
	_, err := s.w.Write(b.Bytes())
	return err
}

// Refresh shows what draw returns, again and again until ctx ends: on a terminal
// in the same place.
func Refresh(ctx context.Context, w io.Writer, every time.Duration, draw func(context.Context, Screen) ([]string, error)) error {
	live := ScreenOf(w).Height > 0
	if live {
		screen := ScreenOf(w).w
		_, _ = io.WriteString(screen, "\x1b[?1049h\x1b[?25l") // another screen, no cursor
		defer func() { _, _ = io.WriteString(screen, "\x1b[?25h\x1b[?1049l") }()
	}
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		s := ScreenOf(w)
		lines, err := draw(ctx, s)
		if ctx.Err() != nil {
			return nil // it was told to stop
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
