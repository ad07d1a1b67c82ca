// SPDX-License-Identifier: Apache-2.0

package operation

import (
	"fmt"
	"strings"
)

// MaxExcerpt is the size of the longest Excerpt as text, in bytes.
const MaxExcerpt = 2 * (maxHead + maxTail)

// Excerpt keeps the beginning and the end of the output of a call, for the error of a trap:
// a panic names its reason first, and then each goroutine.
type Excerpt struct {
	head, tail []byte
	cut        int // bytes between head and tail
}

// Add adds output.
func (e *Excerpt) Add(p []byte) {
	n := min(len(p), maxHead-len(e.head))
	e.head = append(e.head, p[:n]...)
	p = p[n:]
	if len(p) > maxTail {
		e.cut += len(p) - maxTail
		p = p[len(p)-maxTail:]
	}
	if over := len(e.tail) + len(p) - maxTail; over > 0 {
		e.cut += over
		e.tail = append(e.tail[:0], e.tail[over:]...)
	}
	e.tail = append(e.tail, p...)
}

// Set replaces the excerpt by one that a guest process has made.
func (e *Excerpt) Set(text string) {
	e.head, e.tail, e.cut = append(e.head[:0], text...), e.tail[:0], 0
}

// Reset forgets all output.
func (e *Excerpt) Reset() { e.head, e.tail, e.cut = e.head[:0], e.tail[:0], 0 }

// String implements fmt.Stringer.
func (e *Excerpt) String() string {
	text := string(e.head)
	if e.cut > 0 {
		text += fmt.Sprintf("\n[%d bytes left out]\n", e.cut)
	}
	return strings.TrimSpace(strings.ToValidUTF8(text+string(e.tail), "\uFFFD"))
}
