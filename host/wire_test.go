// SPDX-License-Identifier: Apache-2.0

package host

import (
	"github.com/vmihailenco/msgpack/v5"

	"github.com/wasmctl/wasmctl/abi"
)

// encodeKeys is the message that a guest's map returns.
func encodeKeys(keys ...abi.Key) []byte {
	b, err := msgpack.Marshal(map[string][]abi.Key{"keys": keys})
	if err != nil {
		panic(err)
	}
	return b
}

// encodeEvent is the whole message of an event.
func encodeEvent(e *abi.Event) []byte {
	head, split := abi.AppendEventHead(nil, e)
	rest := string(head[split:])
	return append(append(append(head[:split], e.Old...), rest...), e.New...)
}

// unpackResult is the inverse of abi.PackResult.
func unpackResult(v uint64) (s abi.Status, length uint32) {
	return abi.Status(int32(uint32(v >> 32))), uint32(v)
}

func mustDecode(b []byte) any {
	v, err := abi.DecodeValue(b)
	if err != nil {
		panic(err)
	}
	return v
}
