// SPDX-License-Identifier: Apache-2.0

package guesttest

import (
	"errors"
	"time"

	wasmctl "github.com/wasmctl/wasmctl/guest-sdk/go"
	"github.com/wasmctl/wasmctl/guest-sdk/go/internal/wire"
)

// decodeMap decodes a message that an entry function returned. It returns nil
// if the message is empty.
func decodeMap(b []byte) (map[string]any, error) {
	if len(b) == 0 {
		return nil, nil
	}
	val, err := wire.Decode(b)
	if err != nil {
		return nil, err
	}
	msg, ok := val.(map[string]any)
	if !ok {
		return nil, errors.New("is not a map")
	}
	return msg, nil
}

// decodeResult decodes a Result (abi/ABI.md, section 4).
func decodeResult(b []byte) (wasmctl.Action, declared, *wasmctl.Failure, error) {
	await := wasmctl.AwaitChange()
	msg, err := decodeMap(b)
	if err != nil || msg == nil {
		return await, declared{}, nil, err
	}
	d := readDeclared(msg)
	if f := decodeError(msg); f != nil {
		if d.apply != nil || d.prune || d.force {
			return await, d, nil, errors.New("with an error, only a status is allowed")
		}
		return await, d, f, nil
	}
	switch after, _ := msg["after_ms"].(int64); {
	case after < 0:
		return await, d, nil, errors.New("after_ms is negative")
	case str(msg, "action") == "requeue":
		return wasmctl.Requeue(time.Duration(after) * time.Millisecond), d, nil, nil
	case str(msg, "action") == "await":
		return await, d, nil, nil
	}
	return await, d, nil, errors.New("unknown action")
}

// decodeError decodes the error of a message. It returns nil if there is none.
func decodeError(msg map[string]any) *wasmctl.Failure {
	e, ok := msg["error"].(map[string]any)
	if !ok {
		return nil
	}
	after, _ := e["after_ms"].(int64)
	return &wasmctl.Failure{
		Kind: wasmctl.FailureError, Class: wasmctl.ErrorClass(str(e, "class")), Message: str(e, "message"),
		Reason: str(e, "reason"), After: time.Duration(after) * time.Millisecond,
	}
}
