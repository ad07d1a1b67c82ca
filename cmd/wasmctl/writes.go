package main

import (
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"strings"
	"sync"

	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/host/kubeapi"
	"github.com/wasmctl/wasmctl/runtime/admin"
	"github.com/wasmctl/wasmctl/runtime/diff"
	"github.com/wasmctl/wasmctl/runtime/history"
)

// maxPrinted bounds how many writes of a dry run are known to have been printed.
const maxPrinted = 10_000

// printBounds are those of what is printed at once: more than the history keeps.
var printBounds = diff.Bounds{Changes: 200, Value: 400}

// dryRunModes are the values of --dry-run.
var dryRunModes = []string{string(kubeapi.DryRunServer), string(kubeapi.DryRunClient)}

// writePrinter prints what runs write, as wasmctl explain would show it later: for
// wasmctl dev each write, for --dry-run what would be written, and that not again
// while it stays the same. A nil one prints nothing.
type writePrinter struct {
	mu      sync.Mutex
	out     io.Writer                    // guarded by mu
	printed map[string][sha256.Size]byte // what was printed last of a dry run, by write; guarded by mu
}

func newWritePrinter(out io.Writer) *writePrinter {
	return &writePrinter{out: out, printed: map[string][sha256.Size]byte{}}
}

// tell prints an operation, if it is a write. Which tells writes of one name
// apart.
func (p *writePrinter) tell(o *admin.Operation, of *abi.Run, which string) {
	note := ""
	if of != nil && of.Key.String() != o.Object {
		note = ", for " + of.Key.String()
	}
	var b strings.Builder
	writeOperation(&b, "", o, note)
	p.once(o.DryRun, o.Name+" "+o.Resource+"/"+o.Subresource+" "+o.Object+which, b.String())
}

// once prints a text, unless it is that of the same write of a dry run again.
func (p *writePrinter) once(dryRun bool, name, text string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if dryRun {
		sum := sha256.Sum256([]byte(text))
		if last, ok := p.printed[name]; ok && last == sum {
			return
		}
		if len(p.printed) >= maxPrinted {
			clear(p.printed)
		}
		p.printed[name] = sum
	}
	_, _ = io.WriteString(p.out, text) // who reads it is gone
}

// printWrite prints an operation that has been answered, where writes are
// printed.
func (s *session) printWrite(ctx context.Context, e *kubeapi.Exchange, op history.Op, about history.States) {
	switch ev := e.Event; {
	case s.writes == nil:
	case ev != nil && e.DryRun:
		text := fmt.Sprintf("event     about %s %s: %s %s: %s (dry run)\n", ev.Regarding.Kind, ev.Regarding.Name, ev.Type, ev.Reason, ev.Note)
		s.writes.once(true, "event "+ev.Regarding.String()+ev.Type+ev.Reason, diff.Clean(s.secrets.Text(text)))
	case e.Writes():
		which := ""
		if e.Op == abi.OpAPIPatch { // a run may patch an object in several ways
			sum := sha256.Sum256(e.Sent)
			which = string(sum[:])
		}
		op.Settle(about, printBounds)
		s.writes.tell(&s.opViews([]history.Op{op})[0], abi.RunFrom(ctx), which)
	}
}
