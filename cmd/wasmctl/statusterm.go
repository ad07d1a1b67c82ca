package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"golang.org/x/term"
)

// Colours of lines on a terminal.
const (
	colourBad  = "\x1b[31m"
	colourWarn = "\x1b[33m"
	colourOff  = "\x1b[0m"
)

// screen is where tables are shown.
type screen struct {
	w             io.Writer
	width, height int // 0 where it is no terminal
	coloured      bool
}

// screenOf looks at what w is now: a terminal may be made larger or smaller.
func screenOf(w io.Writer) screen {
	s := screen{w: w}
	f, ok := w.(*os.File)
	if !ok || !term.IsTerminal(int(f.Fd())) { //nolint:gosec // a file descriptor is small
		return s
	}
	var err error
	if s.width, s.height, err = term.GetSize(int(f.Fd())); err != nil || s.width <= 0 { //nolint:gosec // as above
		s.width, s.height = 80, 24
	}
	s.coloured = os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"
	return s
}

// write writes lines, each no longer than the terminal is wide.
func (s screen) write(lines []string) error {
	_, err := io.WriteString(s.w, strings.Join(lines, "\n")+"\n")
	return err
}

// redraw writes lines over what is on the terminal, and no more than it has room
// for.
func (s screen) redraw(lines []string) error {
	if left := len(lines) - (s.height - 1); left > 0 {
		lines = append(lines[:max(0, s.height-2)], cut(fmt.Sprintf("... %d more lines: a higher terminal, or -o json", left+1), s.width))
	}
	var b bytes.Buffer
	b.WriteString("\x1b[H") // to the top
	for _, line := range lines {
		b.WriteString(line + "\x1b[K\r\n") // and nothing behind it
	}
	b.WriteString("\x1b[J") // nor below
	_, err := s.w.Write(b.Bytes())
	return err
}

// refresh shows what draw returns, again and again until ctx ends: on a terminal
// in the same place.
func refresh(ctx context.Context, w io.Writer, every time.Duration, draw func(context.Context, screen) ([]string, error)) error {
	live := screenOf(w).height > 0
	if live {
		_, _ = io.WriteString(w, "\x1b[?1049h\x1b[?25l") // another screen, no cursor
		defer func() { _, _ = io.WriteString(w, "\x1b[?25h\x1b[?1049l") }()
	}
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		s := screenOf(w)
		lines, err := draw(ctx, s)
		if ctx.Err() != nil {
			return nil // it was told to stop
		}
		if err == nil {
			if live {
				err = s.redraw(lines)
			} else {
				err = s.write(append(lines, ""))
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
