// SPDX-License-Identifier: Apache-2.0

package validate

import (
	"errors"
	"fmt"
	"strings"

	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/internal/humanize"
	"github.com/wasmctl/wasmctl/internal/text"
)

// size formats a number of bytes for people.
func size(n int64) string {
	switch {
	case n >= 10<<20:
		return fmt.Sprintf("%d MiB", n>>20)
	case n >= 10<<10:
		return fmt.Sprintf("%d KiB", n>>10)
	}
	return fmt.Sprintf("%d bytes", n)
}

// oneLine returns the text of an error, with the first line that the guest printed.
func oneLine(err error) string {
	line, _, _ := strings.Cut(err.Error(), "\n")
	if call, ok := errors.AsType[*abi.CallError](err); ok && call.Output != "" {
		printed, _, _ := strings.Cut(call.Output, "\n")
		line += "; it printed: " + printed
	}
	return line
}

// broke reports whether a call failed in a way that no guest should: a trap, no time, no memory, or
// an unreadable result.
func broke(err error) bool {
	_, ok := errors.AsType[*abi.CallError](err)
	return ok
}

// nextOf returns the remedy for a call that broke.
func nextOf(err error) string {
	call, ok := errors.AsType[*abi.CallError](err)
	if !ok {
		return "check the error"
	}
	switch call.Kind {
	case abi.FailureTimeout:
		return "check for an endless loop; limits.timeout in the manifest limits a run"
	case abi.FailureMemory:
		return "read fields in place instead of decoding whole objects, or raise limits.memory in the manifest"
	case abi.FailureOutput:
		return "return a result as in ABI.md, section 4; an SDK does"
	case abi.FailureTrap, abi.FailureError:
	}
	return "return an error instead of a panic: values can be absent or of another type"
}

// outcome describes the result of a run in a few words.
func outcome(res abi.Result, asked []string) string {
	s := res.Action.String()
	if res.Error != nil {
		s = "an error: " + clip(res.Error.Error())
	}
	if d := res.Declared; d != nil {
		if n := len(d.Apply); n > 0 {
			s += fmt.Sprintf(", applies %d", n)
		}
		if d.Prune {
			s += ", prunes"
		}
		if d.Status != nil {
			s += ", a status"
		}
	}
	if len(asked) > 0 {
		s += "; asked for " + strings.Join(asked, ", ")
	}
	return s
}

func clip(s string) string { return text.Clip(humanize.FirstLine(s), 160) }
