// SPDX-License-Identifier: Apache-2.0

package printer

import (
	"io"
	"sync"
	"unicode/utf8"

	"github.com/wasmctl/wasmctl/internal/text"
)

// Terminal writes to a possible terminal. Most output has texts of modules, of manifests and of the
// API server, so Terminal makes everything printable: see text.Printable. Only Screen bypasses it,
// for its own commands.
type Terminal struct {
	mu   sync.Mutex
	w    io.Writer
	rest []byte // the beginning of a character that the next Write completes; guarded by mu
	safe []byte // reused; guarded by mu
}

// NewTerminal returns a Terminal that writes to w.
func NewTerminal(w io.Writer) *Terminal { return &Terminal{w: w} }

// Write implements io.Writer.
func (t *Terminal) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.rest) == 0 && plain(p) {
		return t.w.Write(p)
	}
	whole := append(t.rest, p...) //nolint:gocritic // it is replaced below
	end := len(whole) - unfinished(whole)
	t.safe = text.AppendPrintable(t.safe[:0], whole[:end])
	t.rest = append([]byte(nil), whole[end:]...)
	if _, err := t.w.Write(t.safe); err != nil {
		return 0, err
	}
	return len(p), nil
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
