// SPDX-License-Identifier: Apache-2.0

package operation

import (
	"log/slog"
	"path"
	"regexp"
	"strings"

	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/internal/text"
)

// guestPanic is the message that a language's runtime prints before it ends a program.
type guestPanic struct {
	text  string   // its message; the first line is the headline
	at    string   // "reconcile.go:25"; empty if the runtime does not say
	stack []string // of Go, the innermost first
}

// Forms of a panic. Standard Go and TinyGo start alike; TinyGo has no stack.
var (
	goPanic   = regexp.MustCompile(`(?m)^(?:panic|fatal error): (?:runtime error at 0x[0-9a-f]+: )?`)
	rustPanic = regexp.MustCompile(`(?m)^(?:thread '[^\n]*' (?:\(\d+\) )?)?panicked at (?:'(.*)', )?([^\n:]+:\d+):\d+(?::\n|$)`)
	rustNote  = regexp.MustCompile(`(?m)^note: [^\n]*RUST_BACKTRACE[^\n]*$`)
	goFrame   = regexp.MustCompile(`^(\S.*)\(.*\)$`)
	goPlace   = regexp.MustCompile(`^\t(.+:\d+)(?: \+0x[0-9a-f]+)?$`)
)

// beginsPanic reports whether a line of a guest's output is the first of a panic.
func beginsPanic(line []byte) bool { return goPanic.Match(line) || rustPanic.Match(line) }

// readPanic returns the panic in the output of a guest, and the output before it.
func readPanic(output string) (p guestPanic, before string, ok bool) {
	if at := rustPanic.FindStringSubmatchIndex(output); at != nil {
		p.at = path.Base(output[at[4]:at[5]])
		if p.text = rustNote.ReplaceAllString(output[at[1]:], ""); at[2] >= 0 { // before Rust 1.73
			p.text = output[at[2]:at[3]]
		}
		p.text = strings.TrimSpace(p.text)
		return p, strings.TrimSpace(output[:at[0]]), true
	}
	at := goPanic.FindStringIndex(output)
	if at == nil {
		return p, output, false
	}
	text, dump, _ := strings.Cut(output[at[1]:], "\ngoroutine ")
	p.text = strings.TrimSpace(text)
	p.readGoroutine(dump)
	return p, strings.TrimSpace(output[:at[0]]), true
}

// readGoroutine reads the first goroutine of a dump.
func (p *guestPanic) readGoroutine(dump string) {
	dump, _, _ = strings.Cut(dump, "\n\n")
	name := ""
	for line := range strings.Lines(dump) {
		line = strings.TrimSuffix(line, "\n")
		if m := goFrame.FindStringSubmatch(line); m != nil {
			name = m[1]
			continue
		}
		place := goPlace.FindStringSubmatch(line)
		if place == nil || name == "" {
			continue
		}
		if inRuntime(name) && p.at == "" {
			continue
		}
		if p.at == "" {
			p.at = path.Base(place[1])
		}
		p.stack = append(p.stack, demangle(name)+" "+place[1])
	}
	p.stack = withoutSDK(p.stack)
}

// headline is the panic in a line, and the rest of its message in further ones.
func (p *guestPanic) headline() string {
	first, rest, more := strings.Cut(p.text, "\n")
	if p.at != "" {
		first += " (" + p.at + ")"
	}
	if more {
		first += "\n" + rest
	}
	return "panic: " + first
}

// overflowHint is for a stack overflow, which linkers of LLVM turn into a bad memory access.
const overflowHint = " (a stack overflow ends so too: look for endless recursion, and for large values on the stack)"

// TraceStart precedes the guest's stack in an error of wazero.
const TraceStart = "\nwasm stack trace:"

// CallError returns the error of a call that has failed, for people: without the values of
// Secrets, with the panic in place of the instruction that ended it, and one stack of named
// functions.
func (d *Desk) CallError(kind abi.FailureKind, fn string, err error) error {
	rest, panicked, err := explained(kind, err, d.Output.String())
	if panicked {
		d.Output.told, d.Output.pending, d.Output.pendingBytes = true, nil, 0
	}
	return &abi.CallError{Kind: kind, Func: fn, Err: text.ShortError(d.Env.Secrets.Error(err)), Output: d.Env.Secrets.Text(rest)}
}

// explained also returns the output without the panic, and whether there is one.
func explained(kind abi.FailureKind, err error, output string) (rest string, panicked bool, _ error) {
	msg, trace, _ := strings.Cut(err.Error(), TraceStart)
	stack := readTrace(trace)
	p, rest, panicked := readPanic(output)
	switch {
	case panicked && kind == abi.FailureTrap:
		msg = p.headline()
	case strings.HasSuffix(msg, "out of bounds memory access"):
		msg += overflowHint
	}
	if len(p.stack) > 0 {
		stack = p.stack
	}
	for _, frame := range stack {
		msg += "\n\t" + frame
	}
	return rest, panicked, text.Replace(err, msg)
}

// pendingLine is a line that is not logged yet.
type pendingLine struct {
	level slog.Level
	text  string
}

// postpone reports whether a line is part of a panic. The error of the call contains the
// panic, so the line is logged only if there is no error.
func (o *Output) postpone(level slog.Level, line []byte) bool {
	switch {
	case o.told:
		return true
	case len(o.pending) == 0 && !beginsPanic(line):
		return false
	}
	o.pending = append(o.pending, pendingLine{level, string(line)})
	o.pendingBytes += len(line) + LineOverhead
	if o.pendingBytes > MaxOutput {
		o.logPending()
	}
	return true
}

// logPending logs the lines that were postponed.
func (o *Output) logPending() {
	pending := o.pending
	o.pending, o.pendingBytes = nil, 0
	for _, l := range pending {
		o.print(l.level, []byte(l.text))
	}
}
