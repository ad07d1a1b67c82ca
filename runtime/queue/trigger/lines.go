package trigger

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/wasmctl/wasmctl/runtime/queue"
	"github.com/wasmctl/wasmctl/runtime/reflector"
)

// maxLine is how long a line may be: a namespace and a name have room.
const maxLine = 1024

// Lines asks for the objects that lines of text name, such as those of standard
// input: "name" or "namespace/name", or "*" for all objects. Empty lines are
// nothing. A line that names no object is told to OnError; the next one is read.
type Lines struct {
	// Name names the reader for people: "stdin".
	Name string
	// Reader has the lines. Its end ends the Lines.
	Reader io.Reader
	// Scope says how the objects are named.
	Scope queue.Scope
	// OnError, if not nil, is notified of a line that names no object, by the
	// goroutine of Run.
	OnError func(error)
}

// line is what one line asks for.
type line struct {
	trigger Trigger
	err     error
	none    bool // it is empty
}

// Run implements Source. The error is that of reading.
//
// A read cannot be interrupted in general (standard input cannot): at the end of
// ctx Run returns, and the goroutine that reads ends when its read does, without
// touching anything more. It is the only one that a Source leaves.
func (l Lines) Run(ctx context.Context, emit Emit) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	lines, failed := make(chan line), make(chan error, 1)
	go func() { failed <- l.read(ctx, lines) }()
	for n := 1; ; n++ {
		select {
		case ln := <-lines:
			if ln.err != nil && l.OnError != nil {
				l.OnError(fmt.Errorf("lines[%s]: line %d: %w", l.Name, n, ln.err))
			}
			if ln.err == nil && !ln.none {
				emit(ctx, ln.trigger)
			}
		case err := <-failed:
			if err != nil && ctx.Err() == nil {
				return fmt.Errorf("lines[%s]: %w", l.Name, err)
			}
			return nil
		case <-ctx.Done():
			return nil
		}
	}
}

// read sends each line until the reader ends or ctx does.
func (l Lines) read(ctx context.Context, lines chan<- line) error {
	r := bufio.NewReaderSize(l.Reader, maxLine+len("\r\n"))
	for {
		text, long, err := r.ReadLine()
		if err != nil {
			return notEOF(err)
		}
		ln := l.parse(string(text))
		if long {
			ln = line{err: fmt.Errorf("is longer than %d bytes", maxLine)}
		}
		for long && err == nil {
			_, long, err = r.ReadLine()
		}
		select {
		case lines <- ln:
		case <-ctx.Done():
			return nil
		}
	}
}

func notEOF(err error) error {
	if errors.Is(err, io.EOF) {
		return nil
	}
	return err
}

// parse reads one line.
func (l Lines) parse(text string) line {
	switch text = strings.TrimSpace(text); text {
	case "":
		return line{none: true}
	case "*":
		return line{trigger: Trigger{All: true}}
	}
	ref, err := queue.ParseRef(text, l.Scope)
	if err != nil {
		return line{err: fmt.Errorf("%q: %w", text, err)}
	}
	return line{trigger: Trigger{Refs: []reflector.ObjectRef{ref}}}
}

// String implements Source.
func (l Lines) String() string { return "lines of " + l.Name }
