// SPDX-License-Identifier: Apache-2.0

package abi_test

import (
	"fmt"

	"github.com/wasmctl/wasmctl/abi"
)

// An object crosses the sandbox boundary as the msgpack of its JSON value, with
// sorted keys and compact integers.
func ExampleAppendValue() {
	msg, err := abi.AppendValue(nil, map[string]any{"replicas": int64(3), "paused": false})
	fmt.Printf("%x %v\n", msg, err)
	// Output: 82a6706175736564c2a87265706c6963617303 <nil>
}

// A guest's result is decoded before the next call of the guest.
func ExampleDecodeResult() {
	msg, _ := abi.AppendValue(nil, map[string]any{"action": "requeue", "after_ms": int64(300_000)})
	res, err := abi.DecodeResult(msg)
	fmt.Println(res.Action, err)
	// Output: requeue after 5m0s <nil>
}
