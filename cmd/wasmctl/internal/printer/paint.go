// SPDX-License-Identifier: Apache-2.0

package printer

import (
	"bytes"
	"io"
	"os"

	"github.com/wasmctl/wasmctl/cmd/wasmctl/internal/progress"
)

// Colours of lines and words on a terminal.
const (
	colourGood = "\x1b[32m"
	colourBad  = "\x1b[31m"
	colourWarn = "\x1b[33m"
	colourOff  = "\x1b[0m"
)

// colours has the colours of results at the beginning of a line, and of levels of the log.
var colours = map[string]string{
	resultPass: colourGood, "ok": colourGood,
	resultFail: colourBad, "ERROR": colourBad,
	resultSkip: colourWarn, resultUpdated: colourWarn, "warn": colourWarn, "WARN": colourWarn,
}

// consoleTime is the form of the time at the beginning of a line of the log; 0 is any digit.
const consoleTime = "00:00:00.000 "

// appendPainted appends text with the colours of its words. begins tells whether it begins a line.
func appendPainted(to, text []byte, begins bool) []byte {
	for line := range bytes.Lines(text) {
		if from, end := coloured(line); begins && end > from {
			to = append(append(to, line[:from]...), colours[string(line[from:end])]...)
			to = append(append(to, line[from:end]...), colourOff...)
			line = line[end:]
		}
		to = append(to, line...)
		begins = true
	}
	return to
}

// coloured returns the bounds of the word of a line that has a color, or zeros.
func coloured(line []byte) (from, end int) {
	if len(line) > len(consoleTime) {
		from = len(consoleTime)
		for i := range consoleTime {
			digit := line[i] >= '0' && line[i] <= '9'
			if consoleTime[i] == '0' && !digit || consoleTime[i] != '0' && line[i] != consoleTime[i] {
				from = 0
				break
			}
		}
	}
	n := bytes.IndexByte(line[from:], ' ')
	if n <= 0 || colours[string(line[from:from+n])] == "" {
		return 0, 0
	}
	return from, from + n
}

// terminalOf returns the terminal that a writer writes to, or nil.
func terminalOf(w io.Writer) *os.File {
	switch w := w.(type) {
	case *Terminal:
		return terminalOf(w.w)
	case *progress.Writer:
		return w.File()
	case *os.File:
		if progress.IsTerminal(w) {
			return w
		}
	}
	return nil
}

// takesColours reports whether a writer writes to a terminal, and the user wants colors.
func takesColours(w io.Writer) bool {
	return terminalOf(w) != nil && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"
}
