// SPDX-License-Identifier: Apache-2.0

package history

import (
	"testing"

	"github.com/wasmctl/wasmctl/abi"
)

func pack(t testing.TB, v any) []byte {
	t.Helper()
	b, err := abi.AppendValue(nil, v)
	if err != nil {
		t.Fatal(err)
	}
	return b
}
