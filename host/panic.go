package host

import (
	"log/slog"
	"path"
	"regexp"
	"strings"

	"github.com/wasmctl/wasmctl/abi"
)

// guestPanic is what a language's runtime prints before it ends a program.
type guestPanic struct {
	text  string   // its message; the first line is the headline
	at    string   // "reconcile.go:25"; empty where the runtime does not say
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

// readPanic finds the panic in what a guest has printed, and what stands before it.
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

// overflowHint is for what linkers of LLVM make of a stack overflow.
const overflowHint = " (a stack overflow ends so too: look for endless recursion, and for large values on the stack)"

// explained is the error of a call that ended badly as people are told it: the
// panic in the place of the instruction that ended it, and one stack, of named
// functions. It returns what is left to say of the output too.
func explained(kind abi.FailureKind, err error, output string) (rest string, panicked bool, _ error) {
	text, trace, _ := strings.Cut(err.Error(), "\nwasm stack trace:")
	stack := readTrace(trace)
	p, rest, panicked := readPanic(output)
	switch {
	case panicked && kind == abi.FailureTrap:
		text = p.headline()
	case strings.HasSuffix(text, "out of bounds memory access"):
		text += overflowHint
	}
	if len(p.stack) > 0 {
		stack = p.stack
	}
	for _, frame := range stack {
		text += "\n\t" + frame
	}
	return rest, panicked, &longError{text, err}
}

// hold reports whether a line is part of a panic, which the error of the call
// will have: it is logged only if there is none.
func (o *output) hold(level slog.Level, line []byte) bool {
	switch {
	case o.told:
		return true
	case len(o.held) == 0 && !beginsPanic(line):
		return false
	}
	o.held = append(o.held, heldLine{level, string(line)})
	o.heldBytes += len(line) + lineOverhead
	if o.heldBytes > maxOutput {
		o.release()
	}
	return true
}

// heldLine is a line that is not logged yet.
type heldLine struct {
	level slog.Level
	text  string
}

// release logs what was held.
func (o *output) release() {
	held := o.held
	o.held, o.heldBytes = nil, 0
	for _, l := range held {
		o.text(l.level, []byte(l.text))
	}
}

// tell says that the error of the call has the panic.
func (o *output) tell() { o.told, o.held, o.heldBytes = true, nil, 0 }
