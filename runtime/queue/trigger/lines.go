// SPDX-License-Identifier: Apache-2.0

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

// maxLine is the maximum length of a line: enough for a namespace and a name.
const maxLine = 1024

// Lines requests the objects that are named by lines of text, for example of standard input: "name" or "namespace/name", or "*" for all
// objects. Empty lines are ignored. An invalid line is reported to OnError, and the next one is read.
type Lines struct {
	// Name is a human-readable name of the reader, such as "stdin".
	Name string
	// Reader provides the lines. Lines ends at its end.
	Reader io.Reader
	// Scope determines how the objects are named.
	Scope queue.Scope
	// OnError, if not nil, is called for an invalid line, from the goroutine of Run.
	OnError func(error)
}

// line is a parsed line.
type line struct {
	trigger Trigger
	err     error
	none    bool // the line is empty
}

// Run implements Source. The error is that of reading.
//
// In general, a read cannot be interrupted (standard input cannot). When ctx ends, Run returns, and the reading goroutine ends when its
// read returns, without any further effect. No other goroutine outlives a Source.
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

// read sends each line until the end of the reader or of ctx.
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
