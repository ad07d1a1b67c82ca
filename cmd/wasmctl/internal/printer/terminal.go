// SPDX-License-Identifier: Apache-2.0

package printer

import (
	"io"
	"sync"
	"unicode/utf8"

	"github.com/wasmctl/wasmctl/internal/text"
)

// Terminal writes to a possible terminal. Most output has texts of modules, of manifests and of the
// API server, so Terminal makes everything printable: see text.Printable. It colors levels of the log
// and results. Only Screen bypasses it, for its own commands.
type Terminal struct {
	w        io.Writer
	coloured bool

	mu      sync.Mutex
	within  bool   // the last write has begun a line; guarded by mu
	rest    []byte // the beginning of a character that the next Write completes; guarded by mu
	safe    []byte // reused; guarded by mu
	painted []byte // reused; guarded by mu
}

// NewTerminal returns a Terminal that writes to w.
func NewTerminal(w io.Writer) *Terminal { return &Terminal{w: w, coloured: takesColours(w)} }

// Write implements io.Writer.
func (t *Terminal) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.rest) == 0 && plain(p) {
		if !t.coloured {
			return t.w.Write(p)
		}
		return len(p), t.write(p)
	}
	whole := append(t.rest, p...) //nolint:gocritic // it is replaced below
	end := len(whole) - unfinished(whole)
	t.safe = text.AppendPrintable(t.safe[:0], whole[:end])
	t.rest = append([]byte(nil), whole[end:]...)
	if err := t.write(t.safe); err != nil {
		return 0, err
	}
	return len(p), nil
}

// write writes printable text. The caller must hold mu.
func (t *Terminal) write(safe []byte) error {
	if t.coloured && len(safe) > 0 {
		t.painted = appendPainted(t.painted[:0], safe, !t.within)
		t.within = safe[len(safe)-1] != '\n'
		safe = t.painted
	}
	_, err := t.w.Write(safe)
	return err
}

// plain reports whether p is ASCII that needs no escapes.
func plain(p []byte) bool {
	for _, c := range p {
		if (c < ' ' && c != '\n' && c != '\t') || c > '~' {
			return false
		}
	}
	return true
}

// unfinished returns the number of bytes at the end of p that begin a character.
func unfinished(p []byte) int {
	for n := 1; n < utf8.UTFMax && n <= len(p); n++ {
		if last := p[len(p)-n:]; utf8.RuneStart(last[0]) {
			if utf8.FullRune(last) {
				return 0
			}
			return n
		}
	}
	return 0
}
