// SPDX-License-Identifier: Apache-2.0

package wasmctl

import (
	"github.com/wasmctl/wasmctl/guest-sdk/go/internal/imports"
	"github.com/wasmctl/wasmctl/guest-sdk/go/internal/wire"
)

// minAnswer is the initial size of the memory for answers, in bytes.
const minAnswer = 8 << 10

// do runs an operation. The answer is valid until the next operation.
func (g *guest) do(op *imports.Op, req []byte) ([]byte, error) {
	dst := g.answer.Grow(max(g.answer.Cap(), minAnswer))
	status, n := g.host.Call(op, req, dst)
	if n < 0 || n > wire.MaxBytes { // n is below 0 if it overflows a 32-bit int
		return nil, &Error{Op: op.Name, Status: StatusTooLarge, Reason: "TooLarge", Message: "the answer is longer than the longest message"}
	}
	if n > len(dst) {
		dst = g.answer.Grow(n)
		if got := g.host.Take(dst); int(got) != n {
			return nil, &Error{Op: op.Name, Status: StatusInternal, Reason: "Internal", Message: "the host no longer has its answer"}
		}
	}
	if status != 0 {
		return nil, newError(op, status, dst[:n])
	}
	return dst[:n], nil
}

// newError reads the body of a failed answer: {code, reason, message, rule?} of
// the host or a metav1.Status. The body may be empty or have fields that this
// SDK does not know.
func newError(op *imports.Op, status int32, body []byte) *Error {
	e := &Error{Op: op.Name, Status: int(status)}
	for it := wire.Walk(body); it.Next(); {
		switch v := (Value{it.Value}); string(it.Key) {
		case "reason":
			e.Reason = v.String()
		case "message":
			e.Message = v.String()
		case "rule":
			var rule Capability
			if v.Exists() && v.Decode(&rule) == nil {
				e.Rule = &rule
			}
		case "details":
			e.Details = v.Clone()
		}
	}
	return e
}
