package host

import (
	"fmt"
	"strings"
)

// Bounds of what people are shown of a guest's words, in bytes. Its messages may
// have megabytes, and errors are logged, kept and sent on.
const (
	maxText     = 16 << 10 // of an error
	maxProblem  = 2 << 10  // of one problem of a module
	maxProblems = 100
)

// shorten leaves out the middle of a text that is longer than it may be. A program says
// first or last why it ends.
func shorten(s string, most int) string {
	if len(s) <= most {
		return s
	}
	const room = 40 // of what is said of the rest
	half := (most - room) / 2
	head, tail := strings.ToValidUTF8(s[:half], ""), strings.ToValidUTF8(s[len(s)-half:], "")
	return fmt.Sprintf("%s [%d bytes left out] %s", head, len(s)-len(head)-len(tail), tail)
}

// shortError returns err with a text of bounded length.
func shortError(err error) error {
	if s := err.Error(); len(s) > maxText {
		return &longError{shorten(s, maxText), err}
	}
	return err
}

// longError is an error whose own text is too long.
type longError struct {
	text string
	err  error
}

// Error implements error.
func (e *longError) Error() string { return e.text }

// Unwrap returns the error itself.
func (e *longError) Unwrap() error { return e.err }

// shortProblems makes each problem of a module one line, and bounds them: one with a
// million imports that nobody has must not become an error of gigabytes.
func shortProblems(problems []string) []string {
	if more := len(problems) - maxProblems; more > 0 {
		problems = append(problems[:maxProblems:maxProblems], fmt.Sprintf("and %d more", more))
	}
	for i := range problems {
		problems[i] = shorten(lineBreaks.Replace(problems[i]), maxProblem)
	}
	return problems
}

// lineBreaks keeps names of a module from making lines of their own.
var lineBreaks = strings.NewReplacer("\n", `\n`, "\r", `\r`)
