// SPDX-License-Identifier: Apache-2.0

package text

import (
	"fmt"
	"strings"
)

// MaxError is the size, in bytes, to which ShortError shortens an error. A guest's message
// may have megabytes, and errors are logged, stored and sent on.
const MaxError = 16 << 10

// Ends shortens a text that is longer than limit bytes by leaving out its middle. A program
// names its error first or last.
func Ends(s string, limit int) string {
	if len(s) <= limit {
		return s
	}
	const room = 40 // for the note about the part that is left out
	half := (limit - room) / 2
	head, tail := strings.ToValidUTF8(s[:half], ""), strings.ToValidUTF8(s[len(s)-half:], "")
	return fmt.Sprintf("%s [%d bytes left out] %s", head, len(s)-len(head)-len(tail), tail)
}

// ShortError returns err with a text of at most MaxError bytes.
func ShortError(err error) error {
	if s := err.Error(); len(s) > MaxError {
		return Replace(err, Ends(s, MaxError))
	}
	return err
}

// Replace returns err with another text.
func Replace(err error, text string) error { return &replaced{text, err} }

type replaced struct {
	text string
	err  error
}

// Error implements error.
func (e *replaced) Error() string { return e.text }

// Unwrap returns the error with its own text.
func (e *replaced) Unwrap() error { return e.err }
