// SPDX-License-Identifier: Apache-2.0

// Package backed has clients whose operations a Go function implements, instead
// of a host.
package backed

import (
	"fmt"

	wasmctl "github.com/wasmctl/wasmctl/guest-sdk/go"
	"github.com/wasmctl/wasmctl/guest-sdk/go/internal/answer"
	"github.com/wasmctl/wasmctl/guest-sdk/go/internal/entry"
	"github.com/wasmctl/wasmctl/guest-sdk/go/internal/imports"
)

// Client returns a client whose operations do implements, for programs that
// bring a cluster of their own. op is the operation, for example "api_get". msg
// is the request (abi/ABI.md, section 6) in the Go types of JSON. do returns
// the body of the answer, or an error with a status.
func Client(do func(op string, msg map[string]any) (any, *wasmctl.Error)) *wasmctl.Client {
	return entry.Client(&carriedOut{do: do}).(*wasmctl.Client) //nolint:forcetypeassert // package wasmctl sets entry.Client to a function with this result
}

// carriedOut is the host of such a client. It implements only the functions
// that a client calls.
type carriedOut struct {
	imports.Host
	do   func(op string, msg map[string]any) (any, *wasmctl.Error)
	held []byte
}

// Call implements imports.Host.
func (o *carriedOut) Call(op *imports.Op, req, dst []byte) (status int32, length int) {
	status, held, err := answer.To(req, func(msg map[string]any) (any, *wasmctl.Error) { return o.do(op.Name, msg) })
	if err != nil {
		panic(fmt.Sprintf("backed: %s: %v", op.Name, err))
	}
	o.held = held
	if len(held) <= len(dst) {
		copy(dst, held)
	}
	return status, len(held)
}

// Take implements imports.Host.
func (o *carriedOut) Take(dst []byte) int32 { return int32(copy(dst, o.held)) }
