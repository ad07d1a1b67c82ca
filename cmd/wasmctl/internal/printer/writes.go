// SPDX-License-Identifier: Apache-2.0

package printer

import (
	"crypto/sha256"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/wasmctl/wasmctl"
	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/internal/humanize"
	"github.com/wasmctl/wasmctl/internal/text"
	"github.com/wasmctl/wasmctl/runtime/history"
)

// maxPrinted is the maximum number of remembered dry-run writes, and of counted objects.
const maxPrinted = 10_000

// Unchanged objects are counted after quietTime without a write, because a swap reconciles all of
// them, and at the latest after countTime.
const (
	quietTime = time.Second
	countTime = 10 * time.Second
)

// Writes prints the writes of runs like wasmctl explain: each write for wasmctl dev, and planned
// writes for --dry-run, which are not repeated while they stay the same. Writes without changes are
// summed up in one line.
type Writes struct {
	mu      sync.Mutex
	out     io.Writer                    // guarded by mu
	printed map[string][sha256.Size]byte // the last printed text of each write of a dry run; guarded by mu
	changed map[string]bool              // the objects written since the last count, and whether a write changed them; guarded by mu
	since   time.Time                    // the first of them; guarded by mu
	timer   *time.Timer                  // for the count; nil before the first write; guarded by mu
	closed  bool                         // guarded by mu
}

// NewWrites returns a Writes that prints to out until it is closed.
func NewWrites(out io.Writer) *Writes {
	return &Writes{out: out, printed: map[string][sha256.Size]byte{}, changed: map[string]bool{}}
}

// Print prints a write.
func (p *Writes) Print(w wasmctl.Write) {
	var b strings.Builder
	object := w.Object.String()
	if w.Event != "" {
		fmt.Fprintf(&b, "event     %s (dry run)\n", text.Line(w.Event))
	} else {
		note := ""
		if w.Run != (abi.Key{}) {
			object = w.Run.String()
		}
		if object != w.Object.String() {
			note = ", for " + object
		}
		Operation(&b, "", &w.Operation, note)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed || w.DryRun && p.again(w.Name+" "+w.Resource+"/"+w.Subresource+" "+w.Object.String()+w.ID, b.String()) {
		return
	}
	same := w.Effect == history.Unchanged
	p.note(object, !same)
	if !same {
		_, _ = io.WriteString(p.out, b.String()) // the reader is gone
	}
}

// note records a write to an object, and schedules the count. The caller must hold the mutex.
func (p *Writes) note(object string, changed bool) {
	now := time.Now()
	if len(p.changed) == 0 {
		p.since = now
	}
	if _, known := p.changed[object]; known || len(p.changed) < maxPrinted {
		p.changed[object] = p.changed[object] || changed
	}
	wait := min(quietTime, p.since.Add(countTime).Sub(now))
	if p.timer == nil {
		p.timer = time.AfterFunc(wait, p.flush)
		return
	}
	p.timer.Reset(wait)
}

// again reports whether a write of a dry run has the same text as before. The caller must hold the
// mutex.
func (p *Writes) again(name, text string) bool {
	sum := sha256.Sum256([]byte(text))
	if last, ok := p.printed[name]; ok && last == sum {
		return true
	}
	if len(p.printed) >= maxPrinted {
		clear(p.printed)
	}
	p.printed[name] = sum
	return false
}

// flush counts the objects that were written without changes.
func (p *Writes) flush() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.count()
}

// count prints the count. The caller must hold the mutex.
func (p *Writes) count() {
	n, bound := 0, ""
	for _, changed := range p.changed {
		if !changed {
			n++
		}
	}
	if len(p.changed) >= maxPrinted {
		bound = "at least "
	}
	clear(p.changed)
	if n > 0 && !p.closed {
		_, _ = fmt.Fprintf(p.out, "%s%s unchanged\n", bound, humanize.Plural(n, "object")) // the reader is gone
	}
}

// Close prints the last count. Nothing is printed after it.
func (p *Writes) Close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.timer != nil {
		p.timer.Stop()
	}
	p.count()
	p.closed = true
}
