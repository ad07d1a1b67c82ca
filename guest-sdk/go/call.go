package wasmctl

import (
	"github.com/wasmctl/wasmctl/guest-sdk/go/internal/imports"
	"github.com/wasmctl/wasmctl/guest-sdk/go/internal/wire"
)

// minAnswer is the size of the first answer's memory, in bytes; it grows.
const minAnswer = 8 << 10

// do carries out an operation. The answer is good until the next one.
func (g *guest) do(op *imports.Op, req []byte) ([]byte, error) {
	dst := g.answer.Grow(max(g.answer.Cap(), minAnswer))
	status, n := g.host.Call(op, req, dst)
	if n < 0 || n > wire.MaxBytes { // below 0 where an int has 32 bits
		return nil, &Error{Op: op.Name, Status: StatusTooLarge, Reason: "TooLarge", Message: "the answer is longer than a message may be"}
	}
	if n > len(dst) {
		dst = g.answer.Grow(n)
		if got := g.host.Take(dst, 0); int(got) != n {
			return nil, &Error{Op: op.Name, Status: StatusInternal, Reason: "Internal", Message: "the host did not hold its answer"}
		}
	}
	if status != 0 {
		return nil, newError(op, status, dst[:n])
	}
	return dst[:n], nil
}

// newError reads the body of a status: {code, reason, message, rule?} of the
// host or a metav1.Status. Either may be empty or new to this SDK.
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
